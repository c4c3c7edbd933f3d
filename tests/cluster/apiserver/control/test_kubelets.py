"""Fake kubelets: what they report about nodes, and how long terminating pods stay."""

from typing import Any

import pytest

from bayplan.testing.api_server import (
    PODS,
    ServerInThread,
    api_server,
    node_tree,
    pod_tree,
    workload_tree,
)

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
    assert {key: status[key] for key in given} == given


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
