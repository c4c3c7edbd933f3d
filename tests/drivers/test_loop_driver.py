"""Loop driver: the scheduler on the loop of the embedded API server, seen by its clients."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.apiserver.server import ApiServer
from bayplan.config.defaults import default_config
from bayplan.drivers.loop_driver import LoopDriver
from bayplan.framework import SUCCESS, CycleState, FilterPlugin, Plugin, Status
from bayplan.table import NodeInfo
from tests.rig.api_server import PODS, ServerInThread, api_server, workload_tree
from tests.rig.trees import node_tree, pod_tree

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LIMIT = 200


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server() as server:
        server.within(schedule)
        yield server


def schedule(server: ApiServer, plugins: Sequence[type[Plugin]] = ()) -> None:
    """Run a scheduler beside the controllers of the server."""
    plane = server.plane
    assert plane.workloads is not None
    driver = LoopDriver(
        default_config(),
        plane.cluster,
        server.clock,
        plane.timers,
        plane.wake,
        take_first=plane.workloads.take_first_daemons,
        plugins=plugins,
    )
    plane.also_run(driver.run)


def wait_for_node(api: ServerInThread, name: str) -> str:
    """The node of a pod when it has one; the loop runs between two reads."""
    for _ in range(LIMIT):
        api.settle()
        node: str = api.get(f"{PODS}/{name}").tree["spec"].get("nodeName", "")
        if node:
            return node
    raise AssertionError(f"{name} has no node")


def wants(cpu: str) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}]


def test_pods_are_bound_and_told_of(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, pod_tree("web"))

    assert wait_for_node(api, "web") == "a"
    event = api.get(f"{EVENTS}?fieldSelector=regarding.name%3Dweb").tree["items"][0]
    assert (event["reason"], event["reportingController"]) == ("Scheduled", "default-scheduler")
    assert event["note"] == "Successfully assigned default/web to a"


def test_a_pod_that_fits_nowhere_says_why(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, pod_tree("web", nodeSelector={"disk": "fast"}))
    api.settle()

    (condition,) = api.get(f"{PODS}/web").tree["status"]["conditions"]
    api.patch("/api/v1/nodes/a", {"metadata": {"labels": {"disk": "fast"}}})
    api.advance(10)

    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith("0/1 nodes are available")
    assert wait_for_node(api, "web") == "a"


def test_other_schedulers_pods_are_left_alone(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, pod_tree("web", schedulerName="mine"))
    api.settle()

    assert "nodeName" not in api.get(f"{PODS}/web").tree["spec"]


def test_preemption_waits_for_the_grace_period_of_its_victim(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    api.make(PODS, pod_tree("low", containers=wants("3"), terminationGracePeriodSeconds=20))
    wait_for_node(api, "low")
    api.make(PODS, pod_tree("high", containers=wants("3"), priorityClassName="high"))
    api.settle()

    leaving = api.get(f"{PODS}/low").tree
    nominated = api.get(f"{PODS}/high").tree["status"]["nominatedNodeName"]
    api.advance(20)

    assert leaving["metadata"]["deletionTimestamp"]
    reasons = {c["type"]: c.get("reason") for c in leaving["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "PreemptionByScheduler"
    assert nominated == "a"
    assert api.get(f"{PODS}/low").status == 404
    assert wait_for_node(api, "high") == "a"


def test_daemons_are_on_a_new_node_before_more_important_pods_fill_it(api: ServerInThread) -> None:
    api.make(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    api.make("/api/v1/nodes", node_tree("full", unschedulable=True))
    api.make(PODS, pod_tree("web", priorityClassName="high", containers=wants("3")))
    api.settle()
    daemon_set = workload_tree("DaemonSet", "agent")
    daemon_set["spec"]["template"]["spec"]["containers"] = wants("2")
    api.make("/apis/apps/v1/namespaces/default/daemonsets", daemon_set)
    api.advance(60)  # the backoff of the waiting pod is over

    api.make("/api/v1/nodes", node_tree("a"))
    api.settle()

    scheduled = api.get(f"{EVENTS}?fieldSelector=reason%3DScheduled").tree["items"]
    names = [event["regarding"]["name"].split("-")[0] for event in scheduled]
    assert names == ["agent", "agent"]  # also on the cordoned node, which daemons tolerate


def test_a_volume_is_made_where_its_pod_goes(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(
        CLASSES,
        {
            "metadata": {"name": "late"},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    api.make(CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    api.within(lambda server: server.plane.start())
    with api.watch(f"{PODS}?fieldSelector=spec.nodeName%3Da") as placed:
        api.make(PODS, pod_tree("web", volumes=volumes))

        assert placed.seen(1) == [("ADDED", "web")]
    claim = api.get(f"{CLAIMS}/data").tree
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "a"


def test_all_pods_of_a_deployment_find_their_place(api: ServerInThread) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    api.make("/api/v1/nodes", *(node_tree(name) for name in "abc"))
    api.make(path, workload_tree("Deployment", "web", 9))
    for _ in range(LIMIT):
        api.settle()
        if api.get(f"{path}/web").tree.get("status", {}).get("availableReplicas") == 9:
            break

    nodes = [pod["spec"]["nodeName"] for pod in api.get(PODS).tree["items"]]
    assert {node: nodes.count(node) for node in "abc"} == {"a": 3, "b": 3, "c": 3}


DEVICES = "/apis/resource.k8s.io/v1"


def test_a_claim_from_a_template_is_made_allocated_and_given_back(api: ServerInThread) -> None:
    claims = f"{DEVICES}/namespaces/default/resourceclaims"
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    offer = {"driver": "gpu.example.com", "pool": pool, "nodeName": "a"}
    wanted = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    api.make(
        f"{DEVICES}/resourceslices",
        {"metadata": {"name": "a"}, "spec": {**offer, "devices": [{"name": "gpu-0"}]}},
    )
    api.make(
        f"{DEVICES}/namespaces/default/resourceclaimtemplates",
        {"metadata": {"name": "one"}, "spec": {"spec": {"devices": wanted}}},
    )
    api.make(PODS, pod_tree("web", resourceClaims=[entry]))

    assert wait_for_node(api, "web") == "a"
    (claim,) = api.get(claims).tree["items"]
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert (given["pool"], given["device"], given["request"]) == ("a", "gpu-0", "gpu")
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["web"]

    api.delete(f"{PODS}/web")
    api.advance(60)
    api.settle()
    assert api.get(claims).tree["items"] == []


def test_plugins_read_all_fields_of_pods_and_nodes() -> None:
    read: list[tuple[str, str]] = []

    class Reader(FilterPlugin):
        name = "Reader"
        reads_whole_objects = True

        def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            policy = self.handle.whole(pod)["spec"]["restartPolicy"]
            read.append((policy, self.handle.whole(node.node)["spec"]["providerID"]))
            return SUCCESS

    with api_server() as api:
        api.within(partial(schedule, plugins=[Reader]))
        api.make("/api/v1/nodes", {**node_tree("a"), "spec": {"providerID": "cloud://a"}})
        tree = pod_tree("web")
        api.make(PODS, {**tree, "spec": {**tree["spec"], "containers": wants("1")}})
        wait_for_node(api, "web")

    assert set(read) == {("Always", "cloud://a")}
