"""Search: which devices of a node serve some claims, first come, first served.

Mirrors Allocate, allocateOne and allocateDevice of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go: depth first over
claims, requests, alternatives and devices, each in order; the first solution counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from ...api.dra import MAX_RESULTS
from ...api.text.quantity import parse_quantity
from ...framework.devices import (
    Allocated,
    Amounts,
    Candidate,
    Devices,
    ExpressionFault,
    NodeOffers,
    Offer,
    PoolId,
    PoolView,
)
from .claim_constraints import ConstraintTracker, make_constraint
from .claim_plans import AllocationError, ClaimPlan, RequestPlan
from .device_capacity import CapacityError, Use, uses_of

INVALID_POOLS = "invalid resource pools were encountered"
CANNOT_ALLOCATE = "cannot allocate all claims"
TIMED_OUT = "timed out trying to allocate devices"


class Taken(NamedTuple):
    """A device that was taken for a request, and the part of it if others may use it, too."""

    plan: RequestPlan
    offer: Offer
    uses: dict[str, Use] | None


class BranchEnd(Enum):
    """Result of a branch of the search."""

    NO = 0
    YES = 1
    TOO_MANY = 2
    """The claim exceeds the limit of devices per claim, whichever devices were taken before."""


NO, YES, TOO_MANY = BranchEnd.NO, BranchEnd.YES, BranchEnd.TOO_MANY


class _Undo(msgspec.Struct):
    """Changes made by taking a device."""

    claim: int
    taken: Taken
    view: PoolView
    has_counted: bool
    constraints: int
    had_uses: bool


class DeviceSearch:
    """One search on one node. `claims` are the plans, `keys` name the claims in errors, `tries` limits the search."""

    def __init__(
        self,
        devices: Devices,
        row: int,
        claims: Sequence[ClaimPlan],
        keys: Sequence[str],
        tries: int | None = None,
    ) -> None:
        self._devices = devices
        self._allocated: Allocated = devices.allocated
        self._in_use = devices.allocated.in_use
        self._row = row
        self._claims = claims
        self._keys = keys
        self._tries = tries
        self._offers = devices.inventory.at(row)
        self._everything: dict[RequestPlan, list[Candidate]] = {}
        self._constraints: list[list[ConstraintTracker]] = []
        self._taking: dict[tuple[str, str, str], list[int]] = {}
        self._using: dict[tuple[str, str, str], dict[str, int]] = {}
        self._counting: dict[PoolId, Amounts] = {}
        self.taken: list[list[Taken]] = [[] for _ in claims]

    def run(self) -> str | None:
        """None when all claims can be served (see `taken`), else the reason why not. AllocationError for a fault of a
        claim.
        """
        for number, claim in enumerate(self._claims):
            self._check(number, claim)
            self._constraints.append(self._make_constraints(number, claim))
        return None if self._serve_claim(0) is YES else refusal(self._offers)

    # Before the search

    def _check(self, number: int, claim: ClaimPlan) -> None:
        """Compute the least number of devices that the claim needs; raise if a request cannot be served."""
        fewest = 0
        for options in claim.requests:
            features = self._devices.features
            if features.is_incubating and not features.consumable_capacity:
                self._check_capacity(number, options)
            fewest += min(self._size(number, plan) for plan in options)
        if fewest > MAX_RESULTS:
            text = f"number of requested devices {fewest} exceeds the claim limit of {MAX_RESULTS}"
            raise AllocationError(f"claim {self._keys[number]}: {text}")

    def _check_capacity(self, number: int, options: Sequence[RequestPlan]) -> None:
        """Raise for a request for capacity, which is disabled."""
        for plan in options:
            if plan.capacity is not None:
                kind = "subrequest" if plan.alternative else "request"
                where = f"claim {self._keys[number]}, {kind} {plan.own_name}"
                text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                raise AllocationError(f"{where}: {text}")

    def _make_constraints(self, number: int, claim: ClaimPlan) -> list[ConstraintTracker]:
        made = []
        for i, wanted in enumerate(claim.constraints):
            constraint = make_constraint(wanted, self._devices.features)
            if constraint is None:
                text = "empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {self._keys[number]}, constraint #{i}: {text}")
            made.append(constraint)
        return made

    def _size(self, number: int, plan: RequestPlan) -> int:
        if plan.fault:
            text = f"claim {self._keys[number]}, request {plan.own_name}{plan.fault}"
            raise AllocationError(text)
        if not plan.wants_all:
            return plan.count
        picked: dict[PoolView, list[Candidate]] = {}
        for candidate in self._devices.inventory.picked_at(self._row, plan.selection).candidates:
            picked.setdefault(candidate[2], []).append(candidate)
        wanted: list[Candidate] = []
        for view in self._offers.views:
            if view.is_incomplete or view.is_invalid:
                state = "being updated" if view.is_incomplete else "invalid"
                pool = "/".join(view.id)
                raise AllocationError(
                    f"claim {self._keys[number]}, request {plan.own_name}: asks for all devices, "
                    f"but resource pool {pool} is currently {state}"
                )
            wanted += self._wanted(number, plan, picked.get(view, ()))
        self._everything[plan] = wanted
        return len(wanted)

    def _wanted(
        self, number: int, plan: RequestPlan, picked: Sequence[Candidate]
    ) -> Iterator[Candidate]:
        """The devices that a request for all devices must get."""
        counts_full = self._devices.features.release.all_counts_full
        for candidate in picked:
            if candidate[1] is not None:
                raise self._failed(number, candidate[0], candidate[1])
            uses = self._uses(candidate[0], plan)
            if uses is not None and (counts_full or self._has_room(candidate[0], uses)):
                yield candidate

    def _failed(self, number: int, offer: Offer, fault: ExpressionFault) -> AllocationError:
        """The error for an expression that failed on a device."""
        return AllocationError(
            fault.text(self._keys[number], offer, self._devices.features.release)
        )

    # The search

    def _serve_claim(self, number: int) -> BranchEnd:
        if number >= len(self._claims):
            return YES
        return self._serve_request(number, 0)

    def _serve_request(self, number: int, position: int) -> BranchEnd:
        requests = self._claims[number].requests
        if position >= len(requests):
            outcome = self._serve_claim(number + 1)
            # Another claim with too many devices may need fewer if this one gets other devices.
            return NO if outcome is TOO_MANY else outcome
        options = requests[position]
        if not options[0].alternative:
            return self._serve(number, position, options[0], 0, 0)
        are_all_too_many = True
        for plan in options:
            outcome = self._serve(number, position, plan, 0, 0)
            if outcome is YES:
                return YES
            if outcome is NO:
                are_all_too_many = False
        return TOO_MANY if are_all_too_many else NO

    def _serve(
        self, number: int, position: int, plan: RequestPlan, done: int, start: int
    ) -> BranchEnd:
        """Serve the rest of a request of which `done` devices are taken, looking from candidate `start` on."""
        everything = self._everything.get(plan)
        if everything is not None and not everything:
            return NO
        size = plan.count if everything is None else len(everything)
        if done >= size:
            return self._serve_request(number, position + 1)
        if len(self.taken[number]) + size - done > MAX_RESULTS:
            return TOO_MANY
        if everything is not None:
            return self._serve_all(number, position, plan, done, everything)
        candidates = self._devices.inventory.picked_at(self._row, plan.selection).usable
        for index in range(start, len(candidates)):
            offer, fault, view = candidates[index]
            if view.fault:
                raise AllocationError(view.fault)
            if not view.is_usable or self._is_taken(number, plan, offer):
                continue
            if fault is not None:
                raise self._failed(number, offer, fault)
            undo = self._take(number, plan, offer, view, False)
            self._try()
            if undo is None:
                continue
            outcome = self._serve(number, position, plan, done + 1, index + 1)
            if outcome is YES:
                return YES
            self._give_back(undo)
            if outcome is TOO_MANY:
                return TOO_MANY
        return NO

    def _serve_all(
        self,
        number: int,
        position: int,
        plan: RequestPlan,
        done: int,
        everything: list[Candidate],
    ) -> BranchEnd:
        """Take the next device of a request for all devices."""
        offer, _, view = everything[done]
        undo = self._take(number, plan, offer, view, True)
        if undo is None:
            return NO
        if not self._devices.features.release.keeps_alternative:
            plan = self._claims[number].requests[position][0]
        outcome = self._serve(number, position, plan, done + 1, 0)
        if outcome is not YES:
            self._give_back(undo)
        return outcome

    def _try(self) -> None:
        """Count a try; the search of all combinations is limited, because it may take exponential time."""
        if self._tries is not None:
            self._tries -= 1
            if self._tries < 0:
                raise timed_out(self._devices, self._row)

    # One device

    def _is_taken(self, number: int, plan: RequestPlan, offer: Offer) -> bool:
        taking = self._taking.get(offer.id)
        if plan.is_admin:
            return taking is not None and number in taking
        return offer.id in self._in_use or bool(taking)

    def _take(
        self, number: int, plan: RequestPlan, offer: Offer, view: PoolView, must: bool
    ) -> _Undo | None:
        """Take a device; None if it cannot be taken, AllocationError if it is required (`must`) and a constraint
        refuses it.
        """
        taking = self._taking.get(offer.id, ())
        if plan.is_admin:
            if not offer.is_shared and number in taking:
                return None
        elif offer.id in self._in_use or taking:
            return None
        uses = self._uses(offer, plan)
        undo = _Undo(number, Taken(plan, offer, None), view, False, 0, offer.id in self._using)
        is_counted = offer.is_shared and (undo.had_uses or self._is_in_part_used(offer))
        if offer.consumes and not is_counted:
            if not self._count(view, offer.consumes):
                return None
            undo.has_counted = True
        if not plan.selection.tolerates(offer):
            self._uncount(undo)
            return None
        for constraint in self._constraints[number]:
            if not constraint.add(plan.request, plan.alternative, offer):
                self._uncount(undo)
                if must:
                    where = f"claim {self._keys[number]}, request {plan.own_name}"
                    text = "because a claim constraint would not be satisfied"
                    raise AllocationError(f"{where}: cannot add device {'/'.join(offer.id)} {text}")
                return None
            undo.constraints += 1
        if uses is None or not self._has_room(offer, uses):
            self._uncount(undo)
            return None
        if offer.is_shared:
            undo.taken = Taken(plan, offer, uses)
            self._use(offer, uses, 1)
        else:
            self._taking.setdefault(offer.id, []).append(number)
        self.taken[number].append(undo.taken)
        return undo

    def _is_in_part_used(self, offer: Offer) -> bool:
        """Whether the counters of a shared device were taken for a claim already."""
        if offer.id in self._allocated.consumed:
            return True
        return self._devices.features.release.shares_count and self._allocated.has_shares(offer.id)

    def _give_back(self, undo: _Undo) -> None:
        """Undo the changes of taking a device."""
        offer = undo.taken.offer
        self.taken[undo.claim].pop()
        if offer.is_shared:
            self._use(offer, undo.taken.uses or {}, -1)
            if not undo.had_uses:
                del self._using[offer.id]
        else:
            self._taking[offer.id].remove(undo.claim)
        self._uncount(undo)

    def _uncount(self, undo: _Undo) -> None:
        plan, offer = undo.taken.plan, undo.taken.offer
        for constraint in reversed(self._constraints[undo.claim][: undo.constraints]):
            constraint.remove(plan.request, plan.alternative)
        if undo.has_counted:
            _add(self._counting[undo.view.id], offer.consumes, -1)

    def _count(self, view: PoolView, amounts: Amounts) -> bool:
        """Count `amounts` as used, if all counters of the pool are enough for that."""
        counting = self._counting.setdefault(view.id, {})
        _add(counting, amounts, 1)
        for counters, left in self._allocated.available(view).items():
            used = counting.get(counters, {})
            if any(left[name] < used.get(name, 0) for name in left):
                _add(counting, amounts, -1)
                return False
        return True

    def _uses(self, offer: Offer, plan: RequestPlan) -> dict[str, Use] | None:
        """Capacities of the device that the request would use up; None if the device cannot serve it."""
        if not self._devices.features.consumable_capacity or not (offer.capacity or plan.capacity):
            return {}
        key = plan.capacity_key
        if key not in offer.memo:
            is_fractional = self._devices.features.fractional_steps
            try:
                offer.memo[key] = uses_of(offer.capacity, plan.capacity, is_fractional)
            except CapacityError as error:
                raise AllocationError(f"device {'/'.join(offer.id)}: {error}") from None
        uses: dict[str, Use] | None = offer.memo[key]
        return uses

    def _has_room(self, offer: Offer, uses: dict[str, Use]) -> bool:
        """Whether a device has enough left; claims may still have shares of a device that is no longer shared."""
        before = self._allocated.consumed.get(offer.id, {})
        now = self._using.get(offer.id, {})
        return not (before or now) or all(
            use.nano + before.get(name, 0) + now.get(name, 0) <= limit_of(offer, name)
            for name, use in uses.items()
        )

    def _use(self, offer: Offer, uses: dict[str, Use], sign: int) -> None:
        using = self._using.setdefault(offer.id, {})
        for name, use in uses.items():
            using[name] = using.get(name, 0) + sign * use.nano


def refusal(offers: NodeOffers) -> str:
    """Reason why a node does not have the requested devices."""
    if any(view.is_invalid for view in offers.views):
        return INVALID_POOLS
    return CANNOT_ALLOCATE


class SearchTimeoutError(AllocationError):
    """The search at a node took too many tries."""


def timed_out(devices: Devices, row: int) -> SearchTimeoutError:
    """The error of a search at a row that took too many tries."""
    return SearchTimeoutError(f"node {devices.table.names[row]}: {TIMED_OUT}")


def limit_of(offer: Offer, name: str) -> int:
    """Capacity of a device, in nano-units."""
    limits = offer.memo.get("limits")
    if limits is None:
        limits = {key: parse_quantity(c.value) for key, c in offer.capacity.items()}
        offer.memo["limits"] = limits
    return int(limits[name])


def _add(amounts: Amounts, more: Amounts, sign: int) -> None:
    for counters, added in more.items():
        counted = amounts.setdefault(counters, {})
        for name, amount in added.items():
            counted[name] = counted.get(name, 0) + sign * amount
