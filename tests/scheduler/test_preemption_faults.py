"""Plugins whose code fails only while victims are searched: the fault is reported, although another node would do."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.framework.faults import FAULT, PluginFaultError
from bayplan.scheduler import Outcome
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_pod
from tests.rig.objects import stored
from tests.scheduler.faulty_run import run_on

HEAD = "from bayplan.framework import *\n"
FILTER = """
class Zones(FilterPlugin):
    name = "Zones"

    def filter_node(self, state, pod, node):
        return {}["zone"] if node.name == "a" and not node.pods else SUCCESS
"""
LOOKS = """
class Zones(FilterPlugin):
    name = "Zones"

    def looks_at(self, state, pod, other):
        return {}["zone"]

    def filter_node(self, state, pod, node):
        return SUCCESS
"""
LOOKS_WRONG = LOOKS.replace('{}["zone"]', '"zone"')
REMOVES = """
class Zones(PreFilterPlugin, PreFilterExtensions, FilterPlugin):
    name = "Zones"

    def pre_filter(self, state, pod, table):
        return SUCCESS

    def add_pod(self, state, pod, added, node):
        return SUCCESS

    def remove_pod(self, state, pod, removed, node):
        return {}["zone"] if node.name == "a" else SUCCESS

    def filter_node(self, state, pod, node):
        return SUCCESS
"""
CASES = [
    pytest.param(
        FILTER, "filter_node: KeyError: 'zone'", id="a filter, on a node without its pods"
    ),
    pytest.param(LOOKS, "looks_at: KeyError: 'zone'", id="looks_at raises"),
    pytest.param(LOOKS_WRONG, "looks_at: expected bool; got 'zone'", id="looks_at returns a text"),
    pytest.param(REMOVES, "remove_pod: KeyError: 'zone'", id="RemovePod"),
]


def cluster_objects() -> list[Any]:
    return [
        make_node("a", cpu="1"),
        make_node("b", cpu="1"),
        make_pod("x", cpu="1", node_name="a", priority=1),
        make_pod("y", cpu="1", node_name="b", priority=1),
        make_pod("urgent", cpu="1", priority=9),
    ]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_a_fault_during_preemption_ends_a_simulation(
    tmp_path: Path, source: str, expected: str
) -> None:
    path = tmp_path / "zones.py"
    path.write_text(HEAD + source)

    with pytest.raises(PluginFaultError) as raised:
        Simulation(cluster_objects(), plugins=[str(path)]).run()

    assert expected in str(raised.value)
    assert '"Zones"' in str(raised.value)
    assert f"{path}:" in str(raised.value)


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_a_scheduler_that_runs_on_fails_the_pod_once(
    tmp_path: Path, source: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "zones.py"
    path.write_text(HEAD + source)

    (attempt,), _, cluster = run_on(default_config(), str(path), cluster_objects())

    assert (attempt.outcome, attempt.unschedulable_plugins) == (Outcome.ERROR, frozenset({FAULT}))
    assert expected in attempt.message
    (condition,) = stored(cluster, Pod, "urgent").status.conditions or ()
    assert condition.message == attempt.message
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == [attempt.message]
    assert not cluster.evictions, "no pod is preempted"
