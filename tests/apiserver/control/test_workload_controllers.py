"""Workloads: complete pods, statuses and rollouts."""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, api_server, bind_tree, workload_tree
from tests.rig.trees import node_tree

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def template(image: str = "app:1", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "env": [{"name": "A", "value": "1"}]}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **more}}


def bind_all(api: ServerInThread) -> None:
    """A trivial scheduler: binds all pods to node a, unless they require another."""
    for pod in api.get(f"{PODS}?fieldSelector=spec.nodeName%3D").tree["items"]:
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity")
        node = "a"
        if affinity:
            terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            node = terms[0]["matchFields"][0]["values"][0]
        name = pod["metadata"]["name"]
        assert api.post(f"{PODS}/{name}/binding", bind_tree(name, node)).status == 201
    api.settle()


@pytest.fixture
def world(api: ServerInThread) -> ServerInThread:
    api.make("/api/v1/nodes", node_tree("a"), node_tree("b"))
    return api


def test_a_deployment_gets_its_pods_with_all_fields_of_the_template(world: ServerInThread) -> None:
    world.make(f"{APPS}/deployments", workload_tree("Deployment", "web", 2, template=template()))
    world.settle()
    bind_all(world)

    pods = world.get(PODS).tree["items"]
    status = world.get(f"{APPS}/deployments/web").tree["status"]

    assert len(pods) == 2
    assert pods[0]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    owner = pods[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    assert status["observedGeneration"] == 1
    assert status["updatedReplicas"] == status["availableReplicas"] == status["replicas"] == 2
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"Available": "True", "Progressing": "True"}


def test_a_change_irrelevant_to_placement_is_rolled_out_too(world: ServerInThread) -> None:
    path = f"{APPS}/deployments/web"
    world.make(f"{APPS}/deployments", workload_tree("Deployment", "web", 2, template=template()))
    world.settle()
    changed = template()
    changed["spec"]["containers"][0]["env"][0]["value"] = "2"

    bind_all(world)
    world.patch(path, {"spec": {"template": changed}})
    world.settle()
    sizes = [rs["spec"]["replicas"] for rs in world.get(f"{APPS}/replicasets").tree["items"]]
    assert sorted(sizes) == [1, 2], "one more than wanted, and none less, is 25% of two"
    for _ in range(2):
        bind_all(world)
        world.advance(60)

    sets = world.get(f"{APPS}/replicasets").tree["items"]
    assert sorted(rs["spec"]["replicas"] for rs in sets) == [0, 2]
    values = {p["spec"]["containers"][0]["env"][0]["value"] for p in world.get(PODS).tree["items"]}
    assert values == {"2"}
    notes = world.get(path).tree["metadata"]["annotations"]
    assert notes["deployment.kubernetes.io/revision"] == "2"


def test_a_rollback_is_a_new_revision_of_the_old_replica_set(world: ServerInThread) -> None:
    path = f"{APPS}/deployments/web"
    world.make(f"{APPS}/deployments", workload_tree("Deployment", "web", 1, template=template()))
    world.settle()
    for image in ("app:2", "app:1"):
        world.patch(path, {"spec": {"template": template(image)}})
        world.settle()
        bind_all(world)

    sets = world.get(f"{APPS}/replicasets").tree["items"]
    key = "deployment.kubernetes.io/revision"
    found = {
        rs["spec"]["template"]["spec"]["containers"][0]["image"]: (
            rs["metadata"]["annotations"][key],
            rs["spec"]["replicas"],
        )
        for rs in sets
    }
    assert found == {"app:1": ("3", 1), "app:2": ("2", 0)}


def test_a_replica_set_has_the_annotations_that_a_cluster_gives_it(world: ServerInThread) -> None:
    tree = workload_tree("Deployment", "web", 4, template=template())
    tree["metadata"]["annotations"] = {"team": "a", "deployment.kubernetes.io/revision": "7"}
    world.make(f"{APPS}/deployments", tree)
    world.settle()
    (first,) = world.get(f"{APPS}/replicasets").tree["items"]
    world.patch(f"{APPS}/deployments/web/scale", {"spec": {"replicas": 8}})
    world.settle()
    (second,) = world.get(f"{APPS}/replicasets").tree["items"]

    start = "deployment.kubernetes.io/"
    of_first, of_second = (
        {k.removeprefix(start): v for k, v in one["metadata"]["annotations"].items()}
        for one in (first, second)
    )
    assert of_first == {
        "team": "a",
        "revision": "1",
        "desired-replicas": "4",
        "max-replicas": "5",
    }
    assert (of_second["desired-replicas"], of_second["max-replicas"]) == ("8", "10")


def claims_of(world: ServerInThread) -> dict[str, list[str]]:
    """The names of the claims, with the kinds of their owners."""
    claims = world.get("/api/v1/namespaces/default/persistentvolumeclaims").tree["items"]
    return {
        claim["metadata"]["name"]: [o["kind"] for o in claim["metadata"].get("ownerReferences", [])]
        for claim in claims
    }


def test_claims_of_a_stateful_set_go_as_its_retention_policy_says(world: ServerInThread) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    spec = {
        "volumeClaimTemplates": [claim],
        "podManagementPolicy": "Parallel",
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    tree = workload_tree("StatefulSet", "web", 2, template=template())
    tree["spec"].update(spec)
    world.make(f"{APPS}/statefulsets", tree)
    world.settle()
    assert claims_of(world) == {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]}

    world.patch(f"{APPS}/statefulsets/web/scale", {"spec": {"replicas": 1}})
    world.advance(60)
    assert claims_of(world) == {"data-web-0": ["StatefulSet"]}

    world.delete(f"{APPS}/statefulsets/web")
    world.advance(60)
    assert claims_of(world) == {}


def test_nodes_are_annotated_with_the_time_to_live_of_secrets(world: ServerInThread) -> None:
    world.settle()
    nodes = world.get("/api/v1/nodes").tree["items"]

    notes = [node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] for node in nodes]
    assert notes == ["0", "0"]


def test_scaling_up_and_down(world: ServerInThread) -> None:
    path = f"{APPS}/replicasets"
    world.make(path, workload_tree("ReplicaSet", "web", 3))
    world.settle()
    bind_all(world)

    world.patch(f"{path}/web/scale", {"spec": {"replicas": 1}})
    world.advance(30)

    assert len(world.get(PODS).tree["items"]) == 1
    assert world.get(f"{path}/web").tree["status"]["readyReplicas"] == 1


def test_a_pod_that_is_deleted_is_replaced(world: ServerInThread) -> None:
    world.make(f"{APPS}/replicasets", workload_tree("ReplicaSet", "web", 1))
    world.settle()
    (first,) = world.get(PODS).names

    world.delete(f"{PODS}/{first}")
    world.settle()

    (second,) = world.get(PODS).names
    assert second != first


def test_a_stateful_set_has_numbered_pods_with_claims(world: ServerInThread) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volumes = [{"name": "conf", "configMap": {"name": "c"}}]
    world.make(
        f"{APPS}/statefulsets",
        workload_tree(
            "StatefulSet",
            "web",
            2,
            serviceName="web",
            template=template(volumes=volumes),
            volumeClaimTemplates=[claim],
        ),
    )
    world.settle()
    assert world.get(PODS).names == ["web-0"], "the second is created when the first is ready"
    bind_all(world)
    bind_all(world)

    pods = world.get(PODS).tree["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["web-0", "web-1"]
    named = {volume["name"]: volume for volume in pods[0]["spec"]["volumes"]}
    assert named["data"] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "data-web-0"},
    }
    assert named["conf"]["configMap"]["name"] == "c"
    claims = world.get("/api/v1/namespaces/default/persistentvolumeclaims").names
    assert claims == ["data-web-0", "data-web-1"]
    status = world.get(f"{APPS}/statefulsets/web").tree["status"]
    assert status["readyReplicas"] == status["updatedReplicas"] == 2
    assert status["currentRevision"] == status["updateRevision"]


def test_a_new_template_replaces_the_pods_of_a_stateful_set(world: ServerInThread) -> None:
    path = f"{APPS}/statefulsets"
    world.make(path, workload_tree("StatefulSet", "web", 1, template=template()))
    world.settle()
    bind_all(world)

    world.patch(f"{path}/web", {"spec": {"template": template("app:2")}})
    world.advance(30)
    bind_all(world)

    (pod,) = world.get(PODS).tree["items"]
    assert pod["metadata"]["name"] == "web-0"
    assert pod["spec"]["containers"][0]["image"] == "app:2"
    assert world.get(f"{path}/web").tree["status"]["updatedReplicas"] == 1


def test_the_next_pod_of_a_stateful_set_comes_when_the_one_before_was_ready_long_enough(
    world: ServerInThread,
) -> None:
    tree = workload_tree("StatefulSet", "web", 2, template=template())
    tree["spec"]["minReadySeconds"] = 30
    world.make(f"{APPS}/statefulsets", tree)
    world.settle()
    bind_all(world)

    numbers = []
    for seconds in (29, 1):
        world.advance(seconds)
        world.settle()
        numbers.append(len(world.get(PODS).tree["items"]))

    assert numbers == [1, 2]


def test_pods_below_a_partition_keep_their_template_also_after_a_restart(tmp_path: Path) -> None:
    with api_server(tmp_path) as server:
        server.make("/api/v1/nodes", node_tree("a"))
        tree = workload_tree("StatefulSet", "web", 2, template=template())
        tree["spec"]["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": 1},
        }
        server.make(f"{APPS}/statefulsets", tree)
        for _ in range(2):
            server.settle()
            bind_all(server)
        changed = template("app:2")
        changed["spec"]["containers"][0]["env"][0]["value"] = "2"
        server.patch(f"{APPS}/statefulsets/web", {"spec": {"template": changed}})
        server.settle()
        server.advance(60)
        bind_all(server)
    with api_server(tmp_path) as server:
        server.delete(f"{PODS}/web-0?gracePeriodSeconds=0")
        server.settle()

        pods = [server.get(f"{PODS}/web-{number}").tree for number in (0, 1)]
        containers = [pod["spec"]["containers"][0] for pod in pods]
        revisions = server.get(f"{APPS}/controllerrevisions").tree["items"]
        status = server.get(f"{APPS}/statefulsets/web").tree["status"]
        names = [pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods]

        assert [c["image"] for c in containers] == ["app:1", "app:2"]
        assert [c["env"][0]["value"] for c in containers] == ["1", "2"]
        assert names == [status["currentRevision"], status["updateRevision"]]
        assert {r["metadata"]["name"]: r["revision"] for r in revisions} == {
            names[0]: 1,
            names[1]: 2,
        }


@pytest.mark.parametrize(
    ("kind", "path", "ready", "available"),
    [
        pytest.param(
            "Deployment", "deployments", "readyReplicas", "availableReplicas", id="a deployment"
        ),
        pytest.param(
            "ReplicaSet", "replicasets", "readyReplicas", "availableReplicas", id="a replica set"
        ),
        pytest.param(
            "DaemonSet", "daemonsets", "numberReady", "numberAvailable", id="a daemon set"
        ),
        pytest.param(
            "StatefulSet", "statefulsets", "readyReplicas", "availableReplicas", id="a stateful set"
        ),
    ],
)
def test_a_ready_pod_counts_as_available_after_min_ready_seconds(
    world: ServerInThread, kind: str, path: str, ready: str, available: str
) -> None:
    replicas = None if kind == "DaemonSet" else 2
    tree = workload_tree(kind, "web", replicas, template=template(), minReadySeconds=30)
    tree["spec"].update({"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {})
    world.make(f"{APPS}/{path}", tree)
    world.settle()
    bind_all(world)

    seen = []
    for seconds in (29, 1):
        world.advance(seconds)
        status = world.get(f"{APPS}/{path}/web").tree["status"]
        seen.append((status.get(ready, 0), status.get(available, 0)))

    assert seen == [(2, 0), (2, 2)]


def test_a_daemon_set_is_on_every_node(world: ServerInThread) -> None:
    path = f"{APPS}/daemonsets"
    world.make(path, workload_tree("DaemonSet", "web"))
    world.settle()
    bind_all(world)
    world.make("/api/v1/nodes", node_tree("c"))
    world.settle()
    bind_all(world)

    nodes = {pod["spec"]["nodeName"] for pod in world.get(PODS).tree["items"]}
    status = world.get(f"{path}/web").tree["status"]
    assert nodes == {"a", "b", "c"}
    assert status["desiredNumberScheduled"] == status["numberReady"] == 3
    assert status["updatedNumberScheduled"] == 3


def test_a_job_runs_its_pods_to_completion(world: ServerInThread) -> None:
    pod = template(restartPolicy="Never")
    pod["metadata"] = {"annotations": {"bayplan.dev/duration": "5s"}}
    world.make(
        JOBS,
        {
            "metadata": {"name": "sum"},
            "spec": {"completions": 3, "parallelism": 2, "template": pod},
        },
    )
    world.settle()
    active = world.get(f"{JOBS}/sum").tree["status"]["active"]
    for _ in range(2):
        bind_all(world)
        world.advance(5)

    job = world.get(f"{JOBS}/sum").tree
    assert active == 2
    assert job["status"]["succeeded"] == 3
    assert job["status"]["completionTime"]
    conditions = {c["type"] for c in job["status"]["conditions"] if c["status"] == "True"}
    assert "Complete" in conditions
    (first, *_) = world.get(PODS).tree["items"]
    assert first["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "sum"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"selector": None}, "spec.selector", id="no selector"),
        pytest.param(
            {"selector": {"matchLabels": {"app": "x"}}},
            "spec.template.metadata.labels",
            id="a selector that does not match its own pods",
        ),
        pytest.param({"replicas": -1}, "spec.replicas", id="a negative number"),
        pytest.param(
            {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
            "spec.template.spec.containers",
            id="no containers",
        ),
    ],
)
def test_invalid_workloads(world: ServerInThread, change: Any, field: str) -> None:
    answer = world.post(f"{APPS}/deployments", workload_tree("Deployment", "web", **change))

    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.tree["details"]["causes"]]


def test_a_selector_cannot_be_changed(world: ServerInThread) -> None:
    world.make(f"{APPS}/deployments", workload_tree("Deployment", "web", 1))
    labels = {"app": "other"}

    answer = world.patch(
        f"{APPS}/deployments/web",
        {
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}},
            }
        },
    )

    assert answer.tree["details"]["causes"][0]["field"] == "spec.selector"


def test_rejected_pods_are_reported_and_retried(world: ServerInThread) -> None:
    pod = template(priorityClassName="later")
    pod["metadata"]["labels"] = {"app": "bad"}
    world.make(f"{APPS}/replicasets", workload_tree("ReplicaSet", "bad", 1, template=pod))
    world.make(f"{APPS}/replicasets", workload_tree("ReplicaSet", "good", 1))
    world.settle()
    before = [p["metadata"]["generateName"] for p in world.get(PODS).tree["items"]]
    events = world.get("/api/v1/namespaces/default/events").tree["items"]

    world.make(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "later"}, "value": 5}
    )
    world.advance(10)

    assert before == ["good-"], "one that fails does not hold the other up"
    assert {(e["reason"], e["involvedObject"]["name"]) for e in events} == {
        ("FailedCreate", "bad"),
        ("SuccessfulCreate", "good"),
    }
    after = {p["metadata"]["generateName"]: p for p in world.get(PODS).tree["items"]}
    assert after["bad-"]["spec"]["priority"] == 5


def test_a_cron_job_creates_its_jobs_at_their_times_with_all_fields(world: ServerInThread) -> None:
    path = "/apis/batch/v1/namespaces/default/cronjobs"
    job = {"spec": {"template": template(restartPolicy="Never")}}
    spec = {"schedule": "*/10 * * * *", "jobTemplate": job, "concurrencyPolicy": "Forbid"}
    head = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}}
    world.make(path, {**head, "spec": spec})
    world.settle()
    assert world.get(JOBS).names == []

    world.advance(600)

    (made,) = world.get(JOBS).tree["items"]
    assert made["metadata"]["name"] == "c-29453770"
    assert made["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    status = world.get(f"{path}/c").tree["status"]
    assert status["lastScheduleTime"] == "2026-01-01T00:10:00Z"
    assert [reference["name"] for reference in status["active"]] == ["c-29453770"]

    world.advance(600)  # the first one still runs
    assert world.get(JOBS).names == ["c-29453770"]


def test_the_status_of_a_quota_says_what_is_used(world: ServerInThread) -> None:
    quotas = "/api/v1/namespaces/default/resourcequotas"
    hard = {"pods": "2", "requests.cpu": "1", "count/deployments.apps": "9", "services": "1"}
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    world.make(quotas, {**head, "spec": {"hard": hard}})
    small = template()
    small["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "300m"}}
    world.make(f"{APPS}/deployments", workload_tree("Deployment", "web", 3, template=small))
    world.settle()

    status = world.get(f"{quotas}/q").tree["status"]

    assert status["hard"] == hard
    assert status["used"] == {
        "pods": "2",
        "requests.cpu": "600m",
        "count/deployments.apps": "1",
        "services": "1",  # kubernetes, which every cluster has
    }
    events = world.get("/api/v1/namespaces/default/events").tree["items"]
    messages = [event["message"] for event in events if event["reason"] == "FailedCreate"]
    assert any("exceeded quota: q, requested: pods=1, used: pods=2" in text for text in messages)
