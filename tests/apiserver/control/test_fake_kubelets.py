"""Fake kubelets: their reports about nodes, and the time that terminating pods stay."""

from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, api_server, workload_tree
from tests.rig.trees import node_tree, pod_tree

NODES = "/api/v1/nodes"


@pytest.mark.parametrize(
    ("grace", "left"),
    [
        pytest.param(True, ["web"], id="with its grace period"),
        pytest.param(False, [], id="at once"),
    ],
)
def test_a_deleted_pod_leaves(grace: bool, left: list[str]) -> None:
    with api_server(grace=grace) as api:
        api.make(NODES, node_tree("a"))
        api.make(PODS, pod_tree("web", nodeName="a"))
        api.settle()

        answer = api.delete(f"{PODS}/web")
        api.settle()

        assert answer.tree["metadata"]["deletionGracePeriodSeconds"] == 30
        assert api.get(PODS).names == left
        api.advance(30)
        assert api.get(PODS).names == []


def test_a_finalizer_keeps_a_pod_without_grace() -> None:
    with api_server(grace=False) as api:
        api.make(NODES, node_tree("a"))
        held = pod_tree("web", nodeName="a")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        api.make(PODS, held)
        api.settle()

        api.delete(f"{PODS}/web")
        api.settle()
        kept = api.get(PODS).names
        api.patch(f"{PODS}/web", {"metadata": {"finalizers": None}})
        api.settle()

        assert kept == ["web"]
        assert api.get(PODS).names == []


def node_with(status: dict[str, Any]) -> dict[str, Any]:
    labels = {"kubernetes.io/arch": "arm64"}
    return {"metadata": {"name": "a", "labels": labels}, "status": status}


def test_a_node_of_a_manifest_gets_version_address_and_condition(api: ServerInThread) -> None:
    api.make(NODES, node_with({"capacity": {"cpu": "1"}}))

    api.settle()

    status = api.get(f"{NODES}/a").tree["status"]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.4"
    assert status["nodeInfo"]["architecture"] == "arm64"
    assert [a["type"] for a in status["addresses"]] == ["InternalIP", "Hostname"]
    assert [c["type"] for c in status["conditions"]] == ["Ready"]
    assert status["capacity"] == {"cpu": "1"}


def test_what_a_manifest_has_stays(api: ServerInThread) -> None:
    given = {
        "nodeInfo": {"kubeletVersion": "v1.30.0", "kernelVersion": "6"},
        "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
        "conditions": [{"type": "Ready", "status": "False"}],
    }
    api.make(NODES, node_with(given))

    api.settle()

    status = api.get(f"{NODES}/a").tree["status"]
    assert status["addresses"] == given["addresses"]
    assert status["conditions"][0].items() >= {"type": "Ready", "status": "False"}.items()
    assert status["nodeInfo"].items() >= {"kubeletVersion": "v1.30.0", "kernelVersion": "6"}.items()


def test_without_controllers_there_are_kubelets_only() -> None:
    with api_server(controllers=False) as api:
        api.make(NODES, node_tree("a"))
        api.make(PODS, pod_tree("web", nodeName="a"))
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        api.make(sets, workload_tree("ReplicaSet", "web", 2))
        api.settle()

        assert api.get(PODS).names == ["web"]
        assert api.get(f"{PODS}/web").tree["status"]["phase"] == "Running"


def test_the_lease_of_a_node_is_renewed_and_made_again(api: ServerInThread) -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a"
    api.make(NODES, node_tree("a"))
    api.settle()
    made = api.get(lease).tree

    api.advance(10)
    renewed = api.get(lease).tree
    api.delete(lease)
    api.advance(10)

    assert made["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    assert renewed["metadata"]["uid"] == made["metadata"]["uid"]
    assert renewed["spec"]["renewTime"] == "2026-01-01T00:00:10.000000Z"
    assert api.get(lease).tree["spec"]["renewTime"] == "2026-01-01T00:00:20.000000Z"


def test_the_lease_of_a_deleted_node_is_not_renewed(api: ServerInThread) -> None:
    api.make(NODES, node_tree("a"))
    api.settle()

    api.delete(f"{NODES}/a")
    api.advance(10)

    assert api.get("/apis/coordination.k8s.io/v1/leases").names == []


def sized(cpu: str, **others: str) -> dict[str, Any]:
    size = {"requests": {"cpu": cpu, **others}, "limits": {"cpu": "64"}}
    return {"spec": {"containers": [{"name": "main", "resources": size}]}}


def test_a_running_pod_is_resized_when_its_node_has_room(api: ServerInThread) -> None:
    api.make(NODES, {**node_tree("a"), "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    for name in ("one", "two"):
        pod = pod_tree(name, nodeName="a")
        pod["spec"]["containers"][0]["resources"] = sized("1")["spec"]["containers"][0]["resources"]
        api.make(PODS, pod)
    api.settle()

    api.patch(f"{PODS}/one/resize", sized("3"), "strategic")
    api.settle()
    grown = api.get(f"{PODS}/one").tree
    api.patch(f"{PODS}/two/resize", sized("2"), "strategic")
    api.settle()
    deferred = api.get(f"{PODS}/two").tree
    api.delete(f"{PODS}/one", {"gracePeriodSeconds": 0})
    api.advance(10)
    later = api.get(f"{PODS}/two").tree

    assert grown["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    assert grown["status"]["containerStatuses"][0]["allocatedResources"] == {"cpu": "3"}
    assert grown["metadata"]["generation"] == grown["status"]["observedGeneration"] == 2
    (pending,) = (c for c in deferred["status"]["conditions"] if c["type"] == "PodResizePending")
    assert (pending["reason"], pending["message"]) == (
        "Deferred",
        "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
    )
    assert deferred["status"]["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}
    assert later["status"]["containerStatuses"][0]["allocatedResources"] == {"cpu": "2"}
    assert "PodResizePending" not in [c["type"] for c in later["status"]["conditions"]]


@pytest.mark.parametrize(
    ("patch", "field", "message"),
    [
        pytest.param(
            sized("1", **{"example.com/gpu": "1"}),
            "spec",
            "Forbidden: only cpu and memory resources are mutable",
            id="another resource",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "resources": None}]}},
            "spec.containers[0].resources.requests",
            "Forbidden: resource requests cannot be removed",
            id="no requests any more",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "more", "image": "app:1"}]}},
            "spec.containers",
            "Forbidden: containers may not be added or removed on resize",
            id="another container",
        ),
    ],
)
def test_a_resize_that_is_refused(
    api: ServerInThread, patch: dict[str, Any], field: str, message: str
) -> None:
    pod = pod_tree("one", nodeName="a")
    pod["spec"]["containers"][0]["resources"] = sized("1")["spec"]["containers"][0]["resources"]
    api.make(PODS, pod)

    answer = api.patch(f"{PODS}/one/resize", patch, "strategic")

    assert answer.status == 422
    found = [(cause["field"], cause["message"]) for cause in answer.tree["details"]["causes"]]
    assert (field, message) in found


def test_a_resize_changes_nothing_but_resources(api: ServerInThread) -> None:
    pod = pod_tree("one", nodeName="a")
    pod["spec"]["containers"][0]["resources"] = sized("1")["spec"]["containers"][0]["resources"]
    api.make(PODS, pod)
    patch = sized("2")
    patch["spec"]["containers"][0]["image"] = "other:1"
    patch["metadata"] = {"labels": {"a": "b"}}

    answer = api.patch(f"{PODS}/one/resize", patch, "strategic")

    (container,) = answer.tree["spec"]["containers"]
    assert (container["image"], container["resources"]["requests"]) == ("app:1", {"cpu": "2"})
    assert "a" not in (answer.tree["metadata"].get("labels") or {})
