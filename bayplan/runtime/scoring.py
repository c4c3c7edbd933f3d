"""Scoring: PreScore, Score, NormalizeScore and weights of one profile.

Mirrors RunPreScorePlugins and RunScorePlugins of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..api.pod import Pod
from ..framework import CLUSTER, Code, CycleState, NodeInfo, PreScorePlugin, ScorePlugin
from ..table import Ints, NodeTable, Rows
from .failing import failed
from .kept import (
    PRE_SCORING,
    Kept,
    KeptSum,
    check_range,
    has_own,
    is_normalized,
    score_nodes,
    score_rows,
)
from .plans import Plan, Plans, by_scope_and_key
from .timing import timed

NORMALIZING = "running Normalize on Score plugins: plugin {} failed with"

REMEMBERED_SIZES = 4096

WeightedPlugin = tuple[ScorePlugin, int]


@dataclass(slots=True)
class Scored:
    """One plugin's scores, one entry per feasible row."""

    plugin: ScorePlugin
    weight: int
    raw: Ints
    normalized: Ints


class Scoring:
    """The scoring half of a profile.

    Plugins that look at a row only are kept: together when their scores are final, on their own when the scores have to
    be normalised over the feasible nodes.
    """

    def __init__(
        self, pre_scores: Sequence[PreScorePlugin], scores: Sequence[WeightedPlugin]
    ) -> None:
        self.pre_scores = tuple(pre_scores)
        self.scores = tuple(scores)
        self._of_nothing: dict[tuple[str, int], Ints | int] = {}
        self._knows_rows = {
            plugin.name for plugin, _ in scores if has_own(plugin, ScorePlugin, "normalize_rows")
        }
        final = [w for w in scores if not is_normalized(w[0])]
        self._others = [w for w in scores if w not in final or w[0].scope is CLUSTER]
        self._sums: list[Kept[KeptSum]] = []
        for positions in by_scope_and_key([plugin for plugin, _ in final]):
            group = [final[position] for position in positions]
            self._sums.append(Kept([plugin for plugin, _ in group], partial(_make_sum, group)))
        groups = list(self._sums)
        self._kept: dict[str, int] = {}  # positions among the groups of a plan
        for plugin, _ in self._others:
            if plugin.scope is not CLUSTER:
                self._kept[plugin.name] = len(groups)
                groups.append(Kept([plugin], partial(_make_raw, plugin)))
        self._plans: Plans[PreScorePlugin, KeptSum] = Plans(
            self.pre_scores,
            [plugin.pre_score_spec for plugin in self.pre_scores],
            groups,
            lambda state: state.skip_score,
        )

    def run_pre_scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        """Run PreScore in order; Skip leaves the plugin's Score out."""
        plan = self._plans.get(pod, len(table))
        state.skip_score.update(plan.skip)
        for plugin in plan.ask:
            try:
                ask = plugin.pre_score
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "PreScore", plugin, ask)
                status = ask(state, pod, table, rows)
            except Exception as error:
                raise failed(PRE_SCORING, plugin, error) from error
            if status.code is Code.Skip:
                state.skip_score.add(plugin.name)
            elif status.code is not Code.Success:
                raise failed(PRE_SCORING, plugin, status)

    def run_scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows`: the weighted sum of all Score plugins; 1 everywhere if there are none."""
        if not self.scores:
            return np.ones(table.count(rows), dtype=np.int64)
        total: Ints | None = None
        plan = self._plans.get(pod, len(table))
        for position in range(len(self._sums)):
            part = self._plans.answer(plan, position, state, pod, table).total[rows]
            if total is None:
                total = part.copy() if isinstance(rows, slice) else part  # what is kept stays
            else:
                total += part
        if total is None:
            total = np.zeros(table.count(rows), dtype=np.int64)
        everywhere = 0
        for plugin, weight in self._others:
            if plugin.name not in state.skip_score:
                points = self._weighted(plan, plugin, weight, state, pod, table, rows)
                if isinstance(points, int):
                    everywhere += points
                else:
                    total += points
        if everywhere:
            total += everywhere
        return total

    def run_scores_of(
        self,
        nodes: Sequence[NodeInfo],
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
    ) -> Ints:
        """The same for `nodes` that stand for `rows` but are not quite what the table knows."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for scored in self.each_score(state, pod, table, rows, nodes):
            total += scored.normalized * scored.weight
        return total

    def each_score(
        self,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        nodes: Sequence[NodeInfo] | None = None,
    ) -> Iterator[Scored]:
        """What each plugin that was not skipped gives `rows`, or the `nodes` that stand for them, in order."""
        for plugin, weight in self.scores:
            if plugin.name not in state.skip_score:
                if nodes is None:
                    raw = score_rows(plugin, state, pod, table, rows)
                else:
                    raw = score_nodes(plugin, state, pod, nodes)
                yield Scored(
                    plugin, weight, raw, self._normalized(plugin, raw, state, pod, table, rows)
                )

    def _weighted(
        self,
        plan: Plan[PreScorePlugin, KeptSum],
        plugin: ScorePlugin,
        weight: int,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
    ) -> Ints | int:
        """The weighted, normalised scores of one plugin; one number when it gives all rows the same."""
        if plugin.name not in self._kept:
            if plugin.score_spec(pod.spec) == 0 and plugin.name not in self._knows_rows:
                return self._score_of_nothing(plugin, table.count(rows)) * weight
            raw = score_rows(plugin, state, pod, table, rows)
            if plugin.name not in self._knows_rows and not raw.any():
                return self._score_of_nothing(plugin, len(raw)) * weight
            return self._normalized(plugin, raw, state, pod, table, rows) * weight
        position = self._kept[plugin.name]
        total = self._plans.answer(plan, position, state, pod, table).total
        if plugin.name not in self._knows_rows and not total.any():
            return self._score_of_nothing(plugin, table.count(rows)) * weight
        return self._normalized(plugin, total[rows], state, pod, table, rows) * weight

    def _score_of_nothing(self, plugin: ScorePlugin, size: int) -> Ints | int:
        """What normalising makes of `size` zeros: mostly the same number for all, and asked for often."""
        known = self._of_nothing.get((plugin.name, size))
        if known is None:
            nothing = np.zeros(size, dtype=np.int64)
            scores = _checked(plugin, lambda: plugin.normalize(nothing))
            known = int(scores[0]) if size and (scores == scores[0]).all() else scores
            if len(self._of_nothing) > REMEMBERED_SIZES:
                self._of_nothing.clear()
            self._of_nothing[plugin.name, size] = known
        return known

    def _normalized(
        self,
        plugin: ScorePlugin,
        raw: Ints,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
    ) -> Ints:
        ask = plugin.normalize_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "ScoreExtensionNormalize", plugin, ask)
        return _checked(plugin, lambda: ask(state, pod, table, rows, raw))


def _checked(plugin: ScorePlugin, normalize: Callable[[], Ints]) -> Ints:
    """The normalised scores, in range; whatever goes wrong is raised with the plugin's name."""
    try:
        scores = normalize()
    except Exception as error:
        raise failed(NORMALIZING, plugin, error) from error
    check_range(plugin, scores)
    return scores


def _make_sum(group: Sequence[WeightedPlugin], active: Sequence[int]) -> KeptSum:
    return KeptSum([group[i] for i in active])


def _make_raw(plugin: ScorePlugin, active: Sequence[int]) -> KeptSum:
    return KeptSum([(plugin, 1)], final=False)
