"""SelectorSpread: spread the pods of a Service or controller over nodes and, with more weight, over zones.

Mirrors pkg/scheduler/framework/plugins/selectorspread/selector_spread.go up to v1.27.
"""

from __future__ import annotations

import numpy as np

from ...api.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from ...api.pod import Pod, PodSpec
from ...framework import (
    MAX_SCORE,
    SKIP,
    SUCCESS,
    CycleState,
    NodeInfo,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
)
from ...framework.interface import NOT_SETTLED
from ...framework.pod_owners import SelectorVersion, default_selector
from ...stamped_cache import StampedCache
from ...table import ABSENT, Ints, NodeTable, PodTerm, Rows
from ...table.terms import NO_POD

STATE = "PreScoreSelectorSpread"
ZONE_WEIGHT = 2.0 / 3.0


class SelectorSpread(PreScorePlugin, ScorePlugin):
    """The fewer pods of the same kind on a node and in its zone, the better.

    Pods with topology spread constraints of their own are left to PodTopologySpread.
    """

    name = "SelectorSpread"

    def __init__(self) -> None:
        self._terms: StampedCache[tuple[object, ...], PodTerm] = StampedCache("selector terms")
        self._selectors = SelectorVersion()

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        if pod.spec.topology_spread_constraints:
            return SKIP
        state.write(STATE, self._term_of(pod))
        return SUCCESS

    def settled(self, spec: PodSpec) -> Settled:
        return Settled(pre_score=SKIP) if spec.topology_spread_constraints else NOT_SETTLED

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row: the pods of the same kind on the node."""
        counts: Ints = table.terms.count(state.read(STATE)).per_row[rows]
        return counts

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        term: PodTerm = state.read(STATE)
        return sum(map(term.matches, node.pods))

    def normalize_rows(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, scores: Ints
    ) -> Ints:
        """Turn round; where a node has a zone, the zone counts for two thirds."""
        points = _share_left(scores, scores)
        zones = zone_ids(table)[rows]
        zoned = zones > 0
        if zoned.any():
            in_zone = np.bincount(zones[zoned], weights=scores[zoned]).astype(np.int64)
            by_zone = _share_left(in_zone, in_zone[zones[zoned]])
            points[zoned] = points[zoned] * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * by_zone
        return points.astype(np.int64)

    def _term_of(self, pod: Pod) -> PodTerm:
        """The pods that `pod` is to be kept apart from; none when nothing selects it."""
        lister = self.handle.lister
        key = (pod.namespace, frozenset(pod.labels.items()), pod.owner_references)
        term = self._terms.get(key, (lister, self._selectors.of(lister)))
        if term is None:
            selector = default_selector(pod, lister)
            term = NO_POD
            if not selector.is_empty:
                term = PodTerm(frozenset({pod.namespace}), selector, terminating=False)
            self._terms.put(key, term)
        return term


def _share_left(counts: Ints, own: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """float64 per entry of `own`: 100 for no pod, 0 for as many as the largest of `counts`."""
    highest = int(counts.max(initial=0))
    if highest == 0:
        return np.full(len(own), float(MAX_SCORE))
    # In this order of operations, or the truncated scores differ.
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = MAX_SCORE * ((highest - own) / highest)
    return shares


def zone_ids(table: NodeTable) -> Ints:
    """int64 per row: equal for nodes of one region and zone, 0 for nodes that have neither."""
    zones, regions = _either(table, BETA_ZONE, ZONE), _either(table, BETA_REGION, REGION)
    ids: Ints = regions * (int(zones.max(initial=0)) + 1) + zones
    return ids


def _either(table: NodeTable, first: str, second: str) -> Ints:
    """int64 per row: the value of label `first`, of `second` where that is absent; 0 for none or an empty one."""
    known = {"": 0}
    columns = [table.labels.column(key) for key in (first, second)]
    numbers = []
    for column in columns:
        values = [known.setdefault(value, len(known)) for value in column.values]
        numbers.append(np.array([*values, 0], dtype=np.int64)[column.codes])
    return np.where(columns[0].codes == ABSENT, numbers[1], numbers[0])
