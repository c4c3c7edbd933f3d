"""Addresses in volumes: snapshots and recordings leave them out, and pods go where they went."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.placement_fields import clipped_tree
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node

ADDRESSES = ("10.1.2.3", "10.1.2.4", "10.1.2.5", "ceph.example", "10.9.9.9", "nfs.example")


def pod(name: str, **source: Any) -> dict[str, Any]:
    """A pod with one volume."""
    spec = {"containers": [{"name": "c"}], "volumes": [{"name": "v", **source}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def rbd(name: str, *monitors: str) -> dict[str, Any]:
    return pod(name, rbd={"monitors": list(monitors), "image": "i", "pool": "p"})


PODS = [
    rbd("first", "10.1.2.3:6789", "10.1.2.4:6789"),
    rbd("shares-a-monitor", "10.1.2.4:6789", "ceph.example"),
    rbd("other-monitors", "10.1.2.5:6789"),
    pod("disk", iscsi={"targetPortal": "10.9.9.9:3260", "iqn": "iqn.2001-04.x:d", "lun": 0}),
    pod("same-disk", iscsi={"targetPortal": "10.9.9.9:3260", "iqn": "iqn.2001-04.x:d", "lun": 0}),
]
VOLUMES = [
    {"nfs": {"server": "nfs.example", "path": "/a"}},
    {"iscsi": {"targetPortal": "10.9.9.9:3260", "iqn": "iqn.2001-04.x:d", "lun": 0}},
    {"rbd": {"monitors": ["10.1.2.3:6789"], "image": "i"}},
    {"glusterfs": {"endpoints": "10.9.9.9", "path": "v"}},
    {"cephfs": {"monitors": ["10.1.2.3:6789"]}},
]


def placed(trees: list[dict[str, Any]]) -> dict[str, str]:
    """Nodes of the pods."""
    pods: list[Any] = [decode_object(tree) for tree in trees]
    report = Simulation([make_node("a"), make_node("b"), *pods], seed=1).run()
    return {result.pod.name: result.attempt.node_name for result in report.pods}


@pytest.mark.parametrize("tree", PODS, ids=lambda tree: tree["metadata"]["name"])
def test_a_pod_has_no_address(tree: dict[str, Any]) -> None:
    text = str(clipped_tree(decode_object(tree)))  # type: ignore[arg-type]

    assert [address for address in ADDRESSES if address in text] == []


@pytest.mark.parametrize("source", VOLUMES, ids=lambda source: next(iter(source)))
def test_a_volume_has_no_address(source: dict[str, Any]) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    head = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}

    text = str(clipped_tree(decode_object({**head, "spec": spec})))  # type: ignore[arg-type]

    assert [address for address in ADDRESSES if address in text] == []


def test_placement_stays_the_same() -> None:
    clipped = [clipped_tree(decode_object(tree)) for tree in PODS]  # type: ignore[arg-type]

    before = placed(PODS)
    assert placed(clipped) == before
    assert before["first"] != before["shares-a-monitor"]
    assert before["disk"] != before["same-disk"]


def test_templates_have_no_address() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": PODS[0]["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}

    text = str(clipped_tree(decode_object(tree)))  # type: ignore[arg-type]

    assert [address for address in ADDRESSES if address in text] == []
    assert "rbd" in text
