"""Whole objects: plugins that declare it read all fields of pods and nodes."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.config.load import load_config
from bayplan.framework import SUCCESS, CycleState, FilterPlugin, Status, unschedulable
from bayplan.scheduler.catalog import input_needs
from bayplan.sim import read_manifests
from bayplan.sim.settings import Settings, reading_for
from bayplan.table import NodeInfo
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario


class SameAccount(FilterPlugin):
    """Puts a pod on nodes of its service account's provider."""

    name = "SameAccount"
    reads_whole_objects = True

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        account = self.handle.whole(pod)["spec"].get("serviceAccountName", "")
        provider = self.handle.whole(node.node)["spec"].get("providerID", "")
        return SUCCESS if account == provider else unschedulable("another account")


class Undeclared(SameAccount):
    name = "Undeclared"
    reads_whole_objects = False


NODES = """
kind: NodeList
apiVersion: v1
items:
- {metadata: {name: a}, spec: {providerID: one}, status: {allocatable: {cpu: 4, pods: 9}}}
- {metadata: {name: b}, spec: {providerID: two}, status: {allocatable: {cpu: 4, pods: 9}}}
"""
POD = """
---
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {serviceAccountName: two, containers: [{name: c, image: i}]}
"""
WORKLOAD = """
---
kind: %s
apiVersion: apps/v1
metadata: {name: w}
spec:
  replicas: 2
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec: {serviceAccountName: two, containers: [{name: c, image: i}]}
"""


def places(tmp_path: Path, text: str) -> set[str | None]:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    settings = Settings(plugins=(SameAccount,))
    with reading_for(settings):
        objects = read_manifests([path]).objects
    report = settings.simulation(objects).run()
    return {result.attempt.node_name for result in report.pods}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(POD, id="a pod"),
        pytest.param(WORKLOAD % "Deployment", id="the pods of a Deployment"),
        pytest.param(WORKLOAD % "StatefulSet", id="the pods of a StatefulSet"),
    ],
)
def test_plugin_reads_fields_that_our_types_leave_out(tmp_path: Path, text: str) -> None:
    assert places(tmp_path, NODES + text) == {"b"}


def test_undeclared_use_is_an_error_that_names_the_attribute() -> None:
    scenario = Scenario(make_node("a"), plugins=[Undeclared])
    scenario.add(make_pod("p"))

    (attempt, *_) = scenario.run()

    assert "reads_whole_objects = True" in attempt.message


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param([], False, id="the default plugins"),
        pytest.param([SameAccount], True, id="a class that declares it"),
        pytest.param([Undeclared], False, id="a class that does not"),
    ],
)
def test_sources_are_kept_for_plugins_that_declare_it(plugins: list[Any], expected: bool) -> None:
    assert input_needs(default_config(), plugins).whole_objects is expected


@pytest.mark.parametrize("declares", [True, False])
def test_sources_are_kept_for_a_file_that_declares_it(tmp_path: Path, declares: bool) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from bayplan.framework import SUCCESS, FilterPlugin\n"
        "class Mine(FilterPlugin):\n"
        "    name = 'Mine'\n"
        f"    reads_whole_objects = {declares}\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return SUCCESS\n"
    )

    assert input_needs(default_config(), [str(path)]).whole_objects is declares


def test_sources_are_kept_for_extenders(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: http://x, filterVerb: filter}]\n"
    )

    assert input_needs(load_config(path)).whole_objects
