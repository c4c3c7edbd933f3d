"""FindNodes: the nodes that can run a pod.

Mirrors findNodesThatFitPod, evaluateNominatedNode and findNodesThatPassFilters of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from time import perf_counter

import msgspec
import numpy as np

from ..api.pod import Pod
from ..cache import Snapshot
from ..errors import ExtenderError
from ..framework import CycleState, NodeInfo, unresolvable
from ..framework.diagnosis import Diagnosis
from ..framework.events import EXTENDER
from ..observe.times import FILTERED, PRE_FILTERED, STARTED
from ..runtime import PluginRunError, PreFiltered, ProfileRuntime
from ..table import ALL, Ints, NodeTable, Rows
from ..table.what_if import bare_node
from .extenders import Extenders

log = logging.getLogger(__name__)

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5


NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


class Search(msgspec.Struct):
    """The feasible rows (ALL, or ascending numbers) and the verdicts on the others."""

    rows: Rows
    diagnosis: Diagnosis
    pre_filtered: PreFiltered
    nominated_row: int | None = None
    """The row the pod is nominated to, when it is feasible: taken without scoring."""
    nodes: Ints = msgspec.field(default_factory=lambda: NO_ROWS)
    start: int = 0
    """The position in `nodes` at which the search began; it visits them in order."""
    are_bare: bool = False
    """The feasible nodes are to be scored as if no pods were on them."""

    @property
    def order(self) -> Ints:
        """Rows in search order."""
        return np.concatenate((self.nodes[self.start :], self.nodes[: self.start]))

    def found(self, table: NodeTable) -> Ints:
        """The feasible rows in the order in which they were found."""
        is_feasible = np.zeros(len(table), dtype=np.bool_)
        is_feasible[self.rows] = True
        order = self.order
        return order[is_feasible[order]]

    def bare_nodes(self, table: NodeTable) -> list[NodeInfo] | None:
        """Nodes to score in place of the feasible rows; None means the rows themselves."""
        if not self.are_bare:
            return None
        return [bare_node(table, row) for row in table.numbers(self.rows).tolist()]


def judge_all(
    profile: ProfileRuntime,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    pre: PreFiltered,
    within: Ints | None = None,
) -> Search:
    """Run Filter on every node that PreFilter left, without effects on later searches; extenders are not called.

    Filter judges the rows `within`; None means all.
    """
    filtering, diagnosis = profile.filtering, Diagnosis(table, node_count=table.node_count)
    diagnosis.unschedulable_plugins |= pre.narrowed_by
    search = Search(NO_ROWS, diagnosis, pre)
    if not pre.status.is_success:
        diagnosis.refuse_all(pre.status)
        return search
    rows = _common_rows(rows_to_judge(pre, diagnosis, table), within)
    found = filtering.run_filters(state, pod, table, rows)
    search.rows = filtering.filter_nominated(state, pod, table, found, diagnosis)
    filtering.diagnose(state, pod, table, rows, diagnosis)
    return search


def num_feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """Number of feasible nodes after which a search ends; percentage 0 adapts to the size of the cluster."""
    if nodes < MIN_FEASIBLE_NODES:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, MIN_PERCENTAGE)
    return max(nodes * percentage // 100, MIN_FEASIBLE_NODES)


class NodeFinder:
    """Finds feasible nodes; each search starts where the last one stopped, so that all nodes are visited in turn."""

    def __init__(
        self, table: NodeTable, snapshot: Snapshot, extenders: Extenders | None = None
    ) -> None:
        self._table = table
        self._snapshot = snapshot
        self._extenders = extenders
        self._next_start = 0

    @property
    def order(self) -> Ints:
        """Rows in the order of the next search."""
        nodes, start = self._snapshot.order, self._next_start
        return np.concatenate((nodes[start:], nodes[:start]))

    def pass_one(self) -> None:
        """Advance the start of the next search by one node, as if a search had judged one."""
        self._next_start = (self._next_start + 1) % max(self._table.node_count, 1)

    def find(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        pod: Pod,
        everything: bool = False,
        within: Ints | None = None,
    ) -> Search:
        """Run PreFilter, Filter and the extenders.

        Raises ExtenderError if an extender fails that is not ignorable. With `everything` all nodes are judged, also
        when not needed. Filter judges the rows `within`; None means all.
        """
        table, times = self._table, state.times
        diagnosis = Diagnosis(table, node_count=table.node_count)
        if within is not None:
            diagnosis.restrict(within)
        pre = profile.filtering.run_pre_filters(state, pod, table)
        times[PRE_FILTERED] = perf_counter()
        diagnosis.unschedulable_plugins |= pre.narrowed_by
        search = Search(NO_ROWS, diagnosis, pre)
        if not pre.status.is_success:
            _note_refusal(profile, state, pre)
            diagnosis.refuse_all(pre.status)
            return search
        if pod.nominated_node_name and diagnosis.includes(pod.nominated_node_name):
            search.nominated_row = self._try_nominated(profile, state, pod)
            if search.nominated_row is not None and not everything:
                search.rows = np.array([search.nominated_row])
                times[FILTERED] = perf_counter()
                return search
        rows = _common_rows(rows_to_judge(pre, diagnosis, table), within)
        try:
            self._filter(profile, state, pod, rows, search, everything, within)
        except PluginRunError as error:
            if search.nominated_row is None:
                raise
            # Reached by explanations only: the nominated node is taken without judging the others.
            log.warning("pod %s: nodes besides its nominated node: %s", pod.key, error)
            search.rows = np.array([search.nominated_row])
        times[FILTERED] = perf_counter()
        profile.filter_evaluations.count(state.skip_filter)
        if self._extenders is not None and self._extenders.can_filter:
            self._filter_by_extenders(self._extenders, pod, search)
            if table.count(search.rows) == 0 and not diagnosis.is_judged:
                profile.filtering.diagnose(state, pod, table, rows, diagnosis)
        return search

    def _filter_by_extenders(self, extenders: Extenders, pod: Pod, search: Search) -> None:
        """The feasible rows that the extenders leave, in the order of their answer."""
        found = search.found(self._table)
        left = extenders.filter(pod, found, search.diagnosis)
        search.nodes, search.start = left.rows, 0
        search.are_bare = left.are_bare
        if len(left.rows) != len(found):
            search.rows = np.sort(left.rows)
            search.diagnosis.unschedulable_plugins.add(EXTENDER)

    def _filter(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        search: Search,
        everything: bool,
        within: Ints | None,
    ) -> None:
        table, diagnosis = self._table, search.diagnosis
        search.nodes, search.start = self._snapshot.order, self._next_start
        if within is not None:
            search.nodes = search.nodes[np.isin(search.nodes, within)]
            search.start %= max(len(search.nodes), 1)
        filtering = profile.filtering
        found = filtering.run_filters(state, pod, table, rows)
        found = filtering.filter_nominated(state, pod, table, found, diagnosis)
        if everything or table.count(found) == 0:
            filtering.diagnose(state, pod, table, rows, diagnosis)
        processed = table.node_count if isinstance(rows, slice) else len(rows)
        if profile.percentage is not None:
            enough = num_feasible_nodes_to_find(profile.percentage, processed)
            if not profile.scoring.scores and not self._needs_several_nodes:
                enough = 1
            if table.count(found) > enough:
                found, processed = self._first(enough, table.numbers(found), rows, search)
        search.rows = found
        self._next_start = (search.start + processed) % max(diagnosis.node_count, 1)

    def _first(self, enough: int, found: Ints, rows: Rows, search: Search) -> tuple[Ints, int]:
        """The first `enough` of `found` in search order, and the number of `rows` that were checked for that.

        Like kube-scheduler's, the search ends at the first feasible node beyond `enough`, which is not used.
        """
        table, order = self._table, search.order
        if not isinstance(rows, slice):
            order = order[np.isin(order, rows)]
        is_feasible = np.zeros(len(table), dtype=np.bool_)
        is_feasible[found] = True
        positions = np.flatnonzero(is_feasible[order])
        reached = int(positions[enough])
        outside = np.ones(len(table), dtype=np.bool_)
        outside[order[:reached]] = False
        search.diagnosis.outside = outside
        return np.sort(order[positions[:enough]]), reached

    @property
    def _needs_several_nodes(self) -> bool:
        """Whether an extender filters or scores nodes, so that one feasible node is not enough."""
        extenders = self._extenders
        return extenders is not None and (extenders.can_filter or extenders.can_prioritize)

    def _try_nominated(self, profile: ProfileRuntime, state: CycleState, pod: Pod) -> int | None:
        """The row of the nominated node, if the pod fits there; after an error all nodes are searched."""
        table = self._table
        row = table.row_of.get(pod.nominated_node_name)
        if row is None or not table.live[row]:
            return None
        try:
            status = profile.filtering.filter_with_nominated(state, pod, table.node_at(row))
            if status.is_success and self._extenders is not None:
                # With a diagnosis of its own: a refusal here must not exclude the node from the full search.
                left = self._extenders.filter(pod, np.array([row]), Diagnosis(table))
                return row if len(left.rows) else None
        except (PluginRunError, ExtenderError) as error:
            log.warning("pod %s: nominated node %s: %s", pod.key, pod.nominated_node_name, error)
            return None
        return row if status.is_success else None


def rows_to_judge(pre: PreFiltered, diagnosis: Diagnosis, table: NodeTable) -> Rows:
    """The rows that PreFilter left; the others are noted in `diagnosis`."""
    if pre.node_names is None:
        return ALL
    nodes, row_of = table.nodes, table.row_of
    known = [row_of.get(name) for name in pre.node_names]
    rows = np.array(
        sorted([row for row in known if row is not None and nodes[row] is not None]), np.int64
    )
    diagnosis.inside = rows
    names = " ".join(sorted(pre.narrowed_by))
    diagnosis.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
    return rows


def _common_rows(rows: Rows, within: Ints | None) -> Rows:
    """The rows that are in `within`, too."""
    if within is None:
        return rows
    return within if isinstance(rows, slice) else np.intersect1d(rows, within)


def _note_refusal(profile: ProfileRuntime, state: CycleState, pre: PreFiltered) -> None:
    """Note the refusal of PreFilter, and its time."""
    seconds = state.times[PRE_FILTERED] - state.times[STARTED]
    profile.note_point("PreFilter", pre.status, seconds)
    state.times[PRE_FILTERED] = math.nan
