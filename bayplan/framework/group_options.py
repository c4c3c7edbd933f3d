"""GroupOptions: where a profile schedules pod groups otherwise than kube-scheduler v1.36; and evictions that are held.

None of this is kube-scheduler's. The options are the arguments of GangScheduling, and all of them are off by default.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..api.pod import Pod
from .cycle_state import CycleState
from .victims import Victims

HELD = "HeldEvictions"


class GroupOptions(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Differences from kube-scheduler in the scheduling cycle of a pod group."""

    anti_affinity_both_ways: bool = False
    """The affinity terms of a member that has its node count for the members after it."""
    evict_for_whole_groups: bool = False
    """Members preempt for themselves only if the group then fits; until that is known, victims are not evicted."""
    share_pending_allocations: bool = False
    """The pending allocation of one member limits the nodes of the others, and need not be written twice."""


class HeldEviction(msgspec.Struct, frozen=True):
    """Victims that are evicted when the group of the pod fits without them."""

    pod: Pod
    victims: Victims
    evict: Callable[[], None]


def held_evictions(group: CycleState) -> list[HeldEviction]:
    """The evictions that are held in the cycle of a group, in order; plugins append to it."""
    found: list[HeldEviction] | None = group.get(HELD)
    if found is None:
        found = []
        group.write(HELD, found)
    return found
