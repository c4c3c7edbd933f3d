"""The API as schedulers rely on it: refusals and their form. Both servers must give the same
responses."""

from typing import Any

import pytest

from tests.rig.live.client import PATCH_TYPES, LiveResponse
from tests.rig.live.cluster import ClusterUnderTest, pod_tree
from tests.rig.live.kinds import with_head

OTHER_UID = "00000000-0000-0000-0000-000000000000"
EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-1",
    "action": "Binding",
    "reason": "Scheduled",
    "note": "Successfully assigned",
    "type": "Normal",
}


def bind(cluster: ClusterUnderTest, name: str, node: str, uid: str = "") -> LiveResponse:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **({"uid": uid} if uid else {})},
        "target": {"kind": "Node", "name": node},
    }
    return cluster.client.request("POST", f"{cluster.path('Pod', name)}/binding", body)


def outcome(answer: LiveResponse) -> tuple[int, str]:
    """The code and, for a refusal, its reason."""
    is_refusal = answer.tree.get("kind") == "Status"
    return answer.status, answer.tree.get("reason", "") if is_refusal else ""


def test_a_pod_is_bound_once(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    uid = cluster.pod("p")["metadata"]["uid"]

    assert outcome(bind(cluster, "p", "a", OTHER_UID)) == (409, "Conflict")
    assert outcome(bind(cluster, "none", "a")) == (404, "NotFound")
    assert outcome(bind(cluster, "p", "a", uid)) == (201, "")
    assert outcome(bind(cluster, "p", "a", uid)) == (409, "Conflict")
    assert outcome(bind(cluster, "p", "b", uid)) == (409, "Conflict")
    assert cluster.wait_bound("p") == "a"


def test_a_pod_with_gates_is_not_bound(cluster: ClusterUnderTest) -> None:
    cluster.pod("gated", schedulingGates=[{"name": "example.com/quota"}])

    assert outcome(bind(cluster, "gated", "a")) == (409, "Conflict")


def test_a_patch_applies_only_to_the_named_object(cluster: ClusterUnderTest) -> None:
    uid = cluster.pod("p")["metadata"]["uid"]
    path = cluster.path("Pod", "p") + "/status"

    def patch(uid: str) -> LiveResponse:
        body = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": "a"}}
        return cluster.client.request("PATCH", path, body, PATCH_TYPES["strategic"])

    assert outcome(patch(OTHER_UID)) == (422, "Invalid")
    assert outcome(patch(uid)) == (200, "")


def test_a_delete_with_a_uid_applies_only_to_that_pod(cluster: ClusterUnderTest) -> None:
    uid = cluster.pod("p")["metadata"]["uid"]
    path = cluster.path("Pod", "p")

    def delete(uid: str) -> LiveResponse:
        return cluster.client.request("DELETE", path, {"preconditions": {"uid": uid}})

    assert outcome(delete(OTHER_UID)) == (409, "Conflict")
    assert delete(uid).status == 200
    assert outcome(delete(uid)) == (404, "NotFound")


def test_a_bound_pod_is_deleted_after_its_grace_period(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.pod("p", terminationGracePeriodSeconds=2, nodeName="a")

    answer = cluster.client.request("DELETE", cluster.path("Pod", "p"), {})

    assert answer.tree["metadata"]["deletionGracePeriodSeconds"] == 2
    assert cluster.client.find(cluster.path("Pod", "p")) is not None
    cluster.wait_gone("p")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, (201, ""), id="as kube-scheduler writes it"),
        pytest.param({"eventTime": None}, (422, "Invalid"), id="without a time"),
        pytest.param({"action": ""}, (422, "Invalid"), id="without an action"),
        pytest.param(
            {"reportingController": ""}, (422, "Invalid"), id="without a reporting controller"
        ),
        pytest.param({"note": "x" * 1024}, (201, ""), id="a long note"),
        pytest.param({"note": "x" * 1025}, (422, "Invalid"), id="a note that is too long"),
        pytest.param({"type": "Strange"}, (422, "Invalid"), id="a type of its own"),
    ],
)
def test_events(
    cluster: ClusterUnderTest, change: dict[str, Any], expected: tuple[int, str]
) -> None:
    namespace = cluster.namespace
    regarding = {"kind": "Pod", "namespace": namespace, "name": "p"}
    metadata = {"name": "p.1", "namespace": namespace}
    event = {**EVENT, "metadata": metadata, "regarding": regarding, **change}
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"

    assert outcome(cluster.client.request("POST", path, event)) == expected


def test_a_lease_that_changed_meanwhile_is_not_overwritten(cluster: ClusterUnderTest) -> None:
    lease = cluster.make("Lease", "l", spec={"holderIdentity": "a", "leaseDurationSeconds": 15})
    path = cluster.path("Lease", "l")
    lease["spec"]["holderIdentity"] = "b"

    assert outcome(cluster.client.request("PUT", path, lease)) == (200, "")
    assert outcome(cluster.client.request("PUT", path, lease)) == (409, "Conflict")


def test_a_claim_is_reserved_only_with_devices(cluster: ClusterUnderTest) -> None:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "none", "selectors": []}}]
    claim = cluster.make("ResourceClaim", "c", spec={"devices": {"requests": requests}})
    path = cluster.path("ResourceClaim", "c")
    users = [{"resource": "pods", "name": "p", "uid": "u"}]
    reserved = {"status": {"reservedFor": users}}
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    claim["spec"]["devices"]["requests"][0]["exactly"].pop("selectors", None)

    patched = cluster.client.request("PATCH", f"{path}/status", reserved, PATCH_TYPES["merge"])
    assert outcome(patched) == (422, "Invalid")
    assert outcome(cluster.client.request("PUT", path, claim)) == (200, "")


def test_extended_resources_have_limits(cluster: ClusterUnderTest) -> None:
    tree = with_head("Pod", pod_tree("p", {"example.com/gpu": "1"}))
    del tree["spec"]["containers"][0]["resources"]["limits"]

    answer = cluster.client.request("POST", cluster.path("Pod"), tree)

    assert outcome(answer) == (422, "Invalid")
    (cause,) = answer.tree["details"]["causes"]
    assert cause["field"] == "spec.containers[0].resources.limits"


def test_an_invalid_continue_token_is_refused(cluster: ClusterUnderTest) -> None:
    answer = cluster.client.request("GET", "/api/v1/pods?limit=1&continue=nonsense")

    assert outcome(answer) == (400, "BadRequest")
