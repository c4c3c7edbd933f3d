"""NodeLabel: nodes must have, or must not have, certain labels; others are liked or disliked for theirs.

Mirrors pkg/scheduler/framework/plugins/nodelabel/node_label.go of v1.20.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ...api.pod import Pod, PodSpec
from ...config.plugin_args import NodeLabelArgs
from ...errors import InputError
from ...framework import (
    MAX_SCORE,
    NODE_OBJECT,
    CycleState,
    FilterPlugin,
    ScorePlugin,
    Verdict,
)
from ...table import Ints, NodeTable, Rows

REASON = "node(s) didn't have the requested labels"


class NodeLabel(FilterPlugin, ScorePlugin):
    """Filters and scores by which labels a node has, with any value; the pod makes no difference."""

    name = "NodeLabel"
    scope = NODE_OBJECT
    args_type = NodeLabelArgs

    def __init__(self, wanted: NodeLabelArgs | None = None) -> None:
        self._wanted = wanted or NodeLabelArgs()
        _check_distinct(self._wanted.present_labels, self._wanted.absent_labels)
        _check_distinct(
            self._wanted.present_labels_preference, self._wanted.absent_labels_preference
        )

    def spec_key(self, spec: PodSpec) -> Hashable:
        return ()

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        for label in self._wanted.present_labels:
            verdict.reject(~table.labels.has(label, rows), REASON, unresolvable=True)
        for label in self._wanted.absent_labels:
            verdict.reject(table.labels.has(label, rows), REASON, unresolvable=True)
        return verdict

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        liked = self._wanted.present_labels_preference
        disliked = self._wanted.absent_labels_preference
        met = np.zeros(table.count(rows), dtype=np.int64)
        for label in liked:
            met += table.labels.has(label, rows)
        for label in disliked:
            met += ~table.labels.has(label, rows)
        return met * MAX_SCORE // max(len(liked) + len(disliked), 1)


def _check_distinct(present: tuple[str, ...], absent: tuple[str, ...]) -> None:
    """Raise InputError if a label is both required and forbidden."""
    both = sorted(set(present) & set(absent))
    if both:
        raise InputError(f'label "{both[0]}": expected present or absent; got both')
