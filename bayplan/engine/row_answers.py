"""Row answers: answers of plugins about rows as numbers, the sum of their scores or a refusal.

The number of a refusal contains which plugin refuses a row, and a number per distinct status. The status itself is
obtained by calling the plugin on a row of that number (`ClassView.statuses`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..amounts.kernel import DEAD, PLACE_SHIFT
from ..framework import Verdict
from ..runtime.plugin_calls import PodCalls, check_range
from ..table import Ints
from .class_plan import Placed, Scorer

FIRST_BIT = 4
"""The bits below hold the code."""
MOST_REASONS = 48


class StatusCodes:
    """The reasons that filters gave so far, each with a bit of its own."""

    __slots__ = ("_bits", "_numbers")

    def __init__(self) -> None:
        self._bits: dict[tuple[int, str], int] = {}
        self._numbers: dict[object, int] = {}

    def note(self, values: Ints, place: int, verdict: Verdict) -> None:
        """Write the refusals of the plugin at `place` to `values`, except where an earlier plugin refuses."""
        (refused,) = verdict.codes.nonzero()
        if not len(refused):
            return
        codes = -1 - (place << PLACE_SHIFT | self._locals(place, verdict, refused))
        before = values[refused]
        takes = (before >= 0) | ((codes > before) & (before != DEAD))
        values[refused[takes]] = codes[takes]

    def _locals(self, place: int, verdict: Verdict, refused: Ints) -> Ints:
        """int64 per refused row: equal where code and reasons are."""
        bits = [self._bit(place, reason) for reason in verdict.reasons]
        if max(bits, default=0) >= MOST_REASONS:
            return self._one_by_one(verdict, refused)
        kinds = verdict.codes[refused].astype(np.int64)
        for bit, mask in zip(bits, verdict.reasons.values(), strict=True):
            kinds |= mask[refused].astype(np.int64) << (FIRST_BIT + bit)
        return kinds

    def _bit(self, place: int, reason: str) -> int:
        known = self._bits.get((place, reason))
        if known is None:
            known = sum(1 for at, _ in self._bits if at == place)
            self._bits[place, reason] = known
        return known

    def _one_by_one(self, verdict: Verdict, refused: Ints) -> Ints:
        """The same for a plugin that gives very many reasons."""
        first = 1 << FIRST_BIT + MOST_REASONS
        found = [
            self._numbers.setdefault(verdict.status(row), first + len(self._numbers))
            for row in refused.tolist()
        ]
        return np.array(found, dtype=np.int64)


def ask_plugins(
    calls: PodCalls,
    rows: Ints,
    values: Ints,
    codes: StatusCodes,
    filters: Sequence[Placed],
    scores: Sequence[Scorer],
    raws: Sequence[tuple[Ints, Scorer]],
) -> None:
    """Add answers about `rows` to `values`: refusals of `filters`, else `scores`. Raw scores go to their own arrays."""
    found = values[rows]
    for place, judge in filters:
        if judge.name not in calls.state.skip_filter:
            codes.note(found, place, calls.filter(judge, rows))
    if filters:
        values[rows] = found
    accepted = found >= 0
    if not accepted.all():
        rows, found = rows[accepted], found[accepted]
    if not len(rows):
        return
    for plugin, weight in scores:
        points = calls.score(plugin, rows)
        check_range(plugin, points)
        found += points * weight
    if scores:
        values[rows] = found
    for raw, (plugin, _) in raws:
        raw[rows] = calls.score(plugin, rows)
