"""Claim release: give claims back that keep a pod from its node, so that they can get other devices.

Mirrors PostFilter of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...api.pod import Pod
from ...errors import ApiError
from ...framework import Handle, Status, unresolvable, unschedulable
from ...framework.devices import Devices
from .claim_state import ClaimState
from .claim_writes import ClaimBinder, drive
from .pod_claims import group_of, unused_claims

log = logging.getLogger(__name__)


class Giving:
    """Gives back one claim; `do` runs the remaining work of a client."""

    def __init__(self, handle: Handle, binder: ClaimBinder, do: Callable[[object], None]) -> None:
        self._handle = handle
        self._binder = binder
        self._do = do

    def give_back(self, known: ClaimState, pod: Pod, has_group_claims: bool) -> Status | None:
        """Give back one claim that keeps the pod from its node; it may get other devices then. None without one."""
        binder = self._binder
        for position in sorted(known.unavailable):
            claim = known.claims[position]
            users = claim.status.reserved_for or ()
            is_used = len(users) > 1 or any(user.uid != pod.uid for user in users)
            if claim is not known.extended and not is_used:
                self._do(drive(binder.deallocate(claim)))
                return unschedulable("deallocation of ResourceClaim completed")
        if known.is_stale and known.extended is not None:
            self._do(drive(binder.remove(known.extended)))
            return unschedulable("deletion of ResourceClaim completed")
        if has_group_claims and self._unreserve_group(pod):
            return unresolvable("ResourceClaim unreserved for PodGroup")
        return None

    def _unreserve_group(self, pod: Pod) -> bool:
        """Release one claim of a group of which no member has a node, so that it can get other devices."""
        group = group_of(pod, self._handle.lister)
        if group is None:
            return False
        if self._handle.pod_groups.kept_count(("PodGroup", group.namespace, group.name)):
            return False
        claims = Devices.of(self._handle).claims
        for claim in unused_claims(group, pod, claims.get):
            try:
                self._do(drive(self._binder.release(claim, group.uid)))
            except ApiError as error:
                log.warning("claim %s: cannot be unreserved: %s", claim.key, error)
            else:
                return True
        return False
