"""When a pod that waits for devices is worth another try.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ...api.dra import ClaimNotReadyError, ResourceClaim
from ...api.meta import controller_of, is_equal
from ...api.pod import Pod
from ...api.pod_groups import PodGroup
from ...framework.events import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ActionType,
    EventWithHint,
    Hint,
    called_for,
    required,
    typed,
    wait_for,
)


class ClaimHints:
    """The hints of DynamicResources; `claims_of` finds the claims of a pod, or raises ClaimNotReadyError."""

    wakes_on_delete = False
    """Fact `claim_delete_event` of the release."""

    def __init__(self, claims_of: Callable[[Pod], Iterable[ResourceClaim]]) -> None:
        self._claims_of = claims_of
        self._named: set[tuple[str, str]] = set()

    def saw(self, pod: Pod) -> None:
        """The pod may come to wait: note which claims it names."""
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_name is not None:
                self._named.add((pod.namespace, entry.resource_claim_name))

    def events(self) -> Sequence[EventWithHint]:
        """Events that the plugin waits for."""
        changes = ActionType.Add | ActionType.Update
        node_changes = (
            ActionType.Add | ActionType.UpdateNodeAllocatable | ActionType.UpdateNodeLabel
        )
        claims_made = ActionType.UpdatePodGeneratedResourceClaim
        after_change = called_for(self.affected)(self.after_claim_change)
        claims = wait_for(RESOURCE_CLAIM, changes, after_change)
        gone = wait_for(RESOURCE_CLAIM, ActionType.Delete, after_claim_deleted)
        return (
            wait_for(NODE, node_changes),
            *((claims, gone) if self.wakes_on_delete else (claims,)),
            wait_for(POD, claims_made, self.after_pod_change),
            wait_for(DEVICE_CLASS, changes),
            wait_for(RESOURCE_SLICE, changes),
        )

    def affected(self, old: Any, new: Any) -> Collection[str] | None:
        """For a claim that no pod names and that keeps its allocation: the pod it was made for."""
        before, after = typed(ResourceClaim, old), required(ResourceClaim, new)
        if before is not None and before.status.allocation and not after.status.allocation:
            return None
        if (after.namespace, after.name) in self._named:
            return None
        owner = controller_of(after.owner_references)
        if owner is not None and owner.kind == PodGroup.kind:
            return None  # any member may use it
        return () if owner is None else (f"{after.namespace}/{owner.name}",)

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
        """The status of the pod names its claims, and all of them exist."""
        changed = required(Pod, new)
        if changed.uid != pod.uid:
            return Hint.SKIP
        try:
            for _ in self._claims_of(changed):
                pass
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE


def after_claim_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """The devices of a claim that is gone may be those the pod needs."""
    gone = typed(ResourceClaim, old)
    return Hint.QUEUE if gone is None or gone.status.allocation else Hint.SKIP
