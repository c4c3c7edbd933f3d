"""Decider: the reference decides for a reason that is counted, and from a new state."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SUCCESS, CycleState, FilterPlugin, PreFilterPlugin, Status
from bayplan.framework import unschedulable as refused
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario


class Writes(PreFilterPlugin, FilterPlugin):
    """Writes to the state once per search."""

    name = "Writes"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        assert state.get("Writes") is None, "the state is new"
        state.write("Writes", True)
        return SUCCESS

    def filter_node(self, state: CycleState, pod: Pod, node: Any) -> Status:
        return SUCCESS if state.read("Writes") else refused("unprepared")


class Refuses(PreFilterPlugin):
    """Refuses pods with a label in PreFilter."""

    name = "Refuses"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return refused("no") if "no" in pod.labels else SUCCESS


ENABLED = {"plugins": {"multiPoint": {"enabled": [{"name": "Writes"}, {"name": "Refuses"}]}}}


def reasons(scenario: Scenario) -> dict[str, float]:
    """Number of decisions of the reference, by reason."""
    values = scenario.scheduler.metrics.reference_decisions.read()
    return {reason: count for (_, reason), count in values.items()}


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(make_pod("p"), "", id="the engine decides"),
        pytest.param(make_pod("p", labels={"no": ""}), "pre_filter", id="PreFilter refuses"),
        pytest.param(make_pod("p", cpu="99"), "no_node", id="a live filter takes part"),
    ],
)
def test_why_the_reference_decides_is_counted(pod: Pod, reason: str) -> None:
    scenario = Scenario(make_node("a"), profile=ENABLED, plugins=(Writes, Refuses))
    scenario.add(pod)

    attempt = scenario.run()[0]

    assert bool(attempt.node_name) == (not reason)
    assert attempt.status is None or "the state is new" not in attempt.status.message
    assert [*reasons(scenario)] == ([reason] if reason else [])


def test_sampling_is_a_reason() -> None:
    scenario = Scenario(make_node("a"), profile={"percentageOfNodesToScore": 50})
    scenario.add(make_pod("p"))
    scenario.run()

    assert reasons(scenario) == {"profile": 1}
