"""Topology: where a volume can be created, and the nodes that can reach it.

Simulates pkg/controller/topology.go of the CSI external-provisioner: a volume is created in the
topology segment of the selected node, or, without a pod, in one chosen by the name of the claim, so
that the claims of a StatefulSet spread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from ...api.migration import PLUGIN_NAMED
from ...api.node import HOSTNAME, ZONE, Node
from ...api.selectors import NodeSelector, NodeSelectorTerm, Requirement
from ...api.storage import (
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from ...api.text.quantity import format_quantity, parse_value
from ..objects.object_index import ControllerCluster

Segment = tuple[tuple[str, str], ...]
"""Labels and values that identify a part of the cluster."""

_NETWORK_STORAGE = re.compile(
    r"(?:^|[./-])(?:nfs|cephfs|rbd|smb|cifs|efs|file|filestore|glusterfs|beegfs|lustre|longhorn)(?:[./-]|$)"
    r"|nfs-subdir-external-provisioner|nasplugin\.csi\.alibabacloud\.com"
)
"""Parts of the names of drivers whose volumes are reachable over the network, from every zone."""
_LOCAL_STORAGE = re.compile(r"local-path|hostpath|openebs\.io/local|local\.csi\.openebs|topolvm")
"""Parts of the names of drivers whose volumes are on one node."""
_NUMBERED = re.compile(r"(.*)-(\d+)")


class VolumeTopology(msgspec.Struct, frozen=True):
    """The topology of a new volume: the nodes that reach it (None means all), and the capacity it is
    taken from."""

    selector: NodeSelector | None
    room: CSIStorageCapacity | None = None


def find_place(
    cluster: ControllerCluster,
    storage_class: StorageClass,
    claim: PersistentVolumeClaim,
    node_name: str,
) -> VolumeTopology | None:
    """The topology for the volume of `claim`: for the selected node, if any; None if no node is possible."""
    node = cluster.get("Node", "", node_name) if node_name else None
    if node_name and node is None:
        return None
    segments = _segments(cluster, storage_class, [node] if node else cluster.list("Node"))
    csi_driver = cluster.get("CSIDriver", "", storage_class.provisioner)
    tracks_room = "storage" in claim.requests and csi_driver and csi_driver.spec.storage_capacity
    for segment in _in_turn(segments, claim.name):
        room = None
        if tracks_room:
            labels = node.labels if node is not None else dict(segment)
            room = _find_room(cluster, storage_class, labels, claim.requested_bytes)
            if room is None:
                continue
        return VolumeTopology(_selector(segment), room)
    return None


def with_room(room: CSIStorageCapacity, more_bytes: int) -> CSIStorageCapacity:
    """The capacity changed by an amount; the maximum volume size is limited to the rest."""
    left = None
    if room.capacity is not None:
        left = max(parse_value(room.capacity) + more_bytes, 0)
        room = replace(room, capacity=format_quantity(left, "storage"))
    if room.maximum_volume_size is not None and left is not None:
        largest = min(parse_value(room.maximum_volume_size), left)
        room = replace(room, maximum_volume_size=format_quantity(largest, "storage"))
    return room


def _segments(
    cluster: ControllerCluster, storage_class: StorageClass, nodes: Iterable[Node]
) -> list[Segment]:
    """The distinct segments of the nodes that the class allows, sorted."""
    found = set()
    for node in nodes:
        if not _is_allowed(storage_class.allowed_topologies, node.labels):
            continue
        keys = _topology_keys(cluster, storage_class, node)
        found.add(tuple((key, node.labels[key]) for key in keys if key in node.labels))
    return sorted(found)


def _topology_keys(
    cluster: ControllerCluster, storage_class: StorageClass, node: Node
) -> list[str]:
    """The driver's topology keys: from the node, else those of the class's topologies, else by the driver: none for
    network storage, the node for local storage, and the zone for others."""
    driver = driver_of(storage_class)
    csi_node = cluster.get("CSINode", "", node.name)
    for installed in csi_node.drivers if csi_node is not None else ():
        if installed.name == driver:
            return sorted(installed.topology_keys or ())
    terms = storage_class.allowed_topologies or ()
    keys = {wanted.key for term in terms for wanted in term.match_label_expressions or ()}
    return sorted(keys) or _usual_keys(cluster, driver)


def _usual_keys(cluster: ControllerCluster, driver: str) -> list[str]:
    """The topology keys that a driver has by its nature."""
    installed = cluster.get("CSIDriver", "", driver)
    needs_none = installed is not None and installed.spec.attach_required is False
    if _LOCAL_STORAGE.search(driver):
        return [HOSTNAME]
    return [] if needs_none or _NETWORK_STORAGE.search(driver) else [ZONE]


def _is_allowed(terms: Iterable[TopologySelectorTerm] | None, labels: Mapping[str, str]) -> bool:
    """Whether volumes may be created for a node with these labels."""
    alternatives = [term.match_label_expressions or () for term in terms or ()]
    if not alternatives:
        return True
    return any(
        wanted and all(labels.get(one.key) in (one.values or ()) for one in wanted)
        for wanted in alternatives
    )


def _find_room(
    cluster: ControllerCluster,
    storage_class: StorageClass,
    labels: Mapping[str, str],
    size_bytes: int,
) -> CSIStorageCapacity | None:
    for room in cluster.list("CSIStorageCapacity"):
        assert isinstance(room, CSIStorageCapacity), "the cluster separates kinds"
        if room.storage_class_name != storage_class.name or room.node_topology is None:
            continue
        limit = room.limit_bytes
        if limit is not None and limit >= size_bytes and room.node_topology.matches(labels):
            return room
    return None


def _in_turn(segments: list[Segment], claim_name: str) -> list[Segment]:
    """The segments, starting with that of the claim: claims with consecutive ordinals get
    consecutive ones."""
    if not segments:
        return []
    numbered = _NUMBERED.fullmatch(claim_name)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (claim_name, 0)
    first = int.from_bytes(blake2b(stem.encode(), digest_size=4).digest()) + number
    first %= len(segments)
    return segments[first:] + segments[:first]


def _selector(segment: Segment) -> NodeSelector | None:
    """Selects the nodes of the segment; one without labels is the whole cluster."""
    if not segment:
        return None
    conditions = (Requirement(key=key, operator="In", values=(value,)) for key, value in segment)
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(conditions)),)
    )


def driver_of(storage_class: StorageClass) -> str:
    """The driver that creates the volumes of the class; for an in-tree provisioner, its CSI
    replacement."""
    plugin = PLUGIN_NAMED.get(storage_class.provisioner)
    return storage_class.provisioner if plugin is None else plugin.driver
