"""Embedded cluster: the scheduler's operations on the objects of `bayplan up`."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod, PodCondition
from bayplan.apiserver.control.embedded_cluster import LiveCluster
from bayplan.errors import ApiError, ConflictError, NotFoundError
from bayplan.framework.handle import PodEvent
from bayplan.testing.builders import make_pod
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

EVENTS = "/api/v1/namespaces/default/events"
REFUSED = PodCondition("PodScheduled", "False", reason="Unschedulable", message="no room")


@pytest.fixture
def world(api: ServerInThread) -> ServerInThread:
    api.make("/api/v1/nodes", node_tree("a"), node_tree("b"))
    api.make(PODS, pod_tree("web"))
    return api


def cluster_of(api: ServerInThread) -> LiveCluster:
    return api.server.plane.cluster


def stored(api: ServerInThread, name: str = "web") -> Pod:
    found = api.within(lambda server: server.plane.cluster.get("Pod", "default", name))
    assert isinstance(found, Pod)
    return found


def status_of(api: ServerInThread, name: str = "web") -> dict[str, Any]:
    status: dict[str, Any] = api.get(f"{PODS}/{name}").tree["status"]
    return status


def test_a_condition_and_a_nomination_are_written_and_cleared(world: ServerInThread) -> None:
    cluster, pod = cluster_of(world), stored(world)

    world.within(lambda _: cluster.patch_status(pod, REFUSED, "a"))
    nominated = status_of(world)
    world.within(lambda _: cluster.clear_nomination(pod))

    (condition,) = (c for c in nominated["conditions"] if c["type"] == "PodScheduled")
    assert (condition["reason"], condition["message"]) == ("Unschedulable", "no room")
    assert nominated["nominatedNodeName"] == "a"
    assert "nominatedNodeName" not in status_of(world)
    assert status_of(world)["conditions"] == nominated["conditions"], "conditions stay"


def test_the_status_of_a_pod_that_is_gone_is_not_written(world: ServerInThread) -> None:
    world.within(lambda _: cluster_of(world).patch_status(make_pod("gone"), REFUSED, None))

    assert world.get(f"{PODS}/gone").status == 404


def test_a_victim_is_evicted_once(world: ServerInThread) -> None:
    cluster, pod = cluster_of(world), stored(world)
    world.within(lambda _: cluster.bind(pod, "a"))
    victim, preemptor = stored(world), make_pod("urgent", priority=9)

    world.within(lambda _: cluster.evict(replace(victim, uid="of another"), preemptor))
    untouched = world.get(f"{PODS}/web").tree
    for _ in range(2):
        world.within(lambda _: cluster.evict(victim, preemptor))
    evicted = world.get(f"{PODS}/web").tree

    assert "deletionTimestamp" not in untouched["metadata"]
    assert "deletionTimestamp" in evicted["metadata"]
    assert "DisruptionTarget" in [one["type"] for one in evicted["status"]["conditions"]]
    reasons = [event["reason"] for event in world.get(EVENTS).tree["items"]]
    assert reasons.count("Preempted") == 1


@pytest.mark.parametrize(
    ("pod", "node", "error"),
    [
        pytest.param({"uid": "of another"}, "a", ConflictError, id="a pod that was replaced"),
        pytest.param({"name": "gone", "uid": ""}, "a", NotFoundError, id="a pod that is gone"),
        pytest.param({}, "", ApiError, id="no node"),
    ],
)
def test_a_binding_that_the_api_refuses(
    world: ServerInThread, pod: dict[str, str], node: str, error: type[Exception]
) -> None:
    wrong = replace(stored(world), **pod)

    with pytest.raises(error):
        world.within(lambda _: cluster_of(world).bind(wrong, node))

    assert "nodeName" not in world.get(f"{PODS}/web").tree["spec"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"name": "gone"}, NotFoundError, id="of an object that is gone"),
        pytest.param({"uid": "of another"}, ConflictError, id="of an object that was replaced"),
    ],
)
def test_an_update_that_fails(
    world: ServerInThread, changes: dict[str, str], error: type[Exception]
) -> None:
    wrong = replace(stored(world), **changes)

    with pytest.raises(error):
        world.within(lambda _: cluster_of(world).update(wrong))


def test_an_update_of_an_older_version_is_a_conflict(world: ServerInThread) -> None:
    cluster = cluster_of(world)
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    world.make(path, {**head, "spec": spec})
    claim: Any = world.within(lambda _: cluster.get("PersistentVolumeClaim", "default", "data"))
    world.patch(f"{path}/data", {"metadata": {"labels": {"tier": "gold"}}})

    with pytest.raises(ConflictError, match="was changed since it was read"):
        world.within(lambda _: cluster.update(claim))


def test_equal_events_of_a_scheduler_are_counted(world: ServerInThread) -> None:
    cluster, pod = cluster_of(world), stored(world)
    event = PodEvent(pod, "Warning", "FailedScheduling", "Scheduling", "0/2 nodes are available")
    others = PodEvent(pod, "Normal", "Scheduled", "Binding", "assigned", related=make_pod("other"))

    def record(_: object) -> None:
        for one in (event, event, event, others):
            cluster.record_event(one)

    world.within(record)

    found = {item["reason"]: item for item in world.get(EVENTS).tree["items"]}
    assert found["FailedScheduling"]["series"]["count"] == 3
    assert "series" not in found["Scheduled"]
    assert found["Scheduled"]["related"]["name"] == "other"


def test_an_event_that_was_deleted_is_written_again(world: ServerInThread) -> None:
    cluster, pod = cluster_of(world), stored(world)
    event = PodEvent(pod, "Warning", "FailedScheduling", "Scheduling", "no room")
    world.within(lambda _: cluster.record_event(event))
    (name,) = world.get(EVENTS).names
    world.delete(f"{EVENTS}/{name}")

    world.within(lambda _: cluster.record_event(event))

    (found,) = world.get(EVENTS).tree["items"]
    assert "series" not in found


def test_an_event_in_a_namespace_that_ends_is_dropped(world: ServerInThread) -> None:
    world.make("/api/v1/namespaces", {"metadata": {"name": "old", "finalizers": ["a.example/b"]}})
    world.delete("/api/v1/namespaces/old")
    event = PodEvent(make_pod("web", namespace="old"), "Warning", "FailedScheduling", "", "no room")

    world.within(lambda _: cluster_of(world).record_event(event))

    assert world.get("/api/v1/namespaces/old/events").names == []
