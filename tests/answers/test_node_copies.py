"""Copies of nodes: their names, and which objects of a node are copied with it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.answers.stage import Stage
from bayplan.answers.what_if import AddNodes, ask_what_if
from bayplan.api.devices import ResourceSlice
from bayplan.api.meta import OwnerReference
from bayplan.api.node import HOSTNAME, Node
from bayplan.api.storage import CSINode
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import claiming, make_claim, make_class, make_slice
from bayplan.testing.storage import make_csi_node
from tests.rig.objects import owned, stored


def stage_with(*objects: Any, like: tuple[str, ...] = ("a",), number: int = 1) -> Stage:
    """The objects, and so many copies of nodes."""
    stage = Stage(objects)
    AddNodes(number, like).apply(stage)
    return stage


def slices(stage: Stage) -> dict[str, ResourceSlice]:
    return {found.name: found for found in stage.cluster.list("ResourceSlice")}


@pytest.mark.parametrize(
    ("number", "like", "text"),
    [
        pytest.param(0, (), "add-nodes: expected the name of a node to copy; got none", id="none"),
        pytest.param(-1, ("a",), "expected a number of nodes; got -1", id="a negative number"),
    ],
)
def test_a_change_that_adds_no_nodes_is_refused(
    number: int, like: tuple[str, ...], text: str
) -> None:
    with pytest.raises(InputError) as raised:
        stage_with(make_node("a"), number=number, like=like)

    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("number", "like", "expected"),
    [
        pytest.param(0, ("a",), [], id="none"),
        pytest.param(2, ("a",), ["a-new-2", "a-new-3"], id="a name that is taken is left out"),
        pytest.param(3, ("a", "b"), ["a-new-2", "a-new-3", "b-new-1"], id="two nodes in turn"),
    ],
)
def test_the_names_of_copies(number: int, like: tuple[str, ...], expected: list[str]) -> None:
    given = {"a", "b", "a-new-1"}

    stage = stage_with(*map(make_node, sorted(given)), number=number, like=like)

    assert sorted({node.name for node in stage.cluster.list("Node")} - given) == expected


def test_a_copy_is_healthy_and_has_its_own_host_name() -> None:
    taints = ["node.kubernetes.io/not-ready:NoExecute", "gpu:NoSchedule"]
    pattern = make_node("a", labels={"disk": "ssd"}, taints=taints, unschedulable=True)

    copy = stored(stage_with(pattern).cluster, Node, "a-new-1", "")

    assert copy.labels == {HOSTNAME: "a-new-1", "disk": "ssd"}
    assert [taint.key for taint in copy.taints] == ["gpu"]
    assert not copy.unschedulable
    assert copy.uid != pattern.uid


def test_a_copy_has_the_volume_drivers_of_its_node() -> None:
    drivers = make_csi_node("a", {"disk.example.com": 2})

    cluster = stage_with(make_node("a"), drivers).cluster

    copy = stored(cluster, CSINode, "a-new-1", "")
    assert copy.spec.drivers == drivers.spec.drivers
    assert copy.metadata.uid != stored(cluster, CSINode, "a", "").metadata.uid


def test_a_copy_of_a_node_without_volume_drivers_has_none() -> None:
    cluster = stage_with(make_node("a"), make_node("b"), make_csi_node("b")).cluster

    assert cluster.get("CSINode", "", "a-new-1") is None


@pytest.mark.parametrize(
    ("name", "pool", "expected_name", "expected_pool"),
    [
        pytest.param("a-gpus", "a", "a-new-1-gpus", "a-new-1", id="names with that of the node"),
        pytest.param("gpus", "pool", "gpus-a-new-1", "pool-a-new-1", id="names without it"),
    ],
)
def test_a_copy_has_its_own_devices(
    name: str, pool: str, expected_name: str, expected_pool: str
) -> None:
    given = make_slice(name, "d0", "d1", node="a", pool=pool)

    found = slices(stage_with(make_node("a"), given))

    copy = found.pop(expected_name)
    assert list(found) == [name]
    assert (copy.spec.node_name, copy.spec.pool.name) == ("a-new-1", expected_pool)
    assert copy.spec.devices == given.spec.devices


def test_the_devices_of_a_copy_do_not_belong_to_the_object_of_the_first_node() -> None:
    owner = OwnerReference(api_version="v1", kind="Node", name="a", uid="a")
    given = make_slice("a-gpus", "d0", node="a")
    given = replace(given, metadata=replace(given.metadata, owner_references=(owner,)))

    found = slices(stage_with(make_node("a"), given))

    assert not found["a-new-1-gpus"].owner_references


@pytest.mark.parametrize(
    "node",
    [pytest.param(None, id="of all nodes"), pytest.param("b", id="of another node")],
)
def test_devices_that_the_node_does_not_have_alone_are_not_copied(node: str | None) -> None:
    given = make_slice("gpus", "d0", node=node)

    found = slices(stage_with(make_node("a"), make_node("b"), given))

    assert list(found) == ["gpus"]


def test_a_pod_that_lacks_a_device_runs_on_a_copy() -> None:
    objects: list[Any] = [
        make_node("a"),
        make_class(),
        make_slice("gpus", "d0", node="a"),
        make_claim("used", devices=["a/d0"], node="a", users=[make_pod("user")]),
        claiming("used", name="user", node_name="a"),
        make_claim("wanted"),
        claiming("wanted", name="waits"),
    ]

    answer = ask_what_if(objects, [AddNodes(1, ("a",))])

    moves = [(pod.name, str(pod.was), str(pod.now)) for pod in answer.pods]
    assert moves == [("waits", "pending", "a-new-1")]


def test_a_daemon_without_a_daemon_set_is_copied_and_other_pods_are_not() -> None:
    daemon = owned(make_pod("logs-a", node_name="a"), "logs", "DaemonSet")
    web = owned(make_pod("web-a", node_name="a"))

    stage = stage_with(make_node("a"), daemon, web)

    assert [pod.name for pod in stage.pods_on("a-new-1")] == ["logs-a-new-1"]
