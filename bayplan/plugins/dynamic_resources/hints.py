"""Queueing hints: events after which a pod that waits for devices may fit.

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
    called_for,
    required,
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
        """Record which claims a pod names that may have to wait."""
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
        claims = wait_for(RESOURCE_CLAIM, changes, helps=after_change)
        gone = wait_for(RESOURCE_CLAIM, ActionType.Delete, helps=after_claim_deleted)
        return (
            wait_for(NODE, node_changes),
            *((claims, gone) if self.wakes_on_delete else (claims,)),
            wait_for(POD, claims_made, helps=self.after_pod_change),
            wait_for(DEVICE_CLASS, changes),
            wait_for(RESOURCE_SLICE, changes),
        )

    def affected(self, old: Any, new: Any) -> Collection[str] | None:
        """For a claim that is not named in a pod's spec and keeps its allocation: the pod that it was made for."""
        before, after = old and required(ResourceClaim, old), required(ResourceClaim, new)
        if _gave_back(before, after):
            return None
        if (after.namespace, after.name) in self._named:
            return None
        owner = controller_of(after.owner_references)
        if owner is not None and owner.kind == PodGroup.kind:
            return None  # any member may use it
        return () if owner is None else (f"{after.namespace}/{owner.name}",)

    def after_claim_change(
        self, pod: Pod, before: ResourceClaim | None, after: ResourceClaim
    ) -> bool:
        """Hint: devices were released, or a claim of the pod was added or changed."""
        try:
            uses = after.uid in [claim.uid for claim in self._claims_of(pod)]
        except ClaimNotReadyError:
            return False  # no change helps until all of its claims exist
        if _gave_back(before, after):
            return True
        return uses and (before is None or not is_equal(before.status, after.status))

    def after_pod_change(self, pod: Pod, before: Pod | None, after: Pod) -> bool:
        """Hint: the status of the pod names its claims, and all of them exist."""
        if after.uid != pod.uid:
            return False
        try:
            for _ in self._claims_of(after):
                pass
        except ClaimNotReadyError:
            return False
        return True


def _gave_back(before: ResourceClaim | None, after: ResourceClaim) -> bool:
    return before is not None and bool(before.status.allocation) and not after.status.allocation


def after_claim_deleted(pod: Pod, gone: ResourceClaim, after: None) -> bool:
    """Hint: the devices of a deleted claim may serve the pod."""
    return bool(gone.status.allocation)
