"""Whole: all fields of an object, with its changes since it was read."""

from typing import Any

import msgspec
import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode, decode_object, iter_objects
from bayplan.api.wire.kinds import KINDS
from bayplan.api.wire.lenient import decode_leniently
from bayplan.api.wire.sourced import keeping_sources, with_source
from bayplan.api.wire.whole import apply_patch, whole
from bayplan.testing.builders import make_pod

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "finalizers": ["x/y"]},
    "spec": {
        "serviceAccountName": "robot",
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 5},
        "volumes": [{"name": "secret", "secret": {"secretName": "s"}}],
        "containers": [
            {
                "name": "main",
                "image": "app:1",
                "command": ["run"],
                "env": [{"name": "A", "value": "1"}],
                "volumeMounts": [{"name": "secret", "mountPath": "/s"}],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
    },
    "status": {"phase": "Pending"},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"zone": "a"}},
    "spec": {"providerID": "cloud://n"},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kernelVersion": "6.1"},
        "allocatable": {"cpu": "4"},
    },
}


def sourced(tree: dict[str, Any]) -> Any:
    with keeping_sources():
        return decode(msgspec.json.encode(tree))


@pytest.mark.parametrize("tree", [pytest.param(POD, id="a pod"), pytest.param(NODE, id="a node")])
def test_object_is_given_back_as_it_was(tree: dict[str, Any]) -> None:
    assert whole(sourced(tree)) == tree


@pytest.mark.parametrize("tree", [pytest.param(POD, id="a pod"), pytest.param(NODE, id="a node")])
def test_parsed_objects_and_lists_keep_their_sources(tree: dict[str, Any]) -> None:
    bare = {name: value for name, value in tree.items() if name not in ("kind", "apiVersion")}
    items = {"apiVersion": "v1", "kind": f"{tree['kind']}List", "items": [bare]}
    with keeping_sources():
        found = [
            decode_object(tree),
            *iter_objects(items),
            *iter_objects(msgspec.json.encode(items)),
        ]

    assert [whole(obj) for obj in found] == [tree] * 3  # type: ignore[arg-type]


def test_changes_of_a_pod_are_in_it() -> None:
    pod = sourced(POD).with_node("n")

    expected = {**POD, "spec": {**POD["spec"], "nodeName": "n"}}
    assert whole(pod.replace(labels={"a": "b"})) == {
        **expected,
        "metadata": {**POD["metadata"], "labels": {"a": "b"}},
    }


def test_changes_of_a_node_are_in_it() -> None:
    node = sourced(NODE).replace(unschedulable=True).replace(labels={})

    tree = whole(node)

    assert tree["spec"] == {"providerID": "cloud://n", "unschedulable": True}
    assert tree["metadata"] == {"name": "n"}
    assert tree["status"] == NODE["status"]


def test_patch_keeps_the_other_fields() -> None:
    node = apply_patch(sourced(NODE), {"metadata": {"labels": {"zone": "b"}}})

    assert isinstance(node, Node)
    assert node.labels == {"zone": "b"}
    assert whole(node)["status"] == NODE["status"]


def test_field_that_cannot_be_read_is_in_it_as_stored() -> None:
    spec = {**POD["spec"], "nodeName": "n", "tolerations": [{"key": "k", "operator": "Like"}]}
    tree = {**POD, "spec": spec}
    data = msgspec.json.encode(tree)
    pod = decode_leniently(data, KINDS["Pod"]).obj

    assert pod is not None
    assert whole(with_source(pod, data)) == tree


def test_managed_fields_are_left_out() -> None:
    metadata = {**POD["metadata"], "managedFields": [{"manager": "kubectl"}]}

    assert whole(sourced({**POD, "metadata": metadata})) == POD


def test_sources_are_not_kept_by_default() -> None:
    pod = decode(msgspec.json.encode(POD))

    assert type(pod) is Pod
    assert "serviceAccountName" not in whole(pod)["spec"]


def test_object_without_a_source_has_the_fields_of_our_types() -> None:
    assert whole(make_pod("p"))["metadata"]["name"] == "p"
