"""Nodes that a plan for a cluster neither removes nor fills up."""

from typing import Any

import pytest

from bayplan.api.meta import OwnerReference
from bayplan.api.pod import Pod
from bayplan.planning import NodePool, NodeType
from bayplan.planning.node_plan import NodePlan
from bayplan.planning.planner import PlanRequest
from bayplan.planning.rightsizing import rightsize
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned

GI = 1 << 30
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def make_type(name: str, cpu: int, price: float) -> NodeType:
    amounts = {"cpu": cpu * 1000, "memory": cpu * 2 * GI, "pods": 20}
    return NodeType(name, amounts, amounts, {"bayplan.dev/pool": "p"}, price=price)


SMALL, LARGE = make_type("small", 2, 0.1), make_type("large", 8, 0.36)
POOL = NodePool("p", (SMALL, LARGE))


def make_running(name: str, node: str, cpu: str = "1", **more: Any) -> Pod:
    return owned(make_pod(name, cpu=cpu, memory="1Gi", node_name=node, **more))


def exchanged(*objects: Any, pool: NodePool = POOL) -> NodePlan:
    found = rightsize(objects, [pool], Settings(seed=0), PlanRequest(time_limit_s=20.0))
    assert found.exchange is not None
    return found


def staying(found: NodePlan) -> dict[str, str]:
    assert found.exchange is not None
    return found.exchange.staying


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"labels": {CONTROL_PLANE: ""}}, id="label control-plane"),
        pytest.param({"labels": {"node-role.kubernetes.io/master": "true"}}, id="label master"),
        pytest.param({"taints": [f"{CONTROL_PLANE}:NoSchedule"]}, id="taint control-plane"),
        pytest.param({"taints": ["node-role.kubernetes.io/master:NoSchedule"]}, id="taint master"),
    ],
)
def test_the_control_plane_is_not_removed(more: dict[str, Any]) -> None:
    kind = {"node.kubernetes.io/instance-type": "small"}
    node = make_node(
        "cp", cpu="2", memory="4Gi", **{**more, "labels": kind | more.get("labels", {})}
    )
    worker = SMALL.make_node("worker")

    found = exchanged(node, worker, make_running("a", "worker"))

    assert found.exchange is not None
    assert staying(found) == {"cp": "control plane"}
    assert (found.exchange.kept, found.exchange.removed) == (["worker"], [])
    assert (found.exchange.price_before, found.exchange.staying_price) == pytest.approx((0.2, 0.1))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "0f3"}}, id="mirror"),
        pytest.param({"annotations": {"kubernetes.io/config.source": "file"}}, id="from a file"),
        pytest.param({"annotations": {"kubernetes.io/config.source": "http"}}, id="from a URL"),
        pytest.param({}, id="owned by a node"),
    ],
)
def test_a_node_with_static_pods_is_not_removed(more: dict[str, Any]) -> None:
    nodes = [SMALL.make_node("idle"), SMALL.make_node("worker")]
    static = make_pod("proxy", cpu="100m", node_name="idle", **more)
    if not more:
        owner = OwnerReference(api_version="v1", kind="Node", name="idle")
        static = static.replace(owner_references=(owner,))

    found = exchanged(*nodes, static, make_running("a", "worker"))

    assert staying(found) == {"idle": "static pods"}
    assert found.exchange is not None
    assert found.exchange.removed == []


def test_pods_from_the_api_are_not_static() -> None:
    nodes = [SMALL.make_node("idle"), SMALL.make_node("worker")]
    source = {"kubernetes.io/config.source": "api"}

    found = exchanged(*nodes, make_running("a", "worker", annotations=source))

    assert found.exchange is not None
    assert (staying(found), found.exchange.removed) == ({}, ["idle"])


def test_room_on_nodes_that_stay_is_not_filled() -> None:
    nodes = [make_node("other", cpu="64", memory="256Gi"), SMALL.make_node("worker")]

    found = exchanged(*nodes, make_running("a", "worker"), make_running("b", "other"))

    assert found.exchange is not None
    assert staying(found) == {"other": "of no type of the pools"}
    assert (found.exchange.kept, found.exchange.removed) == (["worker"], [])
    assert found.exchange.to_dict()["unknown"] == ["other"]


def test_pods_that_the_scheduler_places_on_nodes_that_stay_need_no_other() -> None:
    node = make_node("other", cpu="64", memory="256Gi", labels={"disk": "ssd"})
    waiting = make_running("b", "", cpu="32", node_selector={"disk": "ssd"})

    found = exchanged(node, SMALL.make_node("worker"), make_running("a", "worker"), waiting)

    assert found.is_complete


def test_a_cluster_of_nodes_that_stay_has_nothing_to_plan() -> None:
    node = make_node("other", cpu="64", memory="256Gi")

    found = exchanged(node, make_running("a", "other"))

    assert found.is_complete
    assert found.headline() == "0 nodes, 0.00 per hour"


def test_nodes_that_stay_count_for_the_sizes_of_their_pool() -> None:
    nodes = [SMALL.make_node("idle"), SMALL.make_node("worker")]
    mirror = {"kubernetes.io/config.mirror": "0f3"}
    static = make_pod("proxy", cpu="100m", node_name="idle", annotations=mirror)
    pool = NodePool("p", (SMALL, LARGE), minimum=2, maximum=2)

    found = exchanged(*nodes, static, make_running("a", "worker"), pool=pool)

    assert found.exchange is not None
    assert (found.exchange.kept, found.exchange.added) == (["worker"], [])


def test_steps_are_there_beside_pods_that_wait_for_a_node_that_no_pool_has() -> None:
    nodes = [SMALL.make_node("idle"), SMALL.make_node("worker")]

    found = exchanged(*nodes, make_running("a", "worker"), make_running("huge", "", cpu="99"))

    assert found.exchange is not None
    assert (found.is_complete, found.exchange.removed) == (False, ["idle"])
    assert found.exchange.pending == {}
    assert "without 1 pod that fits no pool" in found.headline()


def test_no_steps_when_a_running_pod_fits_no_pool() -> None:
    large = make_node(
        "worker", cpu="99", memory="99Gi", labels={"node.kubernetes.io/instance-type": "large"}
    )

    found = exchanged(large, SMALL.make_node("idle"), make_running("huge", "worker", cpu="99"))

    assert found.exchange is not None
    assert (found.is_complete, found.exchange.is_possible) == (False, False)
    assert found.exchange.removed == []


def test_pods_that_wait_after_the_last_step_make_the_plan_incomplete() -> None:
    found = exchanged(SMALL.make_node("worker"), make_running("a", "worker"))
    assert found.exchange is not None
    assert found.is_complete

    found.exchange.pending["default/a"] = "no node"

    assert not found.is_complete


def test_a_deployment_of_the_input_is_settled_once() -> None:
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        },
    }
    deployment = make_object("Deployment", "a", spec=spec)

    found = exchanged(SMALL.make_node("worker"), make_node("other", cpu="1"), deployment)

    assert found.exchange is not None
    assert found.is_complete
    assert sorted(found.exchange.kept) == ["worker"]
