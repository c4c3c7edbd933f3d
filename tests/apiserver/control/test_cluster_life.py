"""Controllers: garbage, namespaces, nodes, volumes, and the state after a restart."""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.api_server import (
    PODS,
    ServerInThread,
    api_server,
    bind_tree,
    config_map_tree,
    workload_tree,
)
from tests.rig.trees import node_tree, pod_tree

MAPS = "/api/v1/namespaces/default/configmaps"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def owned(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    tree = config_map_tree(name)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
    tree["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    return tree


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("Background", [], id="after the owner"),
        pytest.param("Foreground", [], id="before the owner"),
        pytest.param("Orphan", ["child", "grandchild"], id="not at all"),
    ],
)
def test_dependents_of_a_deleted_object(api: ServerInThread, policy: str, left: list[str]) -> None:
    boss = api.make(MAPS, config_map_tree("boss"))
    child = api.make(MAPS, owned("child", boss))
    api.make(MAPS, owned("grandchild", child))

    api.delete(f"{MAPS}/boss", {"propagationPolicy": policy})
    api.settle()

    assert api.get(MAPS).names == left
    if left:
        assert "ownerReferences" not in api.get(f"{MAPS}/child").tree["metadata"]


def test_foreground_deletion_waits_for_finalizers_of_dependents(api: ServerInThread) -> None:
    boss = api.make(MAPS, config_map_tree("boss"))
    child = owned("child", boss)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    api.make(MAPS, child)

    api.delete(f"{MAPS}/boss", {"propagationPolicy": "Foreground"})
    api.settle()
    waiting = api.get(MAPS).names
    api.patch(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    api.settle()

    assert waiting == ["boss", "child"]
    assert api.get(MAPS).names == []


def test_an_owner_that_never_existed(api: ServerInThread) -> None:
    api.make(MAPS, owned("child", {"metadata": {"name": "x", "uid": "never"}}))

    api.settle()

    assert api.get(MAPS).names == []


def test_orphans_are_adopted_by_a_new_owner(api: ServerInThread) -> None:
    api.make(SETS, workload_tree("ReplicaSet", "web", 2))
    api.settle()
    before = api.get(PODS).names

    api.delete(f"{SETS}/web", {"propagationPolicy": "Orphan"})
    api.settle()
    left = api.get(PODS).names
    api.make(SETS, workload_tree("ReplicaSet", "web", 2))
    api.settle()

    assert left == before == api.get(PODS).names
    uid = api.get(f"{SETS}/web").tree["metadata"]["uid"]
    owners = [pod["metadata"]["ownerReferences"][0]["uid"] for pod in api.get(PODS).tree["items"]]
    assert owners == [uid, uid]


def test_a_new_deployment_adopts_the_replica_set_of_the_old(api: ServerInThread) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    api.make(path, workload_tree("Deployment", "web", 2))
    api.settle()
    before = api.get(PODS).names

    api.delete(f"{path}/web", {"propagationPolicy": "Orphan"})
    api.settle()
    deployment = api.make(path, workload_tree("Deployment", "web", 2))
    api.settle()

    (replica_set,) = api.get(SETS).tree["items"]
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
    assert api.get(PODS).names == before
    assert api.get(f"{path}/web").tree["status"]["replicas"] == 2


def test_finalizers_keep_an_object(api: ServerInThread) -> None:
    tree = config_map_tree("a")
    tree["metadata"]["finalizers"] = ["example.com/hold"]
    api.make(MAPS, tree)

    answer = api.delete(f"{MAPS}/a")
    held = api.get(f"{MAPS}/a").tree["metadata"]
    api.patch(f"{MAPS}/a", {"metadata": {"finalizers": []}})

    assert answer.status == 200
    assert held["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert api.get(f"{MAPS}/a").status == 404


def test_a_deleted_namespace_deletes_its_contents(api: ServerInThread) -> None:
    api.make("/api/v1/namespaces", {"metadata": {"name": "x"}})
    api.make("/api/v1/nodes", node_tree("a"))
    inside = "/api/v1/namespaces/x"
    api.make(f"{inside}/configmaps", config_map_tree("a"))
    api.make(f"{inside}/pods", pod_tree("web", nodeName="a"))
    api.settle()

    answer = api.delete(inside)
    api.settle()
    refused = api.post(f"{inside}/configmaps", config_map_tree("b"))
    left = api.get(f"{inside}/configmaps").names
    leaving = api.get(inside).tree["status"]["phase"]
    api.advance(30)

    assert answer.tree["status"]["phase"] == leaving == "Terminating"
    assert left == []
    assert (refused.status, refused.tree["reason"]) == (403, "Forbidden")
    assert refused.tree["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert api.get(inside).status == 404
    assert api.delete("/api/v1/namespaces/default").status == 403


def test_namespaces_have_their_name_as_label(api: ServerInThread) -> None:
    made = api.make("/api/v1/namespaces", {"metadata": {"name": "x"}})

    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert made["status"] == {"phase": "Active"}


def test_a_cordoned_node_has_a_taint(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))

    api.patch("/api/v1/nodes/a", {"spec": {"unschedulable": True}}, "strategic")
    api.settle()
    taints = api.get("/api/v1/nodes/a").tree["spec"]["taints"]
    api.patch("/api/v1/nodes/a", {"spec": {"unschedulable": None}}, "strategic")
    api.settle()

    assert [taint["key"] for taint in taints] == ["node.kubernetes.io/unschedulable"]
    assert "taints" not in api.get("/api/v1/nodes/a").tree["spec"]


def test_a_node_without_conditions_is_ready(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", {"metadata": {"name": "a"}})
    api.settle()

    (condition,) = api.get("/api/v1/nodes/a").tree["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")


def test_the_pods_of_a_deleted_node_are_deleted(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"), node_tree("b"))
    api.make(PODS, pod_tree("one", nodeName="a"), pod_tree("two", nodeName="b"))
    api.settle()

    api.delete("/api/v1/nodes/a")
    api.settle()

    assert api.get(PODS).names == ["two"]


def test_a_no_execute_taint_evicts_pods_after_their_toleration_seconds(api: ServerInThread) -> None:
    patient = {"key": "bad", "operator": "Exists", "effect": "NoExecute"}
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(
        PODS,
        pod_tree("fixed", nodeName="a", tolerations=[patient]),
        pod_tree("patient", nodeName="a", tolerations=[{**patient, "tolerationSeconds": 60}]),
        pod_tree("hasty", nodeName="a"),
    )
    api.settle()

    api.patch("/api/v1/nodes/a", {"spec": {"taints": [{"key": "bad", "effect": "NoExecute"}]}})
    api.advance(30)
    after_grace = api.get(PODS).names
    api.advance(61)
    api.advance(30)

    assert after_grace == ["fixed", "patient"]
    assert api.get(PODS).names == ["fixed"]


def claim_tree(name: str, storage_class: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_a_volume_is_provisioned_when_a_node_was_selected(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(
        CLASSES,
        {
            "metadata": {"name": "slow"},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    api.make(CLAIMS, claim_tree("data", "slow"))
    api.settle()
    waiting = api.get(f"{CLAIMS}/data").tree["status"]["phase"]
    note = {"volume.kubernetes.io/selected-node": "a"}

    api.patch(f"{CLAIMS}/data", {"metadata": {"annotations": note}})
    api.advance(60)

    claim = api.get(f"{CLAIMS}/data").tree
    (volume,) = api.get(VOLUMES).tree["items"]
    assert (waiting, claim["status"]["phase"]) == ("Pending", "Bound")
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert volume["spec"]["claimRef"]["name"] == "data"
    assert volume["status"]["phase"] == "Bound"


def test_a_claim_in_use_stays_until_its_pod_is_gone(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(CLASSES, {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"})
    api.make(CLAIMS, claim_tree("data", "fast"))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    api.make(PODS, pod_tree("web", nodeName="a", volumes=volumes))
    api.advance(60)

    api.delete(f"{CLAIMS}/data")
    api.settle()
    held = api.get(f"{CLAIMS}/data").tree["metadata"]
    api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
    api.settle()

    assert held["deletionTimestamp"]
    assert held["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert api.get(CLAIMS).names == []
    assert api.get(VOLUMES).names == [], "its volume was made for it, and goes with it"


def test_a_restarted_server_continues_from_the_last_version(tmp_path: Path) -> None:
    with api_server(tmp_path) as api:
        api.make("/api/v1/nodes", node_tree("a"))
        api.make(SETS, workload_tree("ReplicaSet", "web", 2))
        api.settle()
        names = api.get(PODS).names
        api.post(f"{PODS}/{names[0]}/binding", bind_tree(names[0], "a"))
        api.settle()
        api.delete(f"{PODS}/{names[0]}")
        version = int(api.get(PODS).tree["metadata"]["resourceVersion"])

    with api_server(tmp_path) as api:
        again = api.get(PODS)
        assert set(names) <= set(again.names)
        assert int(again.tree["metadata"]["resourceVersion"]) >= version
        api.advance(30)
        left = api.get(PODS).names
        assert names[0] not in left, "its grace period ended after the restart"
        assert len(left) == 2, "and it was replaced"


def test_without_kubelets_pods_stay_as_they_are() -> None:
    with api_server(runs_pods=False) as api:
        api.make("/api/v1/nodes", node_tree("a"))
        api.make(PODS, pod_tree("web", nodeName="a"))
        api.advance(60)

        assert api.get(f"{PODS}/web").tree["status"]["phase"] == "Pending"


def test_events_expire_after_an_hour(api: ServerInThread) -> None:
    events = "/api/v1/namespaces/default/events"
    api.make(events, {"metadata": {"name": "old"}, "involvedObject": {"name": "x"}})
    api.advance(1800)
    api.make(events, {"metadata": {"name": "young"}, "involvedObject": {"name": "x"}})

    api.advance(1800)

    assert api.get(events).names == ["young"]


def test_every_namespace_has_a_default_service_account(api: ServerInThread) -> None:
    api.make("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    account = "/api/v1/namespaces/shop/serviceaccounts/default"
    api.settle()
    first = api.get(account)

    api.delete(account)
    api.settle()
    second = api.get(account)
    api.delete("/api/v1/namespaces/shop")
    api.settle()

    assert (first.status, second.status) == (200, 200)
    assert first.tree["metadata"]["uid"] != second.tree["metadata"]["uid"]
    assert api.get("/api/v1/namespaces/shop").status == 404
    assert api.get("/api/v1/namespaces/default/serviceaccounts").names == ["default"]


def test_a_default_service_account_waits_for_a_quota(api: ServerInThread) -> None:
    api.make("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    quotas = "/api/v1/namespaces/shop/resourcequotas"
    spec = {"hard": {"count/serviceaccounts": "0"}}
    api.make(quotas, {"metadata": {"name": "none"}, "spec": spec})
    api.settle()
    refused = api.get("/api/v1/namespaces/shop/serviceaccounts").names

    api.delete(f"{quotas}/none")
    api.advance(10)

    assert refused == []
    assert api.get("/api/v1/namespaces/shop/serviceaccounts").names == ["default"]


def test_a_new_claim_has_the_default_class_in_the_answer_though_it_names_its_volume(
    api: ServerInThread,
) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "d"}
    api.make(CLASSES, {**head, "metadata": {"name": "std", "annotations": annotations}})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}

    made = api.make(
        CLAIMS, {**claim, "metadata": {"name": "named"}, "spec": {**spec, "volumeName": "v"}}
    )
    classless = api.make(
        CLAIMS, {**claim, "metadata": {"name": "none"}, "spec": {**spec, "storageClassName": ""}}
    )

    assert made["spec"]["storageClassName"] == "std"
    assert classless["spec"]["storageClassName"] == ""
