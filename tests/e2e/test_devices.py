"""Devices: ResourceClaims are allocated with the node, written before the pod is bound, and
deallocated."""

from typing import Any

from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.follower import ListFollower

DRIVER = "gpu.example.com"


def make_class(cluster: ClusterUnderTest) -> None:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    cluster.make("DeviceClass", cluster.namespace, spec={"selectors": [selector]})


def make_slice(cluster: ClusterUnderTest, node: str, *devices: dict[str, Any]) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices)}
    cluster.make("ResourceSlice", f"{cluster.namespace}-{node}", spec=spec)


def make_claim(cluster: ClusterUnderTest, name: str, *selectors: str) -> None:
    exactly = {
        "deviceClassName": cluster.namespace,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    requests = [{"name": "gpu", "exactly": exactly}]
    cluster.make("ResourceClaim", name, spec={"devices": {"requests": requests}})


def uses(claim: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}


def status_of(cluster: ClusterUnderTest, name: str) -> Any:
    return cluster.client.get(cluster.path("ResourceClaim", name)).get("status") or {}


def given_to(status: Tree) -> list[str]:
    """The devices of an allocation, as pool/device."""
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return [f"{result['pool']}/{result['device']}" for result in results]


def test_a_claim_is_written_before_its_pod_is_bound(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.node("b")
    make_class(cluster)
    make_slice(cluster, "a", {"name": "gpu-0", "attributes": {"model": {"string": "old"}}})
    make_slice(cluster, "b", {"name": "gpu-0", "attributes": {"model": {"string": "new"}}})
    make_claim(cluster, "fine", f'device.attributes["{DRIVER}"].model == "new"')
    make_claim(cluster, "greedy", f'device.attributes["{DRIVER}"].model == "new"')
    cluster.start_scheduler()

    pod = cluster.pod("trainer", **uses("fine"))

    assert cluster.wait_bound("trainer") == "b"
    status = status_of(cluster, "fine")
    assert given_to(status) == ["b/gpu-0"]
    assert [user["uid"] for user in status["reservedFor"]] == [pod["metadata"]["uid"]]
    cluster.pod("shares", **uses("fine"))
    assert cluster.wait_bound("shares") == "b"
    cluster.pod("late", **uses("greedy"))
    cluster.wait_refused("late", "cannot allocate all claims")
    assert given_to(status_of(cluster, "greedy")) == []


def test_deallocated_devices_are_allocated_again(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    make_class(cluster)
    make_slice(cluster, "a", {"name": "gpu-0"})
    make_claim(cluster, "first")
    make_claim(cluster, "second")
    cluster.start_scheduler()
    cluster.pod("trainer", **uses("first"))
    assert cluster.wait_bound("trainer") == "a"
    cluster.pod("waits", **uses("second"))
    cluster.wait_refused("waits", "cannot allocate all claims")

    cluster.client.delete(cluster.path("Pod", "trainer"), gracePeriodSeconds=0)
    cluster.wait_gone("trainer")
    path = cluster.path("ResourceClaim", "first") + "/status"
    cluster.client.patch(path, {"status": {"reservedFor": None, "allocation": None}})

    assert cluster.wait_bound("waits") == "a"
    assert given_to(status_of(cluster, "second")) == ["a/gpu-0"]


def test_a_device_that_fails_to_bind_is_replaced(cluster: ClusterUnderTest) -> None:
    """The pod waits in PreBind, its claim written; the device fails; claim and pod move to another
    node."""
    cluster.node("a")
    cluster.node("b", unschedulable=True)
    make_class(cluster)
    slow = {"bindsToNode": True, "bindingConditions": ["ready"]}
    make_slice(cluster, "a", {"name": "gpu-0", **slow, "bindingFailureConditions": ["broken"]})
    make_slice(cluster, "b", {"name": "gpu-0"})
    make_claim(cluster, "one")
    claims = ListFollower(cluster.client, cluster.path("ResourceClaim"))
    key = (cluster.namespace, "one")
    cluster.start_scheduler()
    cluster.pod("trainer", **uses("one"))
    claims.wait(lambda known: given_to(known[key].get("status") or {}), "a device is given")
    assert given_to(status_of(cluster, "one")) == ["a/gpu-0"]
    assert cluster.node_of("trainer") == ""

    cluster.client.patch(cluster.path("Node", "a"), {"spec": {"unschedulable": True}})
    cluster.client.patch(cluster.path("Node", "b"), {"spec": {"unschedulable": None}})
    broken = {"type": "broken", "status": "True", "reason": "Dead", "message": "it is dead"}
    when = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    device = {"driver": DRIVER, "pool": "a", "device": "gpu-0", "conditions": [{**broken, **when}]}
    path = cluster.path("ResourceClaim", "one") + "/status"
    cluster.client.patch(path, {"status": {"devices": [device]}})

    assert cluster.wait_bound("trainer") == "b"
    assert given_to(status_of(cluster, "one")) == ["b/gpu-0"]
    claims.stop()


def test_a_taint_rule_keeps_pods_from_devices_until_it_is_gone(
    device_cluster: ClusterUnderTest,
) -> None:
    cluster = device_cluster
    cluster.node("a")
    make_class(cluster)
    make_slice(cluster, "a", {"name": "gpu-0"})
    make_claim(cluster, "claim")
    rule = {"deviceSelector": {"pool": "a"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    cluster.make("DeviceTaintRule", cluster.namespace, spec=rule)
    cluster.start_scheduler()

    cluster.pod("trainer", **uses("claim"))

    cluster.wait_refused("trainer", "cannot allocate all claims")
    cluster.client.delete(cluster.path("DeviceTaintRule", cluster.namespace))
    assert cluster.wait_bound("trainer") == "a"


def test_devices_use_up_resources_of_their_node(device_cluster: ClusterUnderTest) -> None:
    cluster = device_cluster
    cluster.node("a", room={"cpu": "4", "memory": "8Gi", "pods": "10"})
    make_class(cluster)
    mappings = {"cpu": {"allocationMultiplier": "2"}}
    make_slice(cluster, "a", {"name": "cores", "nodeAllocatableResourceMappings": mappings})
    make_claim(cluster, "claim")
    cluster.start_scheduler()
    container = {
        "name": "main",
        "image": "x",
        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
    }

    cluster.pod("trainer", containers=[container], **uses("claim"))

    assert cluster.wait_bound("trainer") == "a"
    status = cluster.client.get(cluster.path("Pod", "trainer"))["status"]
    assert status["nodeAllocatableResourceClaimStatuses"] == [
        {"resourceClaimName": "claim", "containers": ["main"], "resources": {"cpu": "2"}}
    ]
    cluster.pod("large", requests={"cpu": "2"})
    cluster.wait_refused("large", "Insufficient cpu")
    cluster.pod("small", requests={"cpu": "1"})
    assert cluster.wait_bound("small") == "a"
