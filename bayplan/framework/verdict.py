"""Verdict: one Filter plugin's answer for many nodes at once: a code per row, and one mask per reason."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..table import Bools, Ints, NodeTable, Rows
from .status import REJECTED, SUCCESS, Code, Status

MOST_REASONS = 48
"""Number of reasons that fit into an int64, one bit each."""
FIRST_BIT = 4
"""The first bit of the reasons; the bits below hold the code."""
UNSCHEDULABLE = int(Code.Unschedulable)
UNRESOLVABLE = int(Code.UnschedulableAndUnresolvable)


class Verdict:
    """The judged rows that can run the pod, and the refusals of the others.

    `codes` holds a `Code` per row; `reasons` maps a text to the rows it applies to. `error` is set when the
    plugin failed on some row: the whole attempt fails then.
    """

    __slots__ = ("codes", "error", "reasons")

    def __init__(self, size: int) -> None:
        self.codes: NDArray[np.int8] = np.zeros(size, dtype=np.int8)
        self.reasons: dict[str, Bools] = {}
        self.error: Status | None = None

    @classmethod
    def accept(cls, table: NodeTable, rows: Rows) -> Verdict:
        """A verdict that lets the pod run on every one of `rows`."""
        return cls(table.count(rows))

    @classmethod
    def from_statuses(cls, statuses: Iterable[Status]) -> Verdict:
        """The verdict made of one status per row."""
        listed = list(statuses)
        verdict = cls(len(listed))
        positions_of: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for position in [i for i, status in enumerate(listed) if status is not SUCCESS]:
            status = listed[position]
            # Keyed by the identity of the code: hashing a member of an enum takes longer than the rest of the loop.
            positions_of.setdefault((id(status.code), status.reasons), []).append(position)
        for positions in positions_of.values():
            first = listed[positions[0]]
            if first.code is Code.Success:
                continue
            if first.code not in REJECTED:
                verdict.error = first
                break
            verdict.codes[positions] = first.code
            for reason in first.reasons:
                mask = verdict.reasons.setdefault(reason, np.zeros(len(listed), dtype=np.bool_))
                mask[positions] = True
        return verdict

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def feasible(self) -> Bools:
        """bool per row: the plugin lets the pod run there."""
        return np.equal(self.codes, 0)

    def reject(self, mask: Bools, reason: str, unresolvable: bool | Bools = False) -> None:
        """Refuse the rows in `mask`; where `unresolvable`, preemption there cannot help either."""
        if not np.count_nonzero(mask):
            return
        known = self.reasons.get(reason)
        # A copy: a cached verdict is edited in place, and `mask` may be a column of the table.
        self.reasons[reason] = mask.copy() if known is None else known | mask
        if unresolvable is True:
            np.putmask(self.codes, mask, UNRESOLVABLE)
        elif unresolvable is False:
            self.codes[mask & (self.codes == 0)] = UNSCHEDULABLE
        else:
            code = np.where(unresolvable[mask], UNRESOLVABLE, UNSCHEDULABLE)
            self.codes[mask] = np.maximum(self.codes[mask], code)

    def status(self, position: int) -> Status:
        """The status of one judged row."""
        if self.error is not None:
            return self.error
        code = int(self.codes[position])
        if code == 0:
            return SUCCESS
        texts = tuple(text for text, mask in self.reasons.items() if mask[position])
        return Status(Code(code), texts)

    def distinct(self, positions: Ints) -> tuple[list[int], Ints]:
        """One of the refused `positions` for each distinct status, and int64 per position: the number of its status."""
        if len(self.reasons) <= MOST_REASONS:
            kinds = self.codes[positions].astype(np.int64)
            for bit, mask in enumerate(self.reasons.values(), start=FIRST_BIT):
                kinds |= mask[positions].astype(np.int64) << bit
        else:
            numbers: dict[Status, int] = {}
            statuses = [self.status(position) for position in positions.tolist()]
            kinds = np.array([numbers.setdefault(status, len(numbers)) for status in statuses])
        _, first, inverse = np.unique(kinds, return_index=True, return_inverse=True)
        return positions[first].tolist(), inverse

    def histogram(self, among: Bools | None = None) -> dict[str, int]:
        """Number of rows (of `among`) that each reason applies to."""
        counts = {
            text: int(np.count_nonzero(mask if among is None else mask & among))
            for text, mask in self.reasons.items()
        }
        return {text: count for text, count in counts.items() if count}
