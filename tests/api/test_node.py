"""Node: flat and immutable."""

from typing import Any

import pytest

from bayplan.api.node import BETA_REGION, BETA_ZONE, REGION, ZONE, ContainerImage, Node
from bayplan.api.taints import Taint
from bayplan.testing.builders import make_object


def decoded_node(**parts: Any) -> Node:
    node: Node = make_object("Node", "n", **parts)
    return node


def test_a_node_is_flat() -> None:
    node = decoded_node(
        metadata={"labels": {"a": "b"}, "uid": "u", "resourceVersion": "7"},
        spec={"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
        status={
            "capacity": {"cpu": "4", "memory": "1Ki", "pods": "110"},
            "allocatable": {"cpu": "3920m", "memory": "1000", "pods": "100"},
            "images": [{"names": ["app:1"], "sizeBytes": 5}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "declaredFeatures": ["F"],
        },
    )

    assert (node.name, node.uid, node.resource_version) == ("n", "u", "7")
    assert node.unschedulable
    assert node.taints == (Taint(key="k", effect="NoExecute"),)
    assert node.capacity == {"cpu": 4000, "memory": 1024, "pods": 110}
    assert node.allocatable == {"cpu": 3920, "memory": 1000, "pods": 100}
    assert node.images == (ContainerImage(names=("app:1",), size_bytes=5),)
    assert node.declared_features == ("F",)
    ready = node.condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    assert node.condition("DiskPressure") is None


def test_capacity_is_allocatable_without_an_explicit_value() -> None:
    node = decoded_node(status={"capacity": {"cpu": "4"}})

    assert node.allocatable == {"cpu": 4000}
    assert Node("n", capacity={"cpu": 1}).allocatable == {"cpu": 1}


def test_replace_makes_a_copy() -> None:
    node = Node("n", labels={"a": "b"})

    assert node.replace(unschedulable=True).unschedulable
    assert not node.unschedulable
    assert node.replace(name="m").labels == {"a": "b"}


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param({}, "", id="neither"),
        pytest.param({ZONE: "z", REGION: "r"}, "r:\x00:z", id="both"),
        pytest.param({ZONE: "z"}, ":\x00:z", id="zone alone"),
        pytest.param({REGION: "r"}, "r:\x00:", id="region alone"),
        pytest.param({ZONE: "z", BETA_ZONE: "old"}, ":\x00:old", id="the beta label wins"),
        pytest.param({ZONE: "z", BETA_ZONE: ""}, "", id="even when it is empty"),
        pytest.param({BETA_REGION: "r", ZONE: "z"}, "r:\x00:z", id="old and new together"),
    ],
)
def test_zone_key(labels: dict[str, str], key: str) -> None:
    assert Node("n", labels=labels).zone_key == key
