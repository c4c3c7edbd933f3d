"""Scoring: PreScore, Score, NormalizeScore and weights of one profile.

Mirrors RunPreScorePlugins and RunScorePlugins of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..api.pod import Pod
from ..framework import (
    CLUSTER,
    MAX_SCORE,
    MIN_SCORE,
    Code,
    CycleState,
    PreScorePlugin,
    ScorePlugin,
)
from ..table import Ints, NodeTable, Rows
from .failing import failed, guard
from .kept import Kept, KeptScores

OUT_OF_RANGE = (
    "plugin {} returns an invalid score {}, it should in the range of [{}, {}] after normalizing"
)


@dataclass(slots=True)
class Scored:
    """One plugin's scores, one entry per feasible row."""

    plugin: ScorePlugin
    weight: int
    raw: Ints
    normalized: Ints


class Scoring:
    """The scoring half of a profile."""

    def __init__(
        self, pre_scores: Sequence[PreScorePlugin], scores: Sequence[tuple[ScorePlugin, int]]
    ) -> None:
        self.pre_scores = tuple(pre_scores)
        self.scores = tuple(scores)
        self._kept = {
            plugin.name: Kept(plugin, KeptScores)
            for plugin, _ in scores
            if plugin.scope is not CLUSTER
        }

    def run_pre_scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        """Run PreScore in order; Skip leaves the plugin's Score out."""
        for plugin in self.pre_scores:
            with guard("running PreScore plugin {}", plugin):
                status = plugin.pre_score(state, pod, table, rows)
            if status.code is Code.Skip:
                state.skip_score.add(plugin.name)
            elif status.code is not Code.Success:
                raise failed("running PreScore plugin {}", plugin, status)

    def run_scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows`: the weighted sum of all Score plugins; 1 everywhere if there are none."""
        if not self.scores:
            return np.ones(table.count(rows), dtype=np.int64)
        total = np.zeros(table.count(rows), dtype=np.int64)
        for scored in self.each_score(state, pod, table, rows):
            total += scored.normalized if scored.weight == 1 else scored.normalized * scored.weight
        return total

    def each_score(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
    ) -> Iterator[Scored]:
        """What each plugin that was not skipped gives, in order."""
        for plugin, weight in self.scores:
            if plugin.name not in state.skip_score:
                raw = self._raw(plugin, state, pod, table, rows)
                yield Scored(plugin, weight, raw, self._normalized(plugin, raw))

    def _raw(
        self, plugin: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
    ) -> Ints:
        if plugin.scope is not CLUSTER:
            kept = self._kept[plugin.name].get(state, pod, table)
            return kept.raw[rows]
        with guard("running Score plugins: plugin {} failed with", plugin):
            return plugin.score_rows(state, pod, table, rows)

    def _normalized(self, plugin: ScorePlugin, raw: Ints) -> Ints:
        with guard("running Normalize on Score plugins: plugin {} failed with", plugin):
            scores = plugin.normalize(raw)
        if scores.size:
            low, high = scores.min(), scores.max()
            if low < MIN_SCORE or high > MAX_SCORE:
                worst = int(low if low < MIN_SCORE else high)
                text = OUT_OF_RANGE.format(f'"{plugin.name}"', worst, MIN_SCORE, MAX_SCORE)
                raise failed("applying score defaultWeights on Score plugins", plugin, text)
        return scores
