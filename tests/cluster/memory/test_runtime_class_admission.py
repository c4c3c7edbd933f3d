"""Runtime classes: additions to new pods, and refusals."""

from typing import Any

import pytest

from bayplan.cluster.memory.admission import Admission, AdmissionRefusedError
from bayplan.cluster.memory.object_store import MemoryCluster
from tests.rig.objects import decoded
from tests.rig.trees import pod_of

CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "sandboxed"},
    "handler": "sandboxed",
    "overhead": {"podFixed": {"cpu": "100m", "memory": "64Mi"}},
    "scheduling": {
        "nodeSelector": {"arch": "amd64"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    },
}


@pytest.fixture
def admission() -> Admission:
    cluster = MemoryCluster()
    cluster.add(decoded(CLASS))
    return Admission(cluster)


def sandboxed_pod(uid: str = "", **spec: Any) -> Any:
    metadata = {"namespace": "shop", **({"uid": uid} if uid else {})}
    return pod_of("p", "1", metadata=metadata, **{"runtimeClassName": "sandboxed", **spec})


def test_a_new_pod_gets_overhead_node_selector_and_tolerations(admission: Admission) -> None:
    given = sandboxed_pod(
        nodeSelector={"zone": "a"}, tolerations=[{"key": "x", "operator": "Exists"}]
    )

    pod = admission.admit(given)

    admission.check(pod)
    assert pod.spec.requests["cpu"] == 1100
    assert pod.spec.node_selector == {"zone": "a", "arch": "amd64"}
    keys = [toleration.key for toleration in pod.spec.tolerations or ()]
    assert keys[0] == "x"
    assert "sandbox" in keys


def test_a_toleration_that_another_one_covers_is_left_out(admission: Admission) -> None:
    pod = admission.admit(sandboxed_pod(tolerations=[{"operator": "Exists"}]))

    assert [one.key for one in pod.spec.tolerations or ()] == [""]


def test_a_pod_of_a_cluster_is_left_as_it_is(admission: Admission) -> None:
    pod = admission.admit(sandboxed_pod(uid="1"))

    admission.check(pod)
    assert pod.spec.overhead is None
    assert pod.spec.node_selector is None


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"runtimeClassName": "other"},
            'pod rejected: RuntimeClass "other" not found',
            id="a class that does not exist",
        ),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"runtimeClassName": None, "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without a class",
        ),
        pytest.param(
            {"nodeSelector": {"arch": "arm64"}},
            "conflict: runtimeClass.scheduling.nodeSelector[arch] = amd64; "
            "pod.spec.nodeSelector[arch] = arm64",
            id="a node selector that contradicts",
        ),
    ],
)
def test_kube_apiserver_refuses(admission: Admission, spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(AdmissionRefusedError) as refused:
        admission.check(admission.admit(sandboxed_pod(**spec)))

    assert str(refused.value) == f'pods "p" is forbidden: {problem}'
