"""Cheap: prefer the nodes that cost least, by a label with their price."""

import numpy as np

from bayplan.api.pod import Pod, PodSpec
from bayplan.framework import MAX_SCORE, NODE_OBJECT, CycleState, ScorePlugin
from bayplan.table import Ints, NodeTable, Rows


class Cheap(ScorePlugin):
    """The cheapest feasible node gets MAX_SCORE, the most expensive 0; without a price it counts as most expensive."""

    name = "Cheap"
    scope = NODE_OBJECT  # a node's price depends on the node only

    def __init__(self, label: str = "example.com/price") -> None:
        self._label = label

    def spec_key(self, spec: PodSpec) -> int:
        """All pods get the same scores."""
        return 0

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """The price of each node in cents, -1 for none."""
        column = table.labels.column(self._label)
        # One entry per distinct price, and one for nodes without the label.
        prices = [to_cents(value) for value in column.values]
        return np.array([*prices, -1], dtype=np.int64)[column.codes[rows]]

    def normalize(self, scores: Ints) -> Ints:
        """Convert prices to points."""
        unknown = scores < 0
        if unknown.all():
            return np.zeros_like(scores)
        lowest, highest = int(scores[~unknown].min()), int(scores.max())
        spread = max(highest - lowest, 1)
        return np.where(unknown, 0, (highest - scores) * MAX_SCORE // spread)


def to_cents(price: str) -> int:
    """A price such as `0.25` in cents; -1 when it is invalid."""
    try:
        return max(round(float(price) * 100), -1)
    except (ValueError, OverflowError):
        return -1
