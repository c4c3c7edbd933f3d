"""Looks: rows that the plugins concerned with a pod cannot tell apart.

What PodTopologySpread and InterPodAffinity say about a node depends on little of it: its zone, how many pods of an app
it has. These are the row's marks; rows of equal marks have one look, and one row of each look speaks for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ..table import Ints, NodeTable, RowValues

NOWHERE = -1
"""The look of a row on which the pod does not fit anyway; an array by look has one slot more for it, the last."""

FIRST_LOOKS = 64
MAX_NUMBER = 2**62


class Looks:
    """The rows that are in question, by look.

    `numbers` has the look of every row, `sizes` how many rows have each look. `present` are the numbers of the looks
    that some row has, and `samples` one row of each of those.
    """

    __slots__ = (
        "_by_marks",
        "_is_fresh",
        "_sample_of",
        "_seen",
        "_stamp",
        "marks",
        "numbers",
        "present",
        "samples",
        "sizes",
    )

    def __init__(self, marks: Sequence[RowValues]) -> None:
        self.marks = tuple(marks)
        self._by_marks: dict[tuple[int, ...], int] = {}
        self._seen = -1
        self._stamp: Hashable = None
        self.numbers: Ints = np.zeros(0, dtype=np.int64)
        self.sizes: Ints = np.zeros(0, dtype=np.int64)
        self._sample_of: Ints = self.sizes
        self._is_fresh = False
        self.present: Ints = self.sizes
        self.samples: Ints = self.sizes

    def __len__(self) -> int:
        """How many looks are known."""
        return len(self._by_marks)

    def follow(self, table: NodeTable, totals: Ints, stamp: Hashable) -> None:
        """Bring the looks up to date. In question are the rows whose total (int64 per row) is not negative.

        Whether a row is in question changes with the row, or else with `stamp`.
        """
        log = table.row_changes
        if self._seen == log.version and self._stamp == stamp:
            return
        is_stale = self._seen < 0 or self._stamp != stamp
        changed = None if is_stale else log.since(self._seen)
        if changed is None or 4 * len(changed) > len(table):
            self._build(table, totals)
        else:
            self._follow_rows(table, totals, changed)
        if not self._is_fresh:
            self._find_present()
            if len(self) > 2 * len(self.present) + FIRST_LOOKS:  # most are of no row any more
                self._build(table, totals)
                self._find_present()
        self._seen, self._stamp = log.version, stamp

    def _build(self, table: NodeTable, totals: Ints) -> None:
        rows = np.flatnonzero(totals >= 0)
        values = [mark.view[rows] for mark in self.marks]
        _, first, numbers, sizes = np.unique(
            _combined(values, len(rows)), return_index=True, return_inverse=True, return_counts=True
        )
        found = zip(*[of_mark[first].tolist() for of_mark in values], strict=True)
        keys = list(found) if values else [()] * len(first)
        self._by_marks = {key: number for number, key in enumerate(keys)}
        self.numbers = np.full(len(table), NOWHERE, dtype=np.int64)
        self.numbers[rows] = numbers
        room = np.zeros(max(FIRST_LOOKS, len(first)), dtype=np.int64)
        self.sizes, self._sample_of = np.append(sizes, room), np.append(rows[first], room)
        self._is_fresh = False

    def _follow_rows(self, table: NodeTable, totals: Ints, changed: list[int]) -> None:
        missing = len(table) - len(self.numbers)
        if missing:
            self.numbers = np.append(self.numbers, np.full(missing, NOWHERE, dtype=np.int64))
        rows = np.array(changed, dtype=np.int64)
        found = zip(*[mark.view[rows].tolist() for mark in self.marks], strict=True)
        keys = found if self.marks else [()] * len(changed)
        before, totals = self.numbers[rows], totals[rows]
        for row, old, total, key in zip(
            changed, before.tolist(), totals.tolist(), keys, strict=True
        ):
            number = NOWHERE if total < 0 else self._by_marks.get(key)
            if number is None:
                number = self._add(key)
            if number != old:
                self._move(row, old, number)

    def _add(self, key: tuple[int, ...]) -> int:
        number = self._by_marks[key] = len(self._by_marks)
        if number == len(self.sizes):
            room = np.zeros(number, dtype=np.int64)
            self.sizes = np.append(self.sizes, room)
            self._sample_of = np.append(self._sample_of, room)
        return number

    def _move(self, row: int, old: int, new: int) -> None:
        """A row looks otherwise now."""
        sizes, sample_of = self.sizes, self._sample_of
        self.numbers[row] = new
        if new != NOWHERE:
            if not sizes[new]:
                sample_of[new] = row
                self._is_fresh = False
            sizes[new] += 1
        if old != NOWHERE:
            sizes[old] -= 1
            if not sizes[old]:
                self._is_fresh = False
            elif sample_of[old] == row:
                sample_of[old] = (self.numbers == old).argmax()
                self._is_fresh = False

    def _find_present(self) -> None:
        self.present = self.sizes.nonzero()[0]
        self.samples = self._sample_of[self.present]
        self._is_fresh = True


def _combined(values: Sequence[Ints], size: int) -> Ints:
    """int64 per row: equal where all `values`, each an array of that `size`, are equal."""
    combined = np.zeros(size, dtype=np.int64)
    if not size:
        return combined
    span = 1
    for of_mark in values:
        numbers = of_mark.astype(np.int64)
        numbers -= numbers.min()
        if span * (int(numbers.max()) + 1) > MAX_NUMBER:
            combined, span = np.unique(combined, return_inverse=True)[1], size
            numbers = np.unique(numbers, return_inverse=True)[1]
        width = int(numbers.max()) + 1
        combined = combined * width + numbers
        span *= width
    return combined
