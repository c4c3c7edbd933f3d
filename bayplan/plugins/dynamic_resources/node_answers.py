"""Node answers: whether claims can be served on each node, cached and updated after changes.

Pods of one kind have claims that ask for the same. An answer for one of them is valid for the next, except for nodes
that changed or that see a pool from which devices were taken or returned since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...api.pod import PodSpec
from ...framework.devices import EVERY_ROW, DeviceId, Devices
from ...table import Bools, Ints, Rows
from .allocation_results import score_taken
from .claim_plans import AllocationError, ClaimPlan, plan_claim
from .extended import ExtendedRequests, requests_for
from .search import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    TIMED_OUT,
    DeviceSearch,
    SearchTimeoutError,
    Taken,
    refusal,
    timed_out,
)

# First free: the result of the search if only the state of a device counts, free or in use. The search takes the first
# free candidate, and backtracks when it cannot go on. As long as it does not backtrack, this is its result.


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
                    text = fault.text(keys[number], offer, devices.features.release)
                    raise AllocationError(text)
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


CANNOT_FIT = "cannot fit resource"
FITS = 0
REASONS = {1: CANNOT_ALLOCATE, 2: INVALID_POOLS, 3: CANNOT_FIT, 4: TIMED_OUT}
Codes: TypeAlias = NDArray[np.int8]
_CODES = {reason: code for code, reason in REASONS.items()}


class Wanted:
    """Requests that pods of one kind want to have allocated: their claims, and devices for extended resources.

    `resources` are those that classes of devices stand for, with all extended resources of the spec in `extended`.
    """

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        devices: Devices,
        spec: PodSpec | None = None,
        extended: Mapping[str, bool] | None = None,
    ) -> None:
        self.claims = tuple(claims)
        self._devices = devices
        self._spec = spec
        self.has_extended = spec is not None
        self._has_claims = spec is not None and bool(spec.resource_claims)
        """Whether the pods name claims: then one without requests is made for a node that has all resources itself."""
        self._extended = extended or {}
        self._requests: dict[frozenset[str], tuple[ExtendedRequests, ClaimPlan]] = {}
        self.is_prioritized = any(
            options[0].alternative for claim in claims for options in claim.requests
        )
        """Whether some request has alternatives: then one node can be better than another."""

    def requests_at(self, row: int) -> tuple[ExtendedRequests, ClaimPlan] | str | None:
        """Requests for extended resources that devices of the node at `row` must serve.

        None when it has them all itself, or the pod wants none; a text when it can never have them.
        """
        if self._spec is None:
            return None
        offered = self._devices.table.allocatable.at(row)
        needed = []
        for resource, is_backed in self._extended.items():
            if is_backed and not offered.get(resource, 0):
                needed.append(resource)
            elif resource not in offered:
                return CANNOT_FIT
        if not needed and not self._has_claims:
            return None
        key = frozenset(needed)
        known = self._requests.get(key)
        if known is None:
            requests = requests_for(self._spec, key, self._devices.classes)
            plan = plan_claim(requests.devices, self._devices.classes, "<extended-resources>")
            known = self._requests[key] = (requests, plan)
        return known


class CachedAnswers:
    """Per row: whether the `wanted` devices are available there, and their score."""

    def __init__(self, wanted: Wanted, devices: Devices, tries: int | None) -> None:
        self.wanted = wanted
        self._devices = devices
        self._tries = tries
        self._codes = np.zeros(0, dtype=np.int8)
        self._scores: Ints = np.zeros(0, dtype=np.int64)
        self._is_stale: Bools = np.zeros(0, dtype=np.bool_)
        self._taken: dict[int, list[list[Taken]]] = {}
        self._version = -1

    def follow(self) -> None:
        """Mark the rows that have to be judged again as stale."""
        log, size = self._devices.inventory.changes, len(self._devices.table)
        if self._version == log.version and len(self._codes) == size:
            return
        rows = log.since(self._version)
        self._version = log.version
        if rows is None or EVERY_ROW in rows:
            self._is_stale[:] = True
        else:
            self._is_stale[[row for row in rows if row < len(self._codes)]] = True
        if len(self._codes) != size:
            self._grow(size - len(self._codes))

    def _grow(self, more: int) -> None:
        self._codes = np.append(self._codes, np.zeros(more, dtype=np.int8))
        self._scores = np.append(self._scores, np.zeros(more, dtype=np.int64))
        self._is_stale = np.append(self._is_stale, np.ones(more, dtype=np.bool_))

    def judge(self, rows: Rows, keys: Sequence[str]) -> Codes:
        """A code per row: FITS, or one of REASONS. Raises the AllocationError of the first row that has one."""
        (stale,) = self._is_stale[rows].nonzero()
        if len(stale):
            nodes = self._devices.table.nodes
            for row in stale.tolist() if isinstance(rows, slice) else rows[stale].tolist():
                if nodes[row] is not None:
                    self._judge(row, keys)
        return self._codes[rows]

    def _judge(self, row: int, keys: Sequence[str]) -> None:
        self._codes[row], taken = self.search(row, keys)
        self._is_stale[row] = False  # not earlier: after an error the row stays stale
        self._taken[row] = taken
        if self.wanted.is_prioritized:
            self._scores[row] = sum(score_taken(one) for one in taken)

    def scores(self, rows: Rows) -> Ints:
        """int64 per row that FITS: the points for its alternatives."""
        found: Ints = self._scores[
            rows
        ].copy()  # indexing with ALL gives a view, and the scores change
        return found

    def find(self, row: int, keys: Sequence[str]) -> list[list[Taken]] | None:
        """The devices for each claim at a row, as they were found when it was judged; None when there are none."""
        self.follow()
        if not self._is_stale[row]:
            return self._taken.get(row) if self._codes[row] == FITS else None
        code, taken = self.search(row, keys)
        return taken if code == FITS else None

    def search(self, row: int, keys: Sequence[str]) -> tuple[int, list[list[Taken]]]:
        """Search at one row: a code, and the devices for each claim, those for extended resources last."""
        try:
            return self._search(row, keys)
        except SearchTimeoutError:
            if self._devices.features.release.timeout_is_error:
                raise
            return _CODES[TIMED_OUT], []

    def _search(self, row: int, keys: Sequence[str]) -> tuple[int, list[list[Taken]]]:
        claims = self.wanted.claims
        if self.wanted.has_extended:
            extended = self.wanted.requests_at(row)
            if isinstance(extended, str):
                return _CODES[extended], []
            if extended is not None:
                claims = (*claims, extended[1])
        if not claims:
            return FITS, []
        if all(claim.is_plain for claim in claims):
            found = first_free(self._devices, row, claims, keys, self._tries)
            if found is not None:
                return (_CODES[found], []) if isinstance(found, str) else (FITS, found)
        search = DeviceSearch(self._devices, row, claims, keys, self._tries)
        try:
            reason = search.run()
        except RecursionError:
            raise AllocationError("too many devices to search for") from None
        return (FITS, search.taken) if reason is None else (_CODES[reason], [])
