"""First free: what the search finds where a device is free or in use, and nothing more counts.

The search takes the first candidate that is free, and goes back when it cannot go on. As long as it never has to go
back, or has nowhere to go back to, it finds what is found here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...framework.devices import DeviceId, Devices
from .claim_plans import AllocationError, ClaimPlan
from .search import Taken, refusal, timed_out


def first_free(
    devices: Devices,
    row: int,
    claims: Sequence[ClaimPlan],
    keys: Sequence[str],
    tries: int | None = None,
) -> list[list[Taken]] | str | None:
    """The devices for each of the plain `claims` at a row, or the reason why there are none; None if a search is
    needed.

    `keys` name the claims in errors; `tries` limits the search.
    """
    inventory, in_use = devices.inventory, devices.allocated.in_use
    consumed = devices.allocated.consumed
    taking: set[DeviceId] = set()
    taken: list[list[Taken]] = []
    for number, claim in enumerate(claims):
        found: list[Taken] = []
        for (plan,) in claim.requests:
            picked = inventory.picked_at(row, plan.selection)
            if not picked.are_plain:
                return None
            missing = plan.count
            for offer, fault, _ in picked.usable:
                if offer.id in in_use or offer.id in taking:
                    continue
                if offer.id in consumed:
                    return None
                if fault is not None:
                    raise AllocationError(fault.text(keys[number]))
                found.append(Taken(plan, offer, None))
                missing -= 1
                if not missing:
                    break
            if missing and taking:
                return None
            if missing:
                # The search would try every subset of the free devices, none of which is enough.
                if tries is not None and 2 ** (plan.count - missing) - 1 > tries:
                    raise timed_out(devices, row)
                return refusal(inventory.at(row))
            taking.update([one.offer.id for one in found])
        taken.append(found)
    return taken
