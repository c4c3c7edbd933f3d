"""Filling: pods put on rows one after another, in a copy of the amounts, without trying them in full.

The compiled kernel does so (`_filling.pxi`); without it the pods are tried in full.
"""

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
    """One class of pods to put on rows, with the data for judging it, and a sample pod."""

    judge: RowJudge
    values: Ints
    base: Ints
    rules: JudgeRules
    pod: Pod
    is_ranked: bool
    """Whether rules on amounts are all that the values depend on while pods are put on rows."""

    def copies(self, table: NodeTable) -> Ints | None:
        """int64 per row: the number of pods like `pod` that fit together.

        Scores do not matter, because every row is filled. None if a pod uses other amounts than it needs free.
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
        """Fillings of pods given one by one; None if a pod depends on more than rules on amounts, or the kernel cannot
        apply the rules.
        """
        compiled = kernel.compiled
        if compiled is None:
            return None
        kinds: dict[RowJudge, int] = {}
        found: list[Filling] = []
        classes: list[int] = []
        for filling in each:
            if filling is None or not filling.is_ranked:
                return None
            if not isinstance(filling.judge, compiled.CompiledJudge):
                return None
            if len(filling.pod.usage) + len(filling.pod.scoring_usage) >= compiled.MOST_USES:
                return None
            if filling.judge not in kinds:
                kinds[filling.judge] = len(found)
                found.append(filling)
            elif not _use_the_same(found[kinds[filling.judge]].pod, filling.pod):
                return None  # pods that are judged alike and use different amounts
            classes.append(kinds[filling.judge])
        if len(found) > compiled.MOST_KINDS:
            return None
        return cls(found, np.array(classes, dtype=np.int64))


def _use_the_same(pod: Pod, other: Pod) -> bool:
    return pod.usage == other.usage and pod.scoring_usage == other.scoring_usage


class Filled(NamedTuple):
    """int64 [places, pods] each: the row that a pod gets, and the value of that row then; -1 if no row is feasible."""

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
    places follow each other in `rows`, `ends` has where each of them ends. `ranks` are those of the table's rows, for
    all pods, for each one, or several times for each one: then the places take them in turn.
    """
    times = ranks.shape[0] if ranks.ndim == 3 else 1
    ranks = np.broadcast_to(np.ascontiguousarray(ranks), (times, len(classes), len(table)))
    copy = AmountsCopy(table)
    uses = [shares_of(copy, kind.pod) for kind in kinds]  # may add columns, so judges come after
    judges = [make_judge(copy, kind.rules) for kind in kinds]
    values, bases = [kind.values for kind in kinds], [kind.base for kind in kinds]
    filler = kernel.compiled.Filler(judges, values, bases, uses)
    return Filled(*filler.fill(classes, rows, ends, ranks))
