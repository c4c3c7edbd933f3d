"""VolumeBinding: the claims of the pod must have, or find, volumes that the node can reach.

Mirrors pkg/scheduler/framework/plugins/volumebinding/{volume_binding,scorer}.go. `claim_sets.py` sorts the claims of a
pod, `volume_search.py` finds the nodes and has the room that drivers publish, `volume_writes.py` gives a pod its
volumes; `volume_columns.py` has the volumes as columns, `assumed.py` what was given and is not written yet.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from ...amounts.domain_rules import NO_DOMAIN_RULES, DomainRules
from ...api.meta import is_equal
from ...api.pod import Pod, PodSpec
from ...api.storage import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from ...api.text.quantity import parse_value
from ...config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from ...errors import BayplanError
from ...framework import (
    GROUPS,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
    failure,
)
from ...framework.cancellation import CANCELLED, cancelled_error
from ...framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    EventWithHint,
    required,
    uses_claim,
    wait_for,
)
from ...framework.interface import NOT_SETTLED
from ...framework.scores import MAX_UTILIZATION, shape_heights
from ...table import Bools, Ints, NodeTable, Rows
from .assumed import AssumedObjects
from .claim_sets import PodClaims, are_bound, check_claims, has_claims, sort_claims
from .volume_columns import NONE, VolumeColumns
from .volume_search import Finder, FoundVolumes
from .volume_writes import Binder, PodVolumes

REASON_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
REASON_NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
REASON_VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SCORING_GATE = "StorageCapacityScoring"
STATE = "VolumeBinding"
SKIPS_PRE_SCORE = Settled(pre_score=SKIP)
WITHOUT_CLAIMS = Settled(pre_filter=SKIP, pre_score=SKIP, commits=False)
WITHOUT_CLAIMS_SCORED = Settled(pre_filter=SKIP, commits=False)


class BindingState(msgspec.Struct):
    """The pod's claims, and from Reserve on its volumes (None if there are none to assume)."""

    claims: PodClaims
    is_filtered: bool = False
    given: PodVolumes | None = None


class VolumeBinding(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Volumes are found for all nodes at once; for the node that is chosen they are found once more and assumed."""

    name = "VolumeBinding"
    allow_parallel = True

    def __init__(self, bind_timeout_s: float = 600, scorer: CapacityScorer | None = None) -> None:
        self._timeout_s = bind_timeout_s
        self._scorer = scorer
        self._facts: _ClusterFacts | None = None

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or VolumeBindingArgs()
        scoring = handle.feature_gates.enabled(SCORING_GATE)
        scorer = CapacityScorer(args.shape) if scoring else None
        kind: type[Any] = ScoringVolumeBinding if scoring else cls
        plugin: Self = kind(args.bind_timeout_seconds, scorer)
        plugin.handle = handle
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        return events()

    def settled(self, spec: PodSpec) -> Settled:
        if has_claims(spec):
            return SKIPS_PRE_SCORE if self._scorer is None else NOT_SETTLED
        return WITHOUT_CLAIMS if self._scorer is None else WITHOUT_CLAIMS_SCORED

    # Filter

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        if not has_claims(pod.spec):
            return SKIP
        refusal = check_claims(pod, self.handle.lister)
        if refusal is not None:
            return refusal
        claims = sort_claims(pod, self._current_facts().claims, self.handle.lister)
        if isinstance(claims, Status):
            return claims
        state.write(STATE, BindingState(claims))
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        if not has_claims(pod.spec):
            return verdict
        known: BindingState = state.read(STATE)
        known.is_filtered = True
        finder = self._current_facts().finder
        try:
            if finder.suits_everywhere(known.claims):
                return verdict
            found = finder.find(known.claims, table, rows)
        except BayplanError:
            self._count_error("predicate")
            raise
        for mask, reason in (
            (found.mismatch, REASON_NODE_CONFLICT),
            (found.no_match, REASON_BIND_CONFLICT),
            (found.no_space, REASON_NOT_ENOUGH_SPACE),
            (found.missing, REASON_VOLUME_MISSING),
        ):
            verdict.reject(mask, reason, unresolvable=True)
        return verdict

    # Score

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SKIP if self._scorer is None else SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        size, known = table.count(rows), state.get(STATE)
        if self._scorer is None or known is None or not known.claims.delayed:
            return np.zeros(size, dtype=np.int64)
        finder = self._current_facts().finder
        found = finder.find(known.claims, table, rows)
        return self._scorer.score(found, finder.columns, size)

    # Reserve

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if not has_claims(pod.spec):
            return SUCCESS
        known: BindingState = state.read(STATE)
        known.given = None
        facts = self._current_facts()
        is_bound = not known.claims.delayed or are_bound(pod, facts.claims)
        if not known.is_filtered or is_bound:
            return SUCCESS
        table = self.handle.table
        row = np.array([table.row_of[node_name]], dtype=np.int64)
        try:
            found = facts.finder.find(known.claims, table, row)
            known.given = facts.binder.assume(found, 0, node_name)
        except BayplanError as error:
            self._count_error("assume")
            return failure(error)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        known: BindingState | None = state.get(STATE)
        if known is not None and known.given is not None:
            self._current_facts().binder.restore(known.given)

    # PreBind

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if not has_claims(pod.spec):
            return SKIP
        known: BindingState = state.read(STATE)
        return SKIP if known.given is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known: BindingState | None = state.get(STATE)
        if known is None or known.given is None:
            return SUCCESS
        try:
            await self._current_facts().binder.bind(pod, known.given)
        except cancelled_error():
            if not state.cancellation.is_set:
                raise
            self._count_error("bind")
            return failure(f"binding volumes: {CANCELLED}")
        except BayplanError as error:
            self._count_error("bind")
            return failure(error)
        return SUCCESS

    def _count_error(self, operation: str) -> None:
        self.handle.metrics.volume_errors.labels(operation).count += 1

    def _current_facts(self) -> _ClusterFacts:
        """The plugin's indexes over the cluster; replaced when the plugin gets another handle."""
        if self._facts is None or self._facts.handle is not self.handle:
            self._facts = _ClusterFacts(self.handle, self._timeout_s)
        return self._facts


class _ClusterFacts:
    """Cached facts of the cluster."""

    def __init__(self, handle: Handle, timeout_s: float) -> None:
        self.handle = handle
        self.claims = AssumedObjects(PersistentVolumeClaim, handle.lister)
        self.volumes = AssumedObjects(PersistentVolume, handle.lister)
        self.finder = Finder(handle, self.claims, self.volumes)
        self.binder = Binder(handle, self.claims, self.volumes, self.finder, timeout_s)


class ScoringVolumeBinding(VolumeBinding):
    """VolumeBinding with feature gate StorageCapacityScoring. Pods without claims have equal scores on all nodes."""

    scope = GROUPS

    def spec_key(self, spec: PodSpec) -> Hashable:
        return has_claims(spec)

    def cluster_key(self, table: NodeTable) -> Hashable:
        return None

    def row_groups(self, pod: Pod, table: NodeTable) -> DomainRules | None:
        return None if has_claims(pod.spec) else NO_DOMAIN_RULES


DEFAULT_SHAPE = ((0, 10), (100, 0))


class CapacityScorer:
    """Turns the share of the offered storage that would be used into a score, by a broken line."""

    def __init__(self, shape: Sequence[UtilizationShapePoint] | None = None) -> None:
        given = [(point.utilization, point.score) for point in shape or ()] or DEFAULT_SHAPE
        self._heights = shape_heights(given)

    def score(self, found: FoundVolumes, volumes: VolumeColumns, size: int) -> Ints:
        """int64 per row: the mean over the storage classes of the claims, in whole points.

        On nodes with existing volumes for the pod, only those count; elsewhere the room for new ones does.
        """
        total = np.zeros(size, dtype=np.int64)
        classes = np.zeros(size, dtype=np.int64)
        for counted, requested, capacity in _by_class(found, volumes, size):
            used = requested * MAX_UTILIZATION // np.maximum(capacity, 1)
            used = np.where((capacity == 0) | (requested > capacity), MAX_UTILIZATION, used)
            total += np.where(counted, self._heights[used], 0)
            classes += counted
        at_least_one = np.maximum(classes, 1)
        mean: Ints = (2 * total + at_least_one) // (2 * at_least_one)  # halves are rounded up
        return mean


Share = tuple[Bools, Ints, Ints]
"""Per row: whether the class counts there, its requested and its offered bytes."""


def _by_class(found: FoundVolumes, volumes: VolumeColumns, size: int) -> Iterator[Share]:
    static: Bools = np.zeros(size, dtype=np.bool_)
    shares: dict[int, Share] = {}
    for binding in found.bindings:
        chosen = binding.numbers != NONE
        if not chosen.any():
            continue
        static |= chosen
        classes, capacities = volumes.offers(binding.numbers)
        for number in np.unique(classes[chosen]).tolist():
            here = chosen & (classes == number)
            asked = np.where(here, binding.claim.requested_bytes, 0)
            _add(shares, number, (here, asked, np.where(here, capacities, 0)))
    yield from shares.values()
    yield from _rooms_by_class(found, ~static)


def _rooms_by_class(found: FoundVolumes, rows: Bools) -> Iterator[Share]:
    shares: dict[str, Share] = {}
    for provision in found.provisions:
        if provision.places is None:
            continue
        here = rows & provision.needed & (provision.places != NONE)
        sizes = [0 if room is None else parse_value(room.capacity) for room in provision.rooms]
        offered = np.array([*sizes, 0], dtype=np.int64)[provision.places]
        asked = np.where(here, provision.claim.requested_bytes, 0)
        name = provision.claim.spec.storage_class_name or ""
        if name in shares:
            counted, before, capacity = shares[name]
            # The amounts are not summed: the claims share the room, and the amount of the last claim counts.
            shares[name] = counted | here, before + asked, np.where(here, offered, capacity)
        else:
            shares[name] = here, asked, np.where(here, offered, 0)
    yield from shares.values()


def _add(shares: dict[int, Share], number: int, share: Share) -> None:
    known = shares.get(number)
    if known is None:
        shares[number] = share
    else:
        shares[number] = known[0] | share[0], known[1] + share[1], known[2] + share[2]


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    changes = ActionType.Add | ActionType.Update
    return (
        wait_for(STORAGE_CLASS, changes, helps=after_class_change),
        wait_for(PERSISTENT_VOLUME_CLAIM, changes, helps=uses_claim),
        wait_for(PERSISTENT_VOLUME, changes),
        wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel),
        wait_for(CSI_NODE, changes, helps=after_csi_node_change),
        wait_for(CSI_DRIVER, ActionType.Update, helps=after_driver_change),
        wait_for(CSI_STORAGE_CAPACITY, changes, helps=after_capacity_change),
    )


def after_class_change(pod: Pod, before: StorageClass | None, after: StorageClass) -> bool:
    """Hint: a class was added, or its allowed topologies changed."""
    return before is None or not is_equal(before.allowed_topologies, after.allowed_topologies)


def after_csi_node_change(pod: Pod, before: CSINode | None, after: CSINode) -> bool:
    """Hint: drivers were registered on a node, or other in-tree volumes were migrated there."""
    if before is None:
        return True
    then, now = (node.annotations.get(MIGRATED_PLUGINS, "") for node in (before, after))
    return then != now


def after_driver_change(pod: Pod, before: Any, after: CSIDriver) -> bool:
    """Hint: the driver of an inline volume of the pod no longer publishes its capacity."""
    if not required(CSIDriver, before).spec.storage_capacity or after.spec.storage_capacity:
        return False
    return any(v.csi is not None and v.csi.driver == after.name for v in pod.spec.volumes or ())


def after_capacity_change(
    pod: Pod, before: CSIStorageCapacity | None, after: CSIStorageCapacity
) -> bool:
    """Hint: capacity was published, or has grown."""
    if before is None:
        return True
    then, now = before.limit_bytes, after.limit_bytes
    return now is not None and (then is None or now > then)
