"""When a pod that waits for devices is worth another try.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...api.dra import ClaimNotReadyError, ResourceClaim
from ...api.equality import is_equal
from ...api.pod import Pod
from ...framework.events import (
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


class ClaimHints:
    """The hints of DynamicResources; `claims_of` finds the claims of a pod, or raises ClaimNotReadyError."""

    def __init__(self, claims_of: Callable[[Pod], Iterable[ResourceClaim]]) -> None:
        self._claims_of = claims_of

    def events(self) -> Sequence[EventWithHint]:
        """What the plugin waits for."""
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
            uses = after.uid in [claim.uid for claim in self._claims_of(pod)]
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
            for _ in self._claims_of(changed):
                pass
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE
