"""Provisioners: create volumes for claims, with delay and failures, as drivers do.

Simulates the external provisioner of CSI (sig-storage-lib-external-provisioner): the topology and
name of a volume, and the return of a claim to the scheduler when its volume cannot be created for
the pod's node. Annotations of the StorageClass, else `Provisioning`, set delay and failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from ...api.meta import ObjectMeta
from ...api.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    CSIPersistentVolume,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
    with_annotation,
)
from ...api.text.durations import EXPECTED, parse_duration
from ..objects.object_index import ControllerCluster, Later
from . import topology
from .topology import driver_of

DELAY = "bayplan.dev/provision-delay"
FAILURES = "bayplan.dev/provision-failures"
ON_FAILURE = "bayplan.dev/provision-on-failure"
RESCHEDULE, RETRY = "reschedule", "retry"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 300.0
ALWAYS = 1.0


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
            self._cluster.update(topology.with_room(stored, size_bytes))

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
        where = topology.find_place(self._cluster, storage_class, claim, node_name)
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
        where: topology.VolumeTopology,
    ) -> None:
        volume = make_volume(claim, storage_class, where)
        if where.room is not None:
            self._cluster.update(topology.with_room(where.room, -claim.requested_bytes))
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
    claim: PersistentVolumeClaim, storage_class: StorageClass, where: topology.VolumeTopology
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
