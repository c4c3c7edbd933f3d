"""Answers: whether claims can be served on each node, kept and followed up.

Pods of one kind have claims that ask for the same. What was found out for one of them holds for the next, but for the
nodes that see a pool from which devices were taken or given back since, and nodes that changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...api.pod import PodSpec
from ...framework.devices import Devices
from ...table import Bools, Ints, NodeTable
from .extended import ExtendedRequests, requests_for
from .plans import AllocationError, ClaimPlan, plan_claim
from .results import score_taken
from .search import CANNOT_ALLOCATE, INVALID_POOLS, Search, Taken

CANNOT_FIT = "cannot fit resource"
FITS, UNKNOWN, FAILS = 0, 1, 2
REASONS = {3: CANNOT_ALLOCATE, 4: INVALID_POOLS, 5: CANNOT_FIT}
_CODES = {reason: code for code, reason in REASONS.items()}


class Wanted:
    """What pods of one kind want to have allocated: their claims, and devices for extended resources.

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
        self._extended = extended or {}
        self._requests: dict[frozenset[str], tuple[ExtendedRequests, ClaimPlan]] = {}

    def requests_at(self, row: int) -> tuple[ExtendedRequests, ClaimPlan] | str | None:
        """What the node at `row` must give from devices for extended resources.

        None when it has them all itself, or the pod wants none; a text when it can never have them.
        """
        if self._spec is None:
            return None
        offered = self._devices.table.allocatable.rows[row]
        needed = []
        for resource, is_backed in self._extended.items():
            if is_backed and not offered.get(resource, 0):
                needed.append(resource)
            elif resource not in offered:
                return CANNOT_FIT
        if not needed and not self.claims:
            return None
        key = frozenset(needed)
        known = self._requests.get(key)
        if known is None:
            requests = requests_for(self._spec, key, self._devices.classes)
            plan = plan_claim(requests.devices, self._devices.classes, "<extended-resources>")
            known = self._requests[key] = (requests, plan)
        return known


class KeptAnswers:
    """For each row whether what is `wanted` can be had there, and how good it is."""

    def __init__(self, wanted: Wanted, devices: Devices, tries: int | None) -> None:
        self.wanted = wanted
        self._devices = devices
        self._tries = tries
        self._codes = np.zeros(0, dtype=np.int8)
        self._scores: Ints = np.zeros(0, dtype=np.int64)
        self._versions = (-1, -1, -1)

    def follow(self) -> None:
        """Forget what may no longer hold."""
        table, inventory = self._devices.table, self._devices.inventory
        logs = (table.node_changes, inventory.changes, self._devices.allocated.changes)
        versions = tuple(log.version for log in logs)
        if len(self._codes) != len(table):
            self._grow(len(table))
        if versions == self._versions:
            return
        before, self._versions = self._versions, versions  # type: ignore[assignment]
        for number, (log, since) in enumerate(zip(logs, before, strict=True)):
            changed = log.since(since) if since >= 0 else None
            if changed is None:
                self._codes[:] = UNKNOWN
                return
            if number == 0:
                self._codes[changed] = UNKNOWN
                continue
            for pool in changed:
                rows = inventory.rows_of(pool)
                self._codes[slice(None) if rows is None else rows] = UNKNOWN

    def _grow(self, size: int) -> None:
        codes, scores = np.full(size, UNKNOWN, dtype=np.int8), np.zeros(size, dtype=np.int64)
        codes[: len(self._codes)], scores[: len(self._scores)] = self._codes, self._scores
        self._codes, self._scores = codes, scores

    def judge(self, rows: Ints, keys: Sequence[str]) -> tuple[Ints, AllocationError | None]:
        """A code per row: FITS, or one of REASONS; with the error of the first row that cannot be judged."""
        codes = self._codes[rows]
        unsettled = np.flatnonzero((codes == UNKNOWN) | (codes == FAILS))
        for position in unsettled.tolist():
            row = int(rows[position])
            try:
                code, taken = self.search(row, keys)
            except AllocationError as error:
                self._codes[row] = FAILS
                return self._codes[rows].astype(np.int64), error
            self._codes[row] = codes[position] = code
            self._scores[row] = sum(score_taken(one) for one in taken)
        return codes.astype(np.int64), None

    def scores(self, rows: Ints) -> Ints:
        """int64 per row that FITS: the points for its alternatives."""
        found: Ints = self._scores[rows]
        return found

    def search(self, row: int, keys: Sequence[str]) -> tuple[int, list[list[Taken]]]:
        """Search at one row: a code, and the devices for each claim, those for extended resources last."""
        extended = self.wanted.requests_at(row)
        if isinstance(extended, str):
            return _CODES[extended], []
        claims = self.wanted.claims
        if extended is not None:
            claims = (*claims, extended[1])
        if not claims:
            return FITS, []
        search = Search(self._devices, row, claims, keys, self._tries)
        try:
            reason = search.run()
        except RecursionError:
            raise AllocationError("too many devices to search for") from None
        return (FITS, search.taken) if reason is None else (_CODES[reason], [])


def rows_in(devices: Devices, table: NodeTable, rows: Ints) -> Ints:
    """The rows of the cluster that `rows` of `table` stand for, which may be a what-if."""
    if table is devices.table:
        return rows
    return np.array([devices.table.row_of[table.names[row]] for row in rows], dtype=np.int64)


def mask_of(codes: Ints, code: int) -> Bools:
    """bool per row: the answer is `code`."""
    mask: Bools = codes == code
    return mask
