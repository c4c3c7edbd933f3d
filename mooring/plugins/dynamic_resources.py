"""DynamicResources: devices that a pod claims.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go. Allocation is not there yet: a pod with
resource claims is refused.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ..api.dra import ClaimNotReadyError, ResourceClaim, claim_name_of
from ..api.equality import is_equal
from ..api.pod import Pod, PodSpec
from ..framework import (
    NODE_OBJECT,
    SKIP,
    SUCCESS,
    CycleState,
    Diagnosis,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from ..framework.events import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ActionType,
    EventWithHint,
    Hint,
    required,
    typed,
    wait_for,
)
from ..table import Ints, NodeTable, Rows

NOT_THERE = "DynamicResources does not allocate resource claims yet"


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Harmless to pods without claims; those with claims come no further than PreFilter."""

    name = "DynamicResources"
    reads_pin = False
    scope = NODE_OBJECT
    key_is_spec = True
    allow_parallel = True

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass

    def commits_for(self, spec: PodSpec) -> bool:
        return bool(spec.resource_claims)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SKIP

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def pod_key(self, pod: Pod) -> Hashable:
        return bool(pod.spec.resource_claims)

    def events_to_register(self) -> Sequence[EventWithHint]:
        changes = ActionType.Add | ActionType.Update
        node_changes = (
            ActionType.Add | ActionType.UpdateNodeAllocatable | ActionType.UpdateNodeLabel
        )
        claims_made = ActionType.UpdatePodGeneratedResourceClaim
        return (
            wait_for(NODE, node_changes),
            wait_for(RESOURCE_CLAIM, changes, self.after_claim_change),
            wait_for(POD, claims_made, self.after_pod_change),
            wait_for(DEVICE_CLASS, changes),
            wait_for(RESOURCE_SLICE, changes),
        )

    def after_claim_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Devices were given back by anyone, or a claim of the pod came or stands otherwise."""
        before, after = typed(ResourceClaim, old), required(ResourceClaim, new)
        try:
            uses = after.uid in [claim.uid for claim in self._claims(pod)]
        except ClaimNotReadyError:
            return Hint.SKIP  # until all of its claims are there, nothing helps
        if before is not None and before.status.allocation and not after.status.allocation:
            return Hint.QUEUE
        helps = uses and (before is None or not is_equal(before.status, after.status))
        return Hint.QUEUE if helps else Hint.SKIP

    def after_pod_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        """The pod itself was told the names of its claims, and all of them are there."""
        changed = required(Pod, new)
        if changed.uid != pod.uid:
            return Hint.SKIP
        try:
            for _ in self._claims(changed):
                pass
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE

    def _claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        """The claims of the pod; ClaimNotReadyError at the first that cannot be used."""
        for entry in pod.spec.resource_claims or ():
            name = claim_name_of(pod, entry)
            if name is None:
                continue
            claim = self.handle.lister.get(ResourceClaim.kind, pod.namespace, name)
            if claim is None:
                raise ClaimNotReadyError(f"claim {pod.namespace}/{name} is not there")
            if claim.is_terminating:
                raise ClaimNotReadyError(f"claim {claim.key} is being deleted")
            if entry.resource_claim_name is None and not claim.is_made_for(pod):
                raise ClaimNotReadyError(f"claim {claim.key} was made for another pod")
            yield claim

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        if pod.spec.resource_claims:
            return unresolvable(NOT_THERE)
        return SKIP

    def pre_filter_spec(self, spec: PodSpec) -> Status | None:
        return None if spec.resource_claims else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        if self.name in state.unreached:
            return PostFilterResult(), failure("not found")
        return PostFilterResult(), unschedulable("no new claims to deallocate")

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return np.zeros(table.count(rows), dtype=np.int64)
