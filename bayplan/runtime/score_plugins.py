"""Score plugins: PreScore, Score, NormalizeScore and weights of one profile, by plugin: the reference for `engine`.

Mirrors RunPreScorePlugins and RunScorePlugins of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ..api.pod import Pod
from ..framework import Code, CycleState, NodeInfo, PreScorePlugin, ScorePlugin
from ..table import Ints, NodeTable, Rows
from .plugin_calls import PodCalls, ask_hook, score_nodes

WeightedPlugin = tuple[ScorePlugin, int]


class Scored(msgspec.Struct):
    """One plugin's scores, one entry per feasible row."""

    plugin: ScorePlugin
    weight: int
    raw: Ints
    normalized: Ints


class Scoring:
    """The scoring half of a profile."""

    def __init__(
        self, pre_scores: Sequence[PreScorePlugin], scores: Sequence[WeightedPlugin]
    ) -> None:
        self.pre_scores = tuple(pre_scores)
        self.scores = tuple(scores)

    def with_weights(self, weights: Mapping[str, int]) -> Scoring:
        """The same plugins, with the given weights for those in `weights`."""
        return Scoring(self.pre_scores, [(p, weights.get(p.name, old)) for p, old in self.scores])

    def run_pre_scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        """Run PreScore in order; Skip leaves the plugin's Score out."""
        state.row_counts = None
        state.skip_score.clear()  # kube-scheduler calls every Score that PreScore does not skip
        calls = PodCalls(state, pod, table)
        for plugin in self.pre_scores:
            status = ask_hook(plugin, plugin.settled, pod.spec).pre_score
            if status is None:
                status = calls.pre_score(plugin, rows)
            if status.code is Code.Skip:
                state.skip_score.add(plugin.name)

    def run_scores(
        self,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        nodes: Sequence[NodeInfo] | None = None,
    ) -> Ints:
        """int64 per row of `rows`: the weighted sum of all Score plugins; 1 everywhere if there are none.

        `nodes`, where given, stand for the rows.
        """
        if not self.scores and nodes is None:
            return np.ones(table.count(rows), dtype=np.int64)
        total = np.zeros(table.count(rows), dtype=np.int64)
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
        """Points of each plugin that was not skipped for `rows`, or for the `nodes` that stand for them, in order."""
        calls = PodCalls(state, pod, table)
        for plugin, weight in self.scores:
            if plugin.name not in state.skip_score:
                if nodes is None:
                    raw = calls.score(plugin, rows)
                else:
                    raw = score_nodes(plugin, state, pod, nodes)
                normalized = calls.normalize(plugin, rows, raw)
                yield Scored(plugin, weight, raw, normalized)
