"""Filling: pods put on rows one after another, in a copy of the amounts, without trying them in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..api.pod import Pod
from ..table import AmountsCopy, Ints, NodeTable, shares_of
from . import kernel
from .fitting import copies_that_fit
from .kernel import JudgeRules, RowJudge, make_judge
from .rules import POD_COUNT


class Filling(NamedTuple):
    """One class of pods that are to be put on rows: how it is judged, and a pod of it."""

    judge: RowJudge
    values: Ints
    base: Ints
    rules: JudgeRules
    pod: Pod
    is_ranked: bool
    """Whether rules on amounts are all that the values depend on while pods are put on rows."""

    def copies(self, table: NodeTable) -> Ints | None:
        """int64 per row: how many pods like `pod` fit beside each other.

        Scores do not matter: in the end every row is full. None if a pod uses other amounts than are to be free.
        """
        used, fit = {**self.pod.usage, POD_COUNT: 1}, self.rules.fit
        if fit is None or fit.left_to_devices:
            return None
        if any(used.get(name) != amount for name, amount in fit.amounts.items()):
            return None
        found, rows = np.zeros(len(table), dtype=np.int64), np.flatnonzero(self.values >= 0)
        found[rows] = copies_that_fit(table, fit, rows)
        return found


class Fillings(NamedTuple):
    """The classes of some pods, and the number of the class of each pod."""

    kinds: Sequence[Filling]
    classes: Ints

    @classmethod
    def of(cls, each: Iterable[Filling | None]) -> Fillings | None:
        """Fillings of pods given one by one; None if more than rules on amounts decides about one of them."""
        kinds: dict[RowJudge, int] = {}
        found: list[Filling] = []
        classes: list[int] = []
        for filling in each:
            if filling is None or not filling.is_ranked:
                return None
            if filling.judge not in kinds:
                kinds[filling.judge] = len(found)
                found.append(filling)
            elif not _use_the_same(found[kinds[filling.judge]].pod, filling.pod):
                return None  # pods that are judged alike and use different amounts
            classes.append(kinds[filling.judge])
        return cls(found, np.array(classes, dtype=np.int64))


def _use_the_same(pod: Pod, other: Pod) -> bool:
    return pod.usage == other.usage and pod.scoring_usage == other.scoring_usage


class Filled(NamedTuple):
    """int64 [places, pods] each: the row that a pod gets and the value that it has then; -1: none is feasible."""

    hosts: Ints
    values: Ints


def fill(
    table: NodeTable,
    kinds: Sequence[Filling],
    classes: Ints,
    rows: Ints,
    ends: Ints,
    ranks: Ints,
) -> Filled:
    """Put pods on the rows of several places, in a copy of the amounts.

    The pods, given by the numbers of their classes, are put on the rows of a place one after another, each on the one
    with the highest value, of equal ones on the one of the lowest rank; then they are taken off again. The rows of the
    places follow each other in `rows`, `ends` has where each of them ends.
    """
    copy = AmountsCopy(table)
    uses = [shares_of(copy, kind.pod) for kind in kinds]  # may add columns, so judges come after
    judges = [make_judge(copy, kind.rules) for kind in kinds]
    values, bases = [kind.values for kind in kinds], [kind.base for kind in kinds]
    compiled = kernel.compiled
    if (
        compiled is not None
        and len(kinds) <= compiled.MOST_KINDS
        and all(isinstance(judge, compiled.CompiledJudge) for judge in judges)
    ):
        filler = compiled.Filler(judges, values, bases, uses)
        return Filled(*filler.fill(classes, rows, ends, ranks))
    found = Filled(*(np.full((len(ends), len(classes)), -1, dtype=np.int64) for _ in range(2)))
    start = 0
    for place, end in enumerate(ends.tolist()):
        totals = [of_kind.copy() for of_kind in values]
        for pod, number in enumerate(classes.tolist()):
            of_place = totals[number][rows[start:end]]
            best = int(of_place.max(initial=-1))
            if best < 0:
                continue
            tied = rows[start:end][of_place == best]
            row = tied[ranks[tied].argmin()]
            found.hosts[place, pod], found.values[place, pod] = row, best
            _use(uses[number], int(row), 1)
            for judge, of_kind, base in zip(judges, totals, bases, strict=True):
                judge.judge(of_kind, base, np.array([row]))
        for number, row in zip(classes.tolist(), found.hosts[place].tolist(), strict=True):
            if row >= 0:
                _use(uses[number], row, -1)
        start = end
    return found


def _use(uses: Sequence[tuple[memoryview, int]], row: int, sign: int) -> None:
    """Add the amounts of one pod to each column, or take them from it."""
    for cells, amount in uses:
        cells[row] += sign * amount
