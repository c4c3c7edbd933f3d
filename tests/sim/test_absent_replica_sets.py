"""Absent replica sets: a dump with deployments and their pods, and no replica sets, has each pod once."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.sim import Simulation, SimulationReport
from tests.rig.trees import node_of

LABELS = {"app": "web"}
CONTAINERS = {"containers": [{"name": "c"}]}


def make_deployment(replicas: int = 2, uid: str = "d") -> Any:
    template = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web", "namespace": "shop", "uid": uid}
    return decode_object(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    )


def stored_pod(name: str, replica_set: str = "web-5f", created: int = 1, **status: Any) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": replica_set}
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": name,
        "labels": {**LABELS, "pod-template-hash": replica_set.rpartition("-")[2]},
        "creationTimestamp": f"2026-01-0{created}T00:00:00Z",
        "ownerReferences": [{**owner, "controller": True}],
    }
    spec = {"nodeName": "n", **CONTAINERS}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return decode_object({**tree, "status": {"phase": "Running", **status}})


def run(*objects: Any) -> SimulationReport:
    return Simulation([node_of("n"), *objects]).run()


@pytest.mark.parametrize(
    ("objects", "made"),
    [
        pytest.param(
            [make_deployment(), stored_pod("a"), stored_pod("b")], 0, id="all pods are there"
        ),
        pytest.param(
            [make_deployment(3), stored_pod("a"), stored_pod("b")], 1, id="one is missing"
        ),
        pytest.param(
            [make_deployment(), stored_pod("a"), stored_pod("b", phase="Failed")],
            1,
            id="a finished pod is replaced",
        ),
        pytest.param(
            [make_deployment(), stored_pod("a"), stored_pod("b", "web-7c", created=2)],
            1,
            id="only the newest replica set counts",
        ),
        pytest.param([make_deployment(), stored_pod("a", "other-5f")], 2, id="pods of others"),
        pytest.param([make_deployment(uid=""), stored_pod("a")], 2, id="a new deployment"),
    ],
)
def test_pods_that_a_deployment_makes(objects: list[Any], made: int) -> None:
    report = run(*objects)

    assert len(report.placed) == made
    assert all(result.pod.labels["app"] == "web" for result in report.placed)


def test_a_remark_names_the_kind_to_add() -> None:
    assert run(make_deployment(), stored_pod("a"), stored_pod("b")).remarks == [
        "ReplicaSets of deployments are not in the files: made shop/web-5f, from the pods that name it; "
        "add rs to kubectl get"
    ]


def test_a_new_pod_is_one_of_the_replica_set_that_is_made() -> None:
    (result,) = run(make_deployment(3), stored_pod("a"), stored_pod("b")).placed

    assert result.pod.controller is not None
    assert result.pod.controller.name == "web-5f"
    assert result.pod.labels["pod-template-hash"] == "5f"


def test_replica_sets_of_the_input_are_taken() -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}}
    spec["template"] = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d"}
    metadata = {"name": "web-5f", "namespace": "shop", "uid": "web-5f"}
    metadata["ownerReferences"] = [{**owner, "controller": True}]  # type: ignore[assignment]
    tree = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}

    report = run(make_deployment(), decode_object(tree), stored_pod("a"), stored_pod("b"))

    assert report.placed == []
    assert report.remarks == []
