"""Provisioners: create volumes for claims, with delay and failures, where nodes can reach them, as drivers do.

Simulates the external provisioner of CSI (sig-storage-lib-external-provisioner): the topology and
name of a volume, and the return of a claim to the scheduler when its volume cannot be created for
the pod's node. Without a pod, a volume is created in a topology segment chosen by the name of the claim, so that the
claims of a StatefulSet spread (pkg/controller/topology.go). Annotations of the StorageClass, else `Provisioning`, set
delay and failures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from ...api.meta import ObjectMeta
from ...api.migration import PLUGIN_NAMED
from ...api.node import HOSTNAME, ZONE, Node
from ...api.selectors import NodeSelector, NodeSelectorTerm, Requirement
from ...api.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    CSIPersistentVolume,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    with_annotation,
)
from ...api.text.durations import EXPECTED, parse_duration
from ...api.text.quantity import format_quantity, parse_value
from ..objects.object_index import ControllerCluster, Later

DELAY = "bayplan.dev/provision-delay"
FAILURES = "bayplan.dev/provision-failures"
ON_FAILURE = "bayplan.dev/provision-on-failure"
RESCHEDULE, RETRY = "reschedule", "retry"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 300.0
ALWAYS = 1.0
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


class Provisioning(msgspec.Struct, frozen=True):
    """Default behaviour of provisioners: after `delay_s`, with failures.

    Of each claim the first `failures` attempts fail, of all others the share `failure_rate`,
    sampled with `seed`. After a failure the claim is returned to the scheduler (`reschedule`), or
    retried on the same node (`retry`).
    """

    delay_s: float = 0.0
    failures: int = 0
    failure_rate: float = 0.0
    on_failure: str = RESCHEDULE
    seed: int = 0

    def of(self, storage_class: StorageClass) -> Provisioning:
        """These settings, overridden by the class's annotations."""
        notes, said = storage_class.annotations, self
        if DELAY in notes:
            said = replace(said, delay_s=parse_duration(notes[DELAY]) or 0.0)
        if FAILURES in notes:
            failures, rate = parse_failures(notes[FAILURES]) or (0, 0.0)
            said = replace(said, failures=failures, failure_rate=rate)
        if notes.get(ON_FAILURE) in (RESCHEDULE, RETRY):
            said = replace(said, on_failure=notes[ON_FAILURE])
        return said

    def fails(self, claim: PersistentVolumeClaim, attempt: int) -> bool:
        """Whether the attempt of that number fails; deterministic."""
        if attempt <= self.failures:
            return True
        seed = f"{self.seed}/{claim.uid}/{attempt}".encode()
        chance = int.from_bytes(blake2b(seed, digest_size=8).digest()) / 2**64
        return chance < self.failure_rate


def parse_failures(text: str) -> tuple[int, float] | None:
    """The number of initial failures, and the failure share; None when the text is neither."""
    if text.isdecimal():
        return int(text), 0.0
    number = text.removesuffix("%")
    if number == text or not number.replace(".", "", 1).isdecimal():
        return None
    share = float(number) / 100
    return (0, share) if share <= 1 else None


def provisioning_problems(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the invalid annotations of a StorageClass with their faults."""
    delay = annotations.get(DELAY)
    if delay is not None and parse_duration(delay) is None:
        yield DELAY, f'{EXPECTED}; got "{delay}"'
    failures = annotations.get(FAILURES)
    if failures is not None and parse_failures(failures) is None:
        yield (
            FAILURES,
            f'expected a number of attempts such as 2, or a share such as 30%; got "{failures}"',
        )
    then = annotations.get(ON_FAILURE)
    if then not in (None, RESCHEDULE, RETRY):
        yield ON_FAILURE, f'expected {RESCHEDULE} or {RETRY}; got "{then}"'


class Provisioner:
    """The provisioners of all drivers. One attempt per claim runs at a time.

    `done` is called when an attempt ended at a later moment. Without `timers` attempts take no
    time, and there are no retries.
    """

    def __init__(
        self,
        cluster: ControllerCluster,
        settings: Provisioning,
        timers: Later | None,
        done: Callable[[], object],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._timers = timers
        self._done = done
        self._under_way: set[str] = set()
        self._attempts: Counter[str] = Counter()
        self._room_of: dict[str, tuple[CSIStorageCapacity, int]] = {}

    def provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        """Provision a volume for the claim, unless that is running or its class has no provisioner."""
        if storage_class.provisioner in ("", NO_PROVISIONER) or claim.uid in self._under_way:
            return
        driver = driver_of(storage_class)
        if claim.annotations.get(STORAGE_PROVISIONER) != driver:
            claim = with_annotation(claim, BETA_STORAGE_PROVISIONER, driver)
            claim = self._cluster.update(with_annotation(claim, STORAGE_PROVISIONER, driver))
        self._under_way.add(claim.uid)
        self._later(self._settings.of(storage_class).delay_s, claim)

    def reclaim(self, volume: PersistentVolume) -> None:
        """Return the capacity of a deleted volume."""
        room, size_bytes = self._room_of.pop(volume.name, (None, 0))
        stored = room and self._cluster.get(room.kind, room.namespace, room.name)
        if stored is not None:
            self._cluster.update(with_room(stored, size_bytes))

    def _later(self, delay_s: float, claim: PersistentVolumeClaim) -> None:
        node_name = claim.annotations.get(SELECTED_NODE, "")

        def attempt() -> None:
            self._attempt(claim, node_name)
            self._done()

        if delay_s > 0 and self._timers is not None:
            self._timers.after(delay_s, attempt)
        else:
            self._attempt(claim, node_name)

    def _attempt(self, begun: PersistentVolumeClaim, node_name: str) -> None:
        """Create the volume now, or fail."""
        self._under_way.discard(begun.uid)
        claim = self._cluster.get(begun.kind, begun.namespace, begun.name)
        if (
            claim is None
            or claim.uid != begun.uid
            or claim.is_terminating
            or claim.spec.volume_name
        ):
            return  # the volume is no longer needed
        storage_class = self._cluster.get("StorageClass", "", claim.storage_class_name)
        if storage_class is None:
            return
        selected = claim.annotations.get(SELECTED_NODE, "")
        if selected != node_name or (storage_class.waits_for_consumer and not selected):
            if selected:
                self.provision(claim, storage_class)  # for the node selected now
            return
        self._attempts[claim.uid] += 1
        number, settings = self._attempts[claim.uid], self._settings.of(storage_class)
        where = find_place(self._cluster, storage_class, claim, node_name)
        if where is None:
            self._fail(claim, replace(settings, on_failure=RESCHEDULE), number)
        elif settings.fails(claim, number):
            self._fail(claim, settings, number)
        else:
            self._make(claim, storage_class, where)

    def _make(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        where: VolumeTopology,
    ) -> None:
        volume = make_volume(claim, storage_class, where)
        if where.room is not None:
            self._cluster.update(with_room(where.room, -claim.requested_bytes))
            self._room_of[volume.name] = where.room, claim.requested_bytes
        self._cluster.add(volume)

    def _fail(self, claim: PersistentVolumeClaim, settings: Provisioning, number: int) -> None:
        """Return the claim to the scheduler; an immediate claim is retried after a delay."""
        if settings.on_failure == RESCHEDULE and SELECTED_NODE in claim.annotations:
            notes = {k: v for k, v in claim.annotations.items() if k != SELECTED_NODE}
            self._cluster.update(
                replace(claim, metadata=replace(claim.metadata, annotations=notes))
            )
            return
        if self._timers is None or settings.failure_rate >= ALWAYS:
            return  # it would never succeed
        pause_s = min(FIRST_RETRY_S * 2 ** min(number - 1, 10), LAST_RETRY_S)
        self._under_way.add(claim.uid)
        self._later(settings.delay_s + pause_s, claim)


def make_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, where: VolumeTopology
) -> PersistentVolume:
    """The volume that a driver creates for the claim, bound to it from the start."""
    driver, name = driver_of(storage_class), f"pvc-{claim.uid}"
    spec = PersistentVolumeSpec(
        capacity={"storage": claim.requests.get("storage", "0")},
        access_modes=claim.spec.access_modes,
        claim_ref=claim.reference,
        persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
        storage_class_name=storage_class.name,
        volume_mode=claim.spec.volume_mode,
        node_affinity=None
        if where.selector is None
        else VolumeNodeAffinity(required=where.selector),
        volume_attributes_class_name=claim.spec.volume_attributes_class_name,
        # The name of a provisioner may have a slash, that of a CSI driver may not.
        csi=CSIPersistentVolume(driver=driver.replace("/", "-"), volume_handle=name),
    )
    metadata = ObjectMeta(name=name, annotations={PROVISIONED_BY: driver})
    return PersistentVolume(metadata=metadata, spec=spec)


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
