"""Survey: the best nodes for a pod about whom plugins have something to say that look beyond the row.

A pod that comes to one node changes what PodTopologySpread says about all nodes of its zone, so nothing can be kept of
what it says. But nodes that it cannot tell apart share its answers: one node of each look is asked about (`looks.py`).
What the other plugins give is kept (`standing.py`); the sum of both is the total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ..api.pod import Pod
from ..framework import (
    Code,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from ..table import Bools, Ints, NodeTable
from .failing import failed
from .kept import PRE_SCORING, KeptSum, check_range, judge_rows, score_rows
from .looks import Looks
from .row_judge import INFEASIBLE, Weighted
from .standing import Standing

REFUSED = -(2**40)
"""Points that no total makes up for."""

NOTHING: Ints = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Asked:
    """The plugins that are asked for every pod, by what they are asked."""

    pre_filters: Sequence[PreFilterPlugin]
    filters: Sequence[FilterPlugin]
    pre_scores: Sequence[PreScorePlugin]
    scores: Sequence[Weighted]


@dataclass(frozen=True, slots=True)
class Raw:
    """What a plugin gives node objects, before normalising."""

    plugin: ScorePlugin
    weight: int
    answer: KeptSum

    @property
    def is_nothing(self) -> bool:
        """Whether it gives all nodes 0."""
        return not self.answer.total.any()


class Survey:
    """The totals for pods of the class of `pod`: what `base` has of a row, and the points of its look.

    `normalized` are plugins that look at node objects and whose points depend on the bounds of all feasible rows, with
    their raw scores. Made anew when a node changes.
    """

    __slots__ = (
        "_asked",
        "_base",
        "_epochs",
        "_everywhere",
        "_looks",
        "_normalized",
        "_pod",
        "_totals",
        "best",
        "feasible",
        "is_pointless",
    )

    def __init__(
        self,
        pod: Pod,
        asked: Asked,
        base: Standing,
        looks: Looks,
        normalized: Sequence[Raw],
    ) -> None:
        self._pod = pod
        self._asked = asked
        self._base = base
        self._looks = looks
        self._normalized = [raw for raw in normalized if not raw.is_nothing]
        self._everywhere = sum(
            int(_normalized(raw.plugin, NOTHING)[0]) * raw.weight
            for raw in normalized
            if raw.is_nothing
        )
        """What those give that give all rows the same."""
        self._epochs = tuple(raw.answer.epoch for raw in self._normalized)
        self._totals: Ints = np.zeros(0, dtype=np.int64)
        self.best = INFEASIBLE
        self.feasible = 0
        self.is_pointless = False
        """Whether there are so many looks that all rows might as well be asked about."""

    @property
    def leaders(self) -> Marked:
        """The rows with the highest total."""
        return Marked(self._totals == self.best)

    def take(self, table: NodeTable) -> None:
        """Ask how the nodes stand now; `base` is up to date."""
        base, looks = self.follow(table), self._looks
        state, rows, numbers = CycleState(), looks.samples, looks.present
        accepted = self._filter(state, table, rows)
        if accepted is not None:
            rows, numbers = rows[accepted], numbers[accepted]
        sizes = looks.sizes[numbers]
        self.feasible = int(sizes.sum())
        if self.feasible:
            points: Ints = np.empty(len(looks.sizes) + 1, dtype=np.int64)
            points.fill(REFUSED)
            points[numbers] = self._score(state, table, rows, sizes)
            totals = points.take(looks.numbers)
            totals += base
            self._totals, self.best = totals, totals.item(totals.argmax())

    def follow(self, table: NodeTable) -> Ints:
        """Bring the looks up to date; int64 per row: what `base` has of it."""
        base = np.frombuffer(self._base.totals, dtype=np.int64)
        self._looks.follow(table, base, (self._base.builds, self._epochs))
        return base

    def _filter(self, state: CycleState, table: NodeTable, rows: Ints) -> Bools | None:
        """bool per row of `rows`: all plugins accept it; None when that holds for all of them."""
        pod, accepted = self._pod, None
        for plugin in self._asked.pre_filters:
            answer = plugin.pre_filter(state, pod, table)
            code = answer.code if isinstance(answer, Status) else None
            if code is Code.Skip:
                state.skip_filter.add(plugin.name)
            elif code is not Code.Success:
                return np.zeros(len(rows), dtype=np.bool_)  # the long road says what that means
        for judge in self._asked.filters:
            if judge.name not in state.skip_filter:
                verdict = judge_rows(judge, state, pod, table, rows)
                if np.count_nonzero(verdict.codes):
                    feasible = verdict.feasible
                    accepted = feasible if accepted is None else accepted & feasible
        return accepted

    def _score(self, state: CycleState, table: NodeTable, rows: Ints, sizes: Ints) -> Ints | int:
        """int64 per row of `rows`, each of which stands for `sizes`: its weighted, normalised points."""
        pod = self._pod
        points: Ints | int = self._everywhere
        for plugin in self._asked.pre_scores:
            status = plugin.pre_score_alike(state, pod, table, rows, sizes)
            if status.code is Code.Skip:
                state.skip_score.add(plugin.name)
            elif status.code is not Code.Success:
                raise failed(PRE_SCORING, plugin, status)
        for scorer, weight in self._asked.scores:
            if scorer.name not in state.skip_score:
                raw = score_rows(scorer, state, pod, table, rows)
                points = points + _normalized(scorer, raw) * weight
        for kept in self._normalized:
            points = points + _normalized(kept.plugin, kept.answer.total[rows]) * kept.weight
        return points


class Marked(Set[int]):
    """The rows at which a mask is True."""

    __slots__ = ("_mask", "_size")

    def __init__(self, mask: Bools) -> None:
        self._mask = mask
        self._size = int(np.count_nonzero(mask))

    def __len__(self) -> int:
        return self._size

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and self._mask.item(row)

    def __iter__(self) -> Iterator[int]:
        return iter(self.in_order())

    @property
    def rows(self) -> Set[int]:
        return self

    def in_order(self) -> list[int]:
        """The rows, ascending."""
        rows: list[int] = self._mask.nonzero()[0].tolist()
        return rows


def _normalized(plugin: ScorePlugin, raw: Ints) -> Ints:
    scores = plugin.normalize(raw)
    check_range(plugin, scores)
    return scores
