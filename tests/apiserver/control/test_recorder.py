"""Events of controllers and fake kubelets about objects."""

from collections import Counter
from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, workload_tree
from tests.rig.trees import node_tree, pod_tree

APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
def world(api: ServerInThread) -> ServerInThread:
    api.make(NODES, node_tree("a"), node_tree("b"))
    return api


def bound(notes: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A template of pods on node a."""
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": notes or {}},
        "spec": {**pod_tree("", nodeName="a")["spec"], **spec},
    }


def job_tree(name: str, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    return {**head, "spec": {"template": template, **spec}}


def about(api: ServerInThread, kind: str, name: str = "") -> list[dict[str, Any]]:
    """The events about objects of a kind."""
    api.settle()
    found = api.get(EVENTS).tree["items"]
    objects = [event["involvedObject"] for event in found]
    return [
        event
        for event, obj in zip(found, objects, strict=True)
        if obj["kind"] == kind and name in ("", obj["name"])
    ]


def told(api: ServerInThread, kind: str) -> list[tuple[str, str, str]]:
    """Reporter, reason and message of the events about objects of a kind."""
    return [
        (event["source"]["component"], event["reason"], event["message"])
        for event in about(api, kind)
    ]


def test_a_deployment_tells_of_each_scaling(world: ServerInThread) -> None:
    path = f"{APPS}/deployments"
    tree = workload_tree("Deployment", "web", 3)
    world.make(path, tree)
    world.settle()
    (found,) = world.get(f"{APPS}/replicasets").names

    world.patch(f"{path}/web", {"spec": {"replicas": 1}})

    reporter, reason = "deployment-controller", "ScalingReplicaSet"
    assert told(world, "Deployment") == [
        (reporter, reason, f"Scaled up replica set {found} from 0 to 3"),
        (reporter, reason, f"Scaled down replica set {found} from 3 to 1"),
    ]
    assert Counter(event["reason"] for event in about(world, "ReplicaSet")) == {
        "SuccessfulCreate": 3,
        "SuccessfulDelete": 2,
    }


def test_a_rollout_tells_of_both_replica_sets(world: ServerInThread) -> None:
    path = f"{APPS}/deployments"
    world.make(path, workload_tree("Deployment", "web", 2, template=bound()))
    world.settle()

    world.patch(
        f"{path}/web",
        {"spec": {"template": {"metadata": {"annotations": {"try": "2"}}}}},
    )

    words = [message.split() for _, _, message in told(world, "Deployment")]
    assert [(w[1], w[6], w[8]) for w in words] == [
        ("up", "0", "2"),
        ("up", "0", "1"),
        ("down", "2", "1"),
        ("up", "1", "2"),
        ("down", "1", "0"),
    ]


def test_events_beyond_the_tenth_are_combined_and_limited(world: ServerInThread) -> None:
    world.make(f"{APPS}/replicasets", workload_tree("ReplicaSet", "web", 100))

    events = about(world, "ReplicaSet")

    assert [event["count"] for event in events] == [1] * 9 + [16], "25 were written"
    assert events[-1]["message"].startswith("(combined from similar events): Created pod: web-")
    world.advance(300)
    world.patch(f"{APPS}/replicasets/web", {"spec": {"replicas": 101}})
    assert about(world, "ReplicaSet")[-1]["count"] == 92, "those that were not written count, too"


def test_a_stateful_set_tells_of_pods_and_claims(world: ServerInThread) -> None:
    tree = workload_tree("StatefulSet", "db", 1)
    tree["spec"]["volumeClaimTemplates"] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    world.make(f"{APPS}/statefulsets", tree)

    reporter = "statefulset-controller"
    assert told(world, "StatefulSet") == [
        (
            reporter,
            "SuccessfulCreate",
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        ),
        (reporter, "SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful"),
    ]


def test_a_daemon_set_tells_of_its_pods(world: ServerInThread) -> None:
    world.make(f"{APPS}/daemonsets", workload_tree("DaemonSet", "agent", None))

    assert [(r, why) for r, why, _ in told(world, "DaemonSet")] == [
        ("daemonset-controller", "SuccessfulCreate")
    ] * 2


def test_a_job_tells_how_it_ended(world: ServerInThread) -> None:
    notes = {"bayplan.dev/duration": "5s", "bayplan.dev/exit-code": "1"}
    for name, annotations in (("good", {"bayplan.dev/duration": "5s"}), ("bad", notes)):
        pod = bound(annotations, restartPolicy="Never")
        world.make(f"{BATCH}/jobs", job_tree(name, pod, backoffLimit=0))
    world.settle()
    world.advance(6)

    ends = [(event["type"], event["reason"], event["message"]) for event in about(world, "Job")]
    assert ("Normal", "Completed", "Job completed") in ends
    why = "Job has reached the specified backoff limit"
    assert ("Warning", "BackoffLimitExceeded", why) in ends
    (condition,) = [
        c
        for c in world.get(f"{BATCH}/jobs/bad").tree["status"]["conditions"]
        if c["type"] == "Failed"
    ]
    assert condition["message"] == why


def test_a_suspended_job_tells_so_and_when_it_goes_on(world: ServerInThread) -> None:
    world.make(f"{BATCH}/jobs", job_tree("j", bound(restartPolicy="Never"), suspend=True))
    world.settle()
    world.patch(f"{BATCH}/jobs/j", {"spec": {"suspend": False}})

    found = [(reason, message) for _, reason, message in told(world, "Job")]
    assert found[0] == ("Suspended", "Job suspended")
    assert ("Resumed", "Job resumed") in found


def test_a_cron_job_tells_of_its_jobs(world: ServerInThread) -> None:
    pod = bound({"bayplan.dev/duration": "5s"}, restartPolicy="Never")
    spec = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": pod}}}
    head = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}}
    world.make(f"{BATCH}/cronjobs", {**head, "spec": spec})
    world.settle()
    world.advance(600)
    world.advance(10)

    assert told(world, "CronJob") == [
        ("cronjob-controller", "SuccessfulCreate", "Created job c-29453770"),
        (
            "cronjob-controller",
            "SawCompletedJob",
            "Saw completed job: c-29453770, condition: Complete",
        ),
    ]


def test_a_kubelet_tells_of_starting_and_stopping(world: ServerInThread) -> None:
    world.make(PODS, pod_tree("web", nodeName="a"))
    world.settle()
    world.delete(f"{PODS}/web")

    events = about(world, "Pod")

    assert [event["reason"] for event in events] == ["Pulled", "Created", "Started", "Killing"]
    assert {event["involvedObject"]["fieldPath"] for event in events} == {"spec.containers{main}"}
    assert events[0]["source"] == {"component": "kubelet", "host": "a"}
    assert events[-1]["message"] == "Stopping container main"


def test_only_the_first_of_many_pods_are_told_of(world: ServerInThread) -> None:
    for number in range(80):
        world.make(PODS, pod_tree(f"web-{number}", nodeName="a"))

    started = [event for event in about(world, "Pod") if event["reason"] == "Started"]

    assert len(started) == 50


def test_a_claim_tells_why_it_waits(world: ServerInThread) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    classless = {**spec, "storageClassName": ""}
    world.make(CLAIMS, {**head, "metadata": {"name": "classless"}, "spec": classless})

    (event,) = about(world, "PersistentVolumeClaim", "classless")

    assert (event["source"]["component"], event["reason"]) == (
        "persistentvolume-controller",
        "FailedBinding",
    )


def test_a_cordon_and_an_eviction_by_a_taint_are_told_of(world: ServerInThread) -> None:
    world.make(PODS, pod_tree("web", nodeName="a"))
    world.settle()
    taint = {"key": "down", "effect": "NoExecute"}
    world.patch(f"{NODES}/a", {"spec": {"unschedulable": True, "taints": [taint]}})

    (cordon,) = about(world, "Node")
    assert cordon["message"] == "Node a status is now: NodeNotSchedulable"
    assert cordon["involvedObject"]["uid"] == "a", "as kubelets write it, and kubectl asks for it"
    words = [event["message"] for event in about(world, "Pod")]
    assert "Marking for deletion Pod default/web" in words


def test_events_expire(world: ServerInThread) -> None:
    world.make(f"{APPS}/replicasets", workload_tree("ReplicaSet", "web", 1))
    assert about(world, "ReplicaSet")

    world.advance(3660)

    assert not about(world, "ReplicaSet")
