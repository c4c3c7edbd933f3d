"""Requests of kubectl besides objects: metrics from requests, and refusals where containers would be needed."""

from typing import Any

import pytest

from tests.rig.api_server import PODS, ServerInThread, bind_tree
from tests.rig.trees import node_tree, pod_tree

METRICS = "/apis/metrics.k8s.io/v1beta1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def running(api: ServerInThread, name: str, *requests: dict[str, str]) -> None:
    """A pod that runs on node a, with a container for each of the requests."""
    containers: list[dict[str, Any]] = [
        {"name": f"c{i}", "image": "x", "resources": {"requests": one}}
        for i, one in enumerate(requests)
    ]
    api.make(PODS, pod_tree(name, containers=containers))
    api.make(f"{PODS}/{name}/binding", bind_tree(name, "a"))
    api.settle()


def test_metrics_are_the_requests_of_running_pods(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"), node_tree("b"))
    running(api, "web", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "1"})
    running(api, "idle", {})
    api.make(PODS, pod_tree("waits"))

    nodes = api.get(f"{METRICS}/nodes")
    pods = api.get(f"{METRICS}/namespaces/default/pods")
    one = api.get(f"{METRICS}/namespaces/default/pods/web").tree

    usage = {item["metadata"]["name"]: item["usage"] for item in nodes.tree["items"]}
    assert usage == {
        "a": {"cpu": "1100m", "memory": "65536Ki"},
        "b": {"cpu": "0m", "memory": "0Ki"},
    }
    assert pods.tree["kind"] == "PodMetricsList"
    assert pods.names == ["idle", "web"]
    assert [c["usage"]["cpu"] for c in one["containers"]] == ["100m", "1000m"]
    assert one["metadata"]["annotations"] == {"bayplan.dev/metrics-source": "requests"}
    assert "these are the requests of running pods" in nodes.headers["Warning"]
    assert api.get(f"{METRICS}/nodes/none").status == 404
    assert api.get(f"{METRICS}/nodes?watch=true").status == 405
    assert api.post(f"{METRICS}/nodes", {}).status == 405


@pytest.mark.parametrize(
    ("method", "subresource", "words"),
    [
        pytest.param("GET", "log", "there are no logs", id="logs"),
        pytest.param("POST", "exec?command=ls", "execute a command", id="exec"),
        pytest.param("POST", "attach", "to attach to", id="attach"),
        pytest.param("POST", "portforward", "no port to forward to", id="port-forward"),
        pytest.param("PATCH", "ephemeralcontainers", "none to debug", id="debug"),
    ],
)
def test_what_needs_a_container_is_refused_in_one_sentence(
    api: ServerInThread, method: str, subresource: str, words: str
) -> None:
    api.make(PODS, pod_tree("web"))

    answer = api.request(method, f"{PODS}/web/{subresource}", {}, "application/merge-patch+json")
    missing = api.request(method, f"{PODS}/none/{subresource}", {}, "application/json")

    assert answer.status == 400
    assert answer.tree["message"].startswith("bayplan up runs no containers: ")
    assert words in answer.tree["message"]
    assert missing.tree["message"] == 'pods "none" not found'


def test_a_node_has_a_lease_while_it_is_there(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"), node_tree("b"))
    api.settle()
    both = api.get(LEASES)

    api.delete("/api/v1/nodes/a")
    api.settle()

    assert both.names == ["a", "b"]
    assert both.tree["items"][0]["spec"]["holderIdentity"] == "a"
    assert api.get(LEASES).names == ["b"]


def test_a_new_cluster_gets_a_default_storage_class_once(api: ServerInThread) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"

    api.within(lambda server: server.add_default_class())
    made = api.get(path)
    api.within(lambda server: server.add_default_class())

    assert made.names == ["standard"]
    annotations = made.tree["items"][0]["metadata"]["annotations"]
    assert annotations == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert api.get(path).names == ["standard"]


def test_a_claim_without_a_class_is_bound_for_its_pod(api: ServerInThread) -> None:
    api.within(lambda server: server.add_default_class())
    api.make("/api/v1/nodes", node_tree("a"))
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.make(claims, {"metadata": {"name": "data"}, "spec": spec})
    api.settle()
    waiting = api.get(f"{claims}/data").tree
    selected = {"volume.kubernetes.io/selected-node": "a"}
    api.patch(f"{claims}/data", {"metadata": {"annotations": selected}})
    api.advance(60)

    assert waiting["spec"]["storageClassName"] == "standard"
    assert waiting["status"]["phase"] == "Pending"
    assert api.get(f"{claims}/data").tree["status"]["phase"] == "Bound"
