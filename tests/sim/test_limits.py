"""Limit ranges and quotas in a simulation: defaults, refusals by workload, and pods that follow when there is room."""

from typing import Any

import pytest

from bayplan.api.storage import PersistentVolumeClaim
from bayplan.errors import InputError
from bayplan.manifests.timeline import ObjectPatch, TimelineTarget
from bayplan.sim import Simulation, SimulationReport, TimelineEvent
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import stored


def make_workload(kind: str, name: str, cpu: str = "1", **spec: Any) -> Any:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return make_object(kind, name, spec={**selector, "template": template, **spec})


def make_new(name: str, cpu: str = "", namespace: str = "default", **spec: Any) -> Any:
    """A pod of a manifest, which has no uid."""
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    return make_object("Pod", name, namespace=namespace, spec={"containers": containers, **spec})


def make_quota(name: str = "q", **fields: Any) -> Any:
    return make_object("ResourceQuota", name, spec=fields)


def make_range(**item: Any) -> Any:
    return make_object("LimitRange", "r", spec={"limits": [item]})


def run(*objects: Any, **options: Any) -> SimulationReport:
    return Simulation([make_node("n", cpu="64"), *objects], **options).run()


def refused(report: SimulationReport) -> list[tuple[str, str, int]]:
    return [(each.kind, each.name, each.count) for each in report.refused]


@pytest.mark.parametrize(
    ("workload", "count"),
    [
        pytest.param(make_workload("Deployment", "w", replicas=5), 3, id="Deployment"),
        pytest.param(make_workload("ReplicaSet", "w", replicas=5), 3, id="ReplicaSet"),
        pytest.param(make_workload("StatefulSet", "w", replicas=5), 3, id="StatefulSet"),
        pytest.param(make_workload("Job", "w", parallelism=5, completions=5), 3, id="Job"),
    ],
)
def test_pods_beyond_a_quota_are_refused_by_workload(workload: Any, count: int) -> None:
    report = run(make_quota(hard={"requests.cpu": "2500m"}), workload)

    assert refused(report) == [(workload.kind, "w", count)]
    assert len(report.placed) == 2
    assert not report.is_complete
    assert report.to_dict()["summary"]["refused"] == count
    message = report.refused[0].message
    assert message.endswith(
        '" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2, '
        "limited: requests.cpu=2500m"
    )
    assert message.startswith('pods "w-')


def test_daemons_beyond_a_quota_are_refused() -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]

    report = run(*nodes, make_quota(hard={"pods": "1"}), make_workload("DaemonSet", "d"))

    assert refused(report) == [("DaemonSet", "d", 3)]


def test_running_pods_count_and_stay_and_a_pod_by_itself_is_named() -> None:
    runs = make_pod("runs", cpu="3", node_name="n")

    report = run(make_quota(hard={"cpu": "2"}), runs, make_new("new", "1"))

    assert [str(each) for each in report.refused] == [
        'pod default/new: pods "new" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=3, '
        "limited: cpu=2"
    ]
    assert report.running == 1


def test_pods_of_other_namespaces_and_scopes_are_not_counted() -> None:
    scoped = make_quota("s", hard={"pods": "0"}, scopes=["BestEffort"])
    other = make_quota("o", hard={"pods": "1"})

    report = run(scoped, other, make_new("x", namespace="x"), make_new("a", "1"), make_new("b"))

    assert refused(report) == [("Pod", "b", 1)]
    assert "exceeded quota: s," in report.refused[0].message
    assert len(report.placed) == 2


def test_a_pod_of_a_cluster_is_there_already() -> None:
    report = run(make_quota(hard={"pods": "0"}), make_pod("stored", uid="u"))

    assert refused(report) == []
    assert len(report.placed) == 1


def test_a_refused_pod_follows_when_another_ends() -> None:
    ends = make_pod("ends", cpu="1", node_name="n", annotations={"bayplan.dev/duration": "60s"})

    report = run(make_quota(hard={"pods": "1"}), ends, make_workload("ReplicaSet", "w", replicas=1))

    assert refused(report) == []
    assert [(result.pod.name[:2], result.created_s) for result in report.pods] == [("w-", 60)]


def test_a_larger_quota_lets_refused_pods_in() -> None:
    objects = [make_quota(hard={"pods": "1"}), make_workload("Deployment", "w", replicas=3)]
    simulation = Simulation([make_node("n"), *objects])
    assert refused(simulation.run()) == [("Deployment", "w", 2)]

    target = TimelineTarget("ResourceQuota", "default", "q")
    larger = ObjectPatch(target, {"spec": {"hard": {"pods": "3"}}})
    simulation.happen(TimelineEvent(0, change=(larger,)))

    assert refused(simulation.run()) == []


@pytest.mark.parametrize(
    ("hard", "obj", "message"),
    [
        pytest.param(
            {"count/deployments.apps": "1"},
            make_workload("Deployment", "b", replicas=2),
            'deployments.apps "b" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, '
            "used: count/deployments.apps=1, limited: count/deployments.apps=1",
            id="deployments, whose pods do not come either",
        ),
        pytest.param(
            {"services": "0"},
            make_object("Service", "b"),
            'services "b" is forbidden: exceeded quota: q, requested: services=1, used: services=0, '
            "limited: services=0",
            id="services by their old name",
        ),
    ],
)
def test_objects_beyond_a_quota_of_their_kind_are_refused(
    hard: dict[str, str], obj: Any, message: str
) -> None:
    report = run(make_quota(hard=hard), make_workload("Deployment", "a"), obj)

    assert refused(report) == [(obj.kind, "b", 0)]
    assert report.refused[0].message == message
    assert str(report.refused[0]) == f"{obj.kind.lower()} default/b: {message}"
    assert [result.pod.name[:2] for result in report.pods] == ["a-"]


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        pytest.param("8Gi", "", id="within the quota"),
        pytest.param(
            "12Gi",
            'persistentvolumeclaims "d" is forbidden: exceeded quota: q, requested: requests.storage=8Gi, '
            "used: requests.storage=4Gi, limited: requests.storage=10Gi",
            id="beyond the quota, which counts what is more",
        ),
    ],
)
def test_a_claim_that_grows_stays_within_its_quota(size: str, problem: str) -> None:
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim = make_object(
        "PersistentVolumeClaim",
        "d",
        metadata={"uid": "d"},
        spec={**modes, "volumeName": "v", "resources": {"requests": {"storage": "4Gi"}}},
        status={"phase": "Bound"},
    )
    simulation = Simulation(
        [make_node("n"), make_quota(hard={"requests.storage": "10Gi"}), claim, make_new("a")]
    )
    simulation.run()

    patch = {"spec": {"resources": {"requests": {"storage": size}}}}
    target = TimelineTarget("PersistentVolumeClaim", "default", "d")
    simulation.happen(TimelineEvent(0, change=(ObjectPatch(target, patch),)))

    assert [each.message for each in simulation.run().refused] == [problem] * bool(problem)
    resources = stored(simulation.cluster, PersistentVolumeClaim, "d").spec.resources
    assert resources is not None
    assert resources.requests == {"storage": "4Gi" if problem else size}


def test_containers_get_the_defaults_of_a_limit_range() -> None:
    pods = make_range(type="Container", default={"cpu": "2"}, defaultRequest={"cpu": "500m"})

    report = run(pods, make_new("a"), make_new("runs", nodeName="n"))

    (placed,) = report.placed
    assert placed.pod.requests == {"cpu": 500}
    (use,) = report.nodes
    assert use.after == {"cpu": 500}  # a running pod is not changed


def test_what_a_limit_range_does_not_allow_is_refused() -> None:
    bound = make_range(type="Container", max={"cpu": "2"})

    report = run(bound, make_workload("Deployment", "w", "4", replicas=2))

    assert refused(report) == [("Deployment", "w", 2)]
    assert "must be less than or equal to cpu limit of 2" in report.refused[0].message


def test_claims_count_also_those_of_a_stateful_set() -> None:
    claim: dict[str, Any] = {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "6Gi"}}},
    }
    workload = make_workload("StatefulSet", "w", replicas=2, volumeClaimTemplates=[claim])
    alone = make_object(
        "PersistentVolumeClaim", "big", spec={**claim["spec"], "storageClassName": "x"}
    )

    report = run(make_quota(hard={"requests.storage": "10Gi"}), alone, workload)

    assert refused(report) == [("StatefulSet", "w", 2)]
    assert report.refused[0].message == (
        'persistentvolumeclaims "d-w-0" is forbidden: exceeded quota: q, '
        "requested: requests.storage=6Gi, used: requests.storage=6Gi, limited: requests.storage=10Gi"
    )


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        pytest.param(
            "Deployment",
            {"spec": {"selector": {"matchLabels": {"app": "x"}}}},
            'Deployment.apps "w" is invalid: spec.selector: Invalid value: '
            '{"matchLabels":{"app":"x"}}: field is immutable',
            id="selector of a Deployment",
        ),
        pytest.param(
            "StatefulSet",
            {"spec": {"podManagementPolicy": "Parallel"}},
            'StatefulSet.apps "w" is invalid: spec: Forbidden: updates to statefulset spec for fields',
            id="policy of a StatefulSet",
        ),
        pytest.param(
            "Pod",
            {"spec": {"nodeName": "n"}},
            'Pod "w" is invalid: spec: Forbidden: pod updates may not change fields other than',
            id="node of a pod",
        ),
    ],
)
def test_a_patch_of_an_immutable_field_is_an_error(
    kind: str, patch: dict[str, Any], expected: str
) -> None:
    obj = make_pod("w") if kind == "Pod" else make_workload(kind, "w", replicas=1)
    simulation = Simulation([make_node("n"), obj])
    simulation.begin()

    with pytest.raises(InputError) as caught:
        simulation.happen(
            TimelineEvent(0, change=(ObjectPatch(TimelineTarget(kind, "default", "w"), patch),))
        )

    assert str(caught.value).startswith(expected)
