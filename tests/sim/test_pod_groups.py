"""Workloads and PodGroups in a simulation: read from manifests, made by jobs, refused, deleted."""

from typing import Any

import pytest

from bayplan.answers.stage import Stage
from bayplan.api.pod_groups import pod_group_of
from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings

GATES = {"GenericWorkload": True, "GangScheduling": True}
WITH_JOBS = {**GATES, "WorkloadWithJob": True}
NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}
ALPHA = "scheduling.k8s.io/v1alpha2"


def group(**spec: Any) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
    return {"apiVersion": ALPHA, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}


def member(name: str, duration: str = "5m") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "annotations": {"bayplan.dev/duration": duration}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": "g"}}
    return {"kind": "Pod", "metadata": metadata, "spec": spec}


def job(count: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"completionMode": "Indexed", "parallelism": count, "completions": count}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "training"}}
    return {**head, "spec": {**spec, "template": template}}


def make(*trees: dict[str, Any], gates: dict[str, bool] | None = None) -> Simulation:
    objects: list[Any] = [decode_object(tree) for tree in trees]
    return Simulation(objects, feature_gates=GATES if gates is None else gates)


def names(simulation: Simulation, kind: str) -> list[str]:
    return [obj.name for obj in simulation.cluster.list(kind)]


def test_a_workload_and_a_group_are_read_from_manifests() -> None:
    template = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}
    spec = {"podGroupTemplates": [template]}
    workload = {"apiVersion": ALPHA, "kind": "Workload", "metadata": {"name": "w"}, "spec": spec}

    simulation = make(NODE, workload, group(), member("a"), member("b"))
    report = simulation.run()

    assert report.is_complete
    assert (names(simulation, "Workload"), names(simulation, "PodGroup")) == (["w"], ["g"])


def test_a_job_gets_its_group() -> None:
    simulation = make(NODE, job(3), gates=WITH_JOBS)
    report = simulation.run()

    assert report.is_complete
    assert {pod_group_of(pod) for pod in simulation.cluster.list("Pod")} == set(
        names(simulation, "PodGroup")
    )
    assert len(names(simulation, "Workload")) == 1


def test_a_question_about_a_job_sees_its_group() -> None:
    objects: list[Any] = [decode_object(tree) for tree in (NODE, job(2))]

    view = Stage(objects, Settings(feature_gates=WITH_JOBS), as_is=True).view()

    (found,) = view.cluster.list("PodGroup")
    assert {pod_group_of(pod) for pod in view.pods()} == {found.name}


def test_a_bad_group_is_refused_with_its_place() -> None:
    bad: Any = decode_object(group(schedulingPolicy={"gang": {"minCount": 0}}))
    node: Any = decode_object(NODE)

    with pytest.raises(InputError) as refused:
        Simulation([node, bad], feature_gates=GATES, place_of=lambda obj: "gang.yaml:7")

    assert str(refused.value) == (
        "gang.yaml:7: podgroup default/g: spec.schedulingPolicy.gang.minCount: Required value"
    )


def test_a_deleted_group_stays_while_it_has_members() -> None:
    events = [{"at": "1m", "remove": ["podgroup/g"]}]
    timeline = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": events}
    simulation = make(NODE, group(), member("a"), member("b", "10m"), timeline)

    simulation.run(until_s=400)
    (left,) = simulation.cluster.list("PodGroup")
    simulation.run()

    assert left.is_terminating
    assert names(simulation, "PodGroup") == []


def test_a_deleted_group_without_members_is_gone_at_once() -> None:
    events = [{"at": "1m", "remove": ["podgroup/g"]}]
    timeline = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": events}
    simulation = make(NODE, group(), timeline)

    simulation.run()

    assert names(simulation, "PodGroup") == []
