"""Lists and items: decoding them at once, the item at fault, shared parts."""

import json
from typing import Any

import msgspec
import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_items, iter_objects
from bayplan.api.wire.kinds import KINDS
from bayplan.api.workloads import PodDisruptionBudget, PriorityClass
from bayplan.errors import DecodeError
from tests.api.wire.trees import make_tree, read_both

POD = make_tree()
NODE = make_tree("Node", "n1")


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        pytest.param(POD, ["web-1"], id="one object"),
        pytest.param({"kind": "List", "items": [POD, NODE]}, ["web-1", "n1"], id="a list"),
        pytest.param(
            {"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}, ["a"], id="a typed list"
        ),
        pytest.param({"kind": "PodList", "items": None}, [], id="an empty typed list"),
        pytest.param({"kind": "List", "items": []}, [], id="an empty list"),
        pytest.param({"items": [NODE]}, ["n1"], id="a list without a kind"),
        pytest.param(
            {"kind": "List", "items": [{"kind": "List", "items": [POD]}, NODE]},
            ["web-1", "n1"],
            id="a list in a list",
        ),
        pytest.param(
            {"kind": "ConfigMapList", "items": [{"metadata": {"name": "cm"}}]},
            ["cm"],
            id="a list of unknown objects",
        ),
        pytest.param(
            {"apiVersion": "x-k8s.io/v1", "kind": "PodList", "items": [{"metadata": {"name": 1}}]},
            [""],
            id="a list of pods of another API group",
        ),
        pytest.param(
            {"kind": "AllowList", "metadata": {"name": "al"}}, ["al"], id="a kind that ends in List"
        ),
    ],
)
def test_iter_objects(tree: dict[str, Any], names: list[str]) -> None:
    from_tree, from_json = list(iter_objects(tree)), list(iter_objects(json.dumps(tree).encode()))

    assert [getattr(obj, "name", None) for obj in from_tree] == names
    assert [getattr(obj, "name", None) for obj in from_json] == names


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_iter_objects_names_the_item_at_fault(kind: str) -> None:
    bad = make_tree(name="bad", spec={"priority": "high"})
    tree = {"kind": kind, "items": [POD, bad]}

    for source in (tree, json.dumps(tree)):
        with pytest.raises(DecodeError) as caught:
            list(iter_objects(source))
        assert caught.value.where == "pod default/bad: spec.priority"


def test_equal_parts_of_pods_are_shared() -> None:
    def tree(name: str) -> dict[str, Any]:
        owner = {"kind": "ReplicaSet", "name": "rs", "uid": "1", "controller": True}
        return make_tree(
            name=name,
            metadata={"labels": {"app": "web"}, "ownerReferences": [owner]},
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        )

    first, second = list(iter_objects({"kind": "List", "items": [tree("a"), tree("b")]}))

    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert first.labels is second.labels
    assert first.owner_references is second.owner_references
    assert first.status.conditions is second.status.conditions


def test_a_bare_pod_and_a_bare_node() -> None:
    assert isinstance(read_both(POD), Pod)
    assert isinstance(read_both(NODE), Node)
    assert read_both(NODE).allocatable == {}


def test_objects_share_a_shape() -> None:
    budget = read_both(
        make_tree(
            "PodDisruptionBudget",
            metadata={"namespace": "ns", "uid": "u", "labels": {"a": "b"}},
            spec={"minAvailable": "50%"},
            status={"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-03-01T00:00:00Z"}},
        )
    )
    priority = read_both(make_tree("PriorityClass", "high", value=1000))

    assert isinstance(budget, PodDisruptionBudget)
    assert (budget.kind, budget.api_version) == ("PodDisruptionBudget", "policy/v1")
    assert (budget.name, budget.namespace, budget.uid) == ("web-1", "ns", "u")
    assert (budget.labels, budget.annotations) == ({"a": "b"}, {})
    assert budget.disrupted_pods == {"p": "2026-03-01T00:00:00Z"}
    assert isinstance(priority, PriorityClass)
    assert (priority.key, priority.value) == ("high", 1000)


def test_wire_names_are_those_of_kubernetes() -> None:
    for kind in KINDS.values():
        for field in msgspec.structs.fields(kind.wire):
            assert field.encode_name[0].islower()
            assert "_" not in field.encode_name


# Items of a list at once


ITEM_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
ITEM_NODE = {"kind": "Node", "metadata": {"name": "n"}, "apiVersion": "v1"}
ITEM_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}


@pytest.mark.parametrize(
    ("items", "kind", "names"),
    [
        pytest.param([], "List", [], id="none"),
        pytest.param([ITEM_POD, ITEM_NODE], "List", ["Pod a", "Node n"], id="pods and nodes"),
        pytest.param([{"metadata": {"name": "a"}}], "PodList", ["Pod a"], id="a list of pods"),
        pytest.param([{"metadata": {"name": "s"}}], "ServiceList", ["Service s"], id="of services"),
        pytest.param([ITEM_POD, ITEM_SERVICE], "List", None, id="other kinds among them"),
        pytest.param(
            [ITEM_POD | {"apiVersion": "x/v1"}], "List", None, id="a pod of another API group"
        ),
        pytest.param([ITEM_POD | {"spec": None}], "List", None, id="null for absent"),
        pytest.param([ITEM_POD | {"spec": {"containers": 7}}], "List", None, id="a wrong type"),
        pytest.param([ITEM_POD | {"metadata": {}}], "List", None, id="no name"),
        pytest.param([{"metadata": {}}], "WagonList", None, id="a list of an unknown kind"),
    ],
)
def test_items_are_decoded_at_once_or_not_at_all(
    items: list[Any], kind: str, names: list[str] | None
) -> None:
    found: Any = decode_items(msgspec.json.encode(items), kind)

    assert (found and [f"{obj.kind} {obj.name}" for obj in found]) == names


def test_items_that_are_no_json_are_rejected() -> None:
    with pytest.raises(DecodeError, match="expected JSON"):
        decode_items(b'[{"kind"', "List")
