"""The groups of jobs, compared with those that kube-controller-manager v1.36.4 made of the same jobs."""

from typing import Any

import pytest

from bayplan.api.pod_groups import PodGroup, Workload, pod_group_of
from bayplan.cluster.memory.admission import Admission, AdmissionError
from bayplan.cluster.memory.controllers import Controllers
from bayplan.cluster.memory.job_groups import group_name, workload_name
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.testing.builders import make_object

GATES = {"GenericWorkload": True, "WorkloadWithJob": True, "WorkloadAwarePreemption": True}
GANG = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}
UID = "aaafb46a-45d4-4084-bb80-6eb8d2460163"
WORKLOAD, GROUP = "gang-59597f4dbc", "gang-59597f4dbc-gang-pgt-0-5fdc44fbc"


def make_job(name: str = "gang", pod: dict[str, Any] | None = None, **spec: Any) -> Any:
    template = {"spec": {"containers": [{"name": "a", "image": "b"}], **(pod or {})}}
    metadata = {"namespace": "default", "uid": UID}
    status = spec.pop("status", {})
    spec = {**GANG, **spec, "template": template}
    return make_object("Job", name, metadata=metadata, spec=spec, status=status)


def run(*objects: Any, gates: dict[str, bool] | None = None) -> MemoryCluster:
    """The cluster after the controllers have seen the objects."""
    cluster = MemoryCluster()
    for obj in objects:
        cluster.add(obj)
    controllers = Controllers(
        cluster,
        Admission(cluster),
        cluster.list("Pod"),
        gates=GATES if gates is None else gates,
    )
    for obj in objects:
        controllers.sync(obj)
    cluster.watch(controllers, replay=False)
    return cluster


def groups_of_pods(cluster: MemoryCluster) -> set[str | None]:
    return {pod_group_of(pod) for pod in cluster.list("Pod")}


def test_an_indexed_job_gets_a_workload_and_a_group() -> None:
    cluster = run(make_job())

    (workload,) = cluster.list("Workload")
    (group,) = cluster.list("PodGroup")
    assert isinstance(workload, Workload)
    assert (workload.name, group.name) == (WORKLOAD, GROUP)
    assert [(o.kind, o.controller) for o in workload.owner_references] == [("Job", True)]
    assert [(o.kind, o.controller) for o in group.owner_references] == [
        ("Job", True),
        ("Workload", None),
    ]
    reference = workload.spec.controller_ref
    assert reference is not None
    assert (reference.api_group, reference.kind, reference.name) == ("batch", "Job", "gang")
    assert [template.name for template in workload.templates] == ["gang-pgt-0"]
    assert isinstance(group, PodGroup)
    assert (group.min_count, group.spec.disruption_mode, group.spec.priority) == (3, "Pod", 0)
    assert groups_of_pods(cluster) == {GROUP}
    assert all(len(pod.owner_references) == 1 for pod in cluster.list("Pod"))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(completions=4), id="not all pods at once"),
        pytest.param(make_job(parallelism=1, completions=1), id="one pod"),
        pytest.param(make_job(completionMode="NonIndexed"), id="not indexed"),
        pytest.param(make_job(status={"startTime": "2026-01-01T00:00:00Z"}), id="has started"),
        pytest.param(make_job(status={"failed": 1}), id="has failed pods"),
        pytest.param(
            make_job(status={"conditions": [{"type": "Suspended", "status": "False"}]}),
            id="was suspended",
        ),
    ],
)
def test_other_jobs_get_no_group(job: Any) -> None:
    cluster = run(job)

    assert not [*cluster.list("Workload"), *cluster.list("PodGroup")]
    assert groups_of_pods(cluster) == {None}


def test_without_the_gate_there_are_no_groups() -> None:
    cluster = run(make_job(), gates={"GenericWorkload": True})

    assert not [*cluster.list("Workload"), *cluster.list("PodGroup")]
    assert groups_of_pods(cluster) == {None}


def test_a_template_that_names_a_group_keeps_it() -> None:
    cluster = run(make_job(pod={"schedulingGroup": {"podGroupName": "other"}}))

    assert not [*cluster.list("Workload"), *cluster.list("PodGroup")]
    assert groups_of_pods(cluster) == {"other"}


def test_a_suspended_job_has_its_group_before_its_pods() -> None:
    cluster = run(make_job(suspend=True))

    assert [group.name for group in cluster.list("PodGroup")] == [GROUP]
    assert not list(cluster.list("Pod"))


def test_a_new_pod_joins_the_group_of_the_others() -> None:
    job = make_job()
    cluster = run(job)
    controllers = Controllers(cluster, Admission(cluster), cluster.list("Pod"), gates=GATES)
    first = next(iter(cluster.list("Pod")))
    cluster.watch(controllers, replay=False)
    cluster.delete(first)

    (made,) = controllers.run()

    assert pod_group_of(made) == GROUP
    assert len(list(cluster.list("Workload"))) == 1


def of_job(kind: str, name: str, spec: dict[str, Any], uid: str = UID) -> Any:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "uid": uid}
    metadata = {"namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
    return make_object(kind, name, metadata=metadata, spec=spec)


TEMPLATE = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}
REFERENCE = {"apiGroup": "batch", "kind": "Job", "name": "gang"}
ONE = {"controllerRef": REFERENCE, "podGroupTemplates": [TEMPLATE]}
TWO = {"controllerRef": REFERENCE, "podGroupTemplates": [TEMPLATE, {**TEMPLATE, "name": "u"}]}


@pytest.mark.parametrize(
    ("others", "group"),
    [
        pytest.param([of_job("Workload", "w", ONE)], group_name("w", "t"), id="its own"),
        pytest.param([of_job("Workload", "w", ONE, "else")], None, id="not its own"),
        pytest.param([of_job("Workload", "w", TWO)], None, id="two templates"),
        pytest.param(
            [of_job("Workload", "w", ONE), of_job("Workload", "v", ONE)], None, id="two workloads"
        ),
    ],
)
def test_a_workload_that_exists_is_used_if_it_is_the_jobs(
    others: list[Any], group: str | None
) -> None:
    cluster = run(*others, make_job())

    assert len(list(cluster.list("Workload"))) == len(others)
    assert groups_of_pods(cluster) == {group}


def test_workload_and_group_are_deleted_with_the_job() -> None:
    job = make_job()
    cluster = MemoryCluster()
    controllers = Controllers(cluster, Admission(cluster), (), gates=GATES)
    cluster.watch(controllers, replay=False)
    stored = cluster.add(job)
    controllers.run()
    assert list(cluster.list("PodGroup"))

    cluster.delete(stored)
    controllers.run()

    assert not [obj for kind in ("Workload", "PodGroup", "Pod") for obj in cluster.list(kind)]


def test_a_job_whose_name_is_too_long_for_its_template_is_refused() -> None:
    with pytest.raises(AdmissionError, match=r"^workload .*\[0\]\.name: .*no more than 63 bytes$"):
        run(make_job("a" * 60))


def test_names_are_those_of_the_job_controller() -> None:
    uid = "3069bc42-2a90-4976-80be-833e47e5857f"

    assert workload_name("suspended", uid) == "suspended-649b87bbf"
    assert (
        group_name("suspended-649b87bbf", "suspended-pgt-0")
        == "suspended-649b87bbf-suspended-pgt-0-7977b5cbf7"
    )


@pytest.mark.parametrize(
    ("workload", "template"),
    [
        pytest.param("w" * 300, "t", id="a long workload"),
        pytest.param("w", "t" * 300, id="a long template"),
        pytest.param("w" * 300, "t" * 300, id="both long"),
    ],
)
def test_long_names_are_cut_to_the_limit(workload: str, template: str) -> None:
    name = group_name(workload, template)

    assert len(name) == 253
    assert name.count("w") >= min(len(workload), 100)
    assert name.count("t") >= min(len(template), 100)
