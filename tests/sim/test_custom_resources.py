"""Custom resources in files: objects that a plugin reads are loaded, changed and removed."""

from pathlib import Path

import pytest

from bayplan import Cluster, explain, simulate
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.framework import (
    SUCCESS,
    CustomResource,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Status,
    unschedulable,
)
from bayplan.sim import Manifests, SimulationReport, lay_over, read_manifests
from bayplan.sim.settings import Settings, reading_for

PERMITS = CustomResource("permits.v1.example.com", "Permit", is_namespaced=False)


class NeedsPermit(FilterPlugin):
    """A node takes pods while a Permit of its name allows it; waits for anything."""

    name = "NeedsPermit"
    custom_resources = (PERMITS,)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        permit = self.handle.custom_objects(PERMITS.name).get(node.name)
        is_open = permit is not None and permit.raw["spec"]["open"]
        return SUCCESS if is_open else unschedulable("no permit")


SETTINGS = Settings(plugins=(NeedsPermit,))
NODE = """
apiVersion: v1
kind: Node
metadata: {name: 'n'}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
---
"""
PERMIT = """
apiVersion: example.com/v1
kind: Permit
metadata: {name: 'n'}
spec: {open: %s}
---
"""
TIMELINE = """
apiVersion: bayplan.dev/v1
kind: Timeline
events:
- at: 60s
  %s
"""
ADD = "add: [{apiVersion: example.com/v1, kind: Permit, metadata: {name: 'n'}, spec: {open: true}}]"
CHANGE = "change: [{apiVersion: example.com/v1, kind: Permit, metadata: {name: 'n'}, spec: {open: true}}]"


def read(tmp_path: Path, text: str) -> Manifests:
    path = tmp_path / "all.yaml"
    path.write_text(text)
    with reading_for(SETTINGS):
        return read_manifests([path])


def run(tmp_path: Path, text: str) -> SimulationReport:
    return SETTINGS.simulation(read(tmp_path, text).objects).run()


def places(report: SimulationReport) -> dict[str, str]:
    return {result.pod.name: result.attempt.node_name for result in report.placed}


def test_objects_of_files_are_loaded_for_the_plugin_that_reads_them(tmp_path: Path) -> None:
    assert places(run(tmp_path, NODE + POD + PERMIT % "true")) == {"p": "n"}
    assert places(run(tmp_path, NODE + POD + PERMIT % "false")) == {}
    assert places(run(tmp_path, NODE + POD)) == {}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param("", ADD, id="it is added"),
        pytest.param(PERMIT % "false", CHANGE, id="it is changed"),
    ],
)
def test_a_timeline_wakes_the_pod(tmp_path: Path, before: str, change: str) -> None:
    report = run(tmp_path, NODE + POD + before + TIMELINE % change)

    assert places(report) == {"p": "n"}
    assert report.placed[0].time_s >= 60


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param("permit/n", id="by its kind"),
        pytest.param("permits.v1.example.com/n", id="by its name"),
    ],
)
def test_a_timeline_removes_it(tmp_path: Path, ref: str) -> None:
    late = POD.replace("{name: p}", '{name: late, annotations: {bayplan.dev/created-at: "90s"}}')
    text = NODE + POD + late + PERMIT % "true" + TIMELINE % f"remove: [{ref}]"

    assert places(run(tmp_path, text)) == {"p": "n"}


def test_a_timeline_refuses_kinds_that_no_plugin_reads(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a kind we know"):
        read(tmp_path, NODE + TIMELINE % CHANGE.replace("Permit", "Other"))


def test_a_file_is_applied_to_an_object_of_the_cluster(tmp_path: Path) -> None:
    cluster = read(tmp_path, NODE + POD + PERMIT % "false")
    files = read(tmp_path, PERMIT.replace("{open: %s}", "{open: true, by: file}"))

    merged, _ = lay_over(cluster, files)

    assert places(SETTINGS.simulation(merged.objects).run()) == {"p": "n"}
    (found,) = (obj for obj in merged.objects if obj.kind == PERMITS.name)
    assert found.raw["spec"] == {"open": True, "by": "file"}  # type: ignore[union-attr]


def test_the_last_object_of_a_name_counts(tmp_path: Path) -> None:
    found = read(tmp_path, NODE + POD + PERMIT % "false" + PERMIT % "true")

    assert places(SETTINGS.simulation(found.objects).run()) == {"p": "n"}


# In Python


def test_a_cluster_in_python_takes_them_too(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(NODE + POD + PERMIT % "true")
    permit = {"apiVersion": "example.com/v1", "kind": "Permit", "metadata": {"name": "n"}}

    from_file = Cluster.read(tmp_path / "all.yaml", plugins=[NeedsPermit])
    (tmp_path / "all.yaml").write_text(NODE + POD)
    made = Cluster.read(tmp_path / "all.yaml") + Cluster.of(
        {**permit, "spec": {"open": True}}, plugins=[NeedsPermit]
    )

    for cluster in (from_file, made):
        assert places(simulate(cluster, plugins=[NeedsPermit])) == {"p": "n"}
        assert explain(cluster, "p", plugins=[NeedsPermit]).verdict.value == "fits"


def test_objects_that_were_left_out_are_an_error_for_the_plugin_that_reads_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "all.yaml").write_text(NODE + POD + PERMIT % "true")
    cluster = Cluster.read(tmp_path / "all.yaml")

    assert places(simulate(cluster)) == {"p": "n"}
    with pytest.raises(InputError, match=r"1 of permits.v1.example.com left out.*plugins=\[...\]"):
        simulate(cluster, plugins=[NeedsPermit])
