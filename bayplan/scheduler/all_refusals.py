"""All refusals: the result of every filter for every node, not only the first rejection.

kube-scheduler stops at the first rejection; a counterfactual needs all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..api.pod import Pod
from ..framework import SUCCESS, Code, CycleState, Status, Verdict
from ..framework.handle import Nominator
from ..framework.row_statuses import RowStatuses
from ..runtime import Filtering, PluginRunError, PreFiltered, ProfileRuntime
from ..runtime.plugin_calls import PodCalls
from ..table import ALL, Bools, Ints, NodeTable

OUTSIDE = "node(s) didn't satisfy plugin(s) [{}]"


class AllRefusals:
    """The rejections of one pod: `pre` is the PreFilter status; the rest is empty when that rejects the
    pod.

    `by_filter` has, for each filter that ran, a status per row of the table. `rows` are the rows with a
    node.
    """

    def __init__(
        self, profile: ProfileRuntime, pod: Pod, table: NodeTable, nominator: Nominator
    ) -> None:
        self.pod = pod
        self.table = table
        self.state = CycleState()
        self.filtering: Filtering = profile.filtering
        self._nominator = nominator
        self.rows: Ints = self.table.numbers(self.table.live_rows)
        self.by_filter: list[RowStatuses] = []
        self.error: Status | None = None
        """Set when a plugin failed; there are no results then."""
        self.pre = PreFiltered(SUCCESS, None, set())
        try:
            self.pre = self.filtering.run_pre_filters(self.state, pod, self.table)
            if self.pre.status.is_success:
                self._ask_filters()
                self._note_outside()
                self._note_nominated()
        except PluginRunError as failed:
            if failed.is_fault:
                raise
            self.error = failed.status

    @property
    def is_pod_refused(self) -> bool:
        """Whether PreFilter rejected the pod or failed."""
        return self.error is not None or not self.pre.status.is_success

    @property
    def feasible(self) -> Bools:
        """bool per row of the table: a node that no filter refuses."""
        if self.is_pod_refused:
            return np.zeros(len(self.table), dtype=np.bool_)
        accepted = np.array(self.table.live)
        for statuses in self.by_filter:
            accepted &= ~statuses.is_refused
        return accepted

    def refusals_at(self, row: int) -> list[Status]:
        """The status of each filter that rejects the node, in filter order."""
        return [
            status for statuses in self.by_filter if not (status := statuses.at(row)).is_success
        ]

    def groups(self) -> list[tuple[list[Status], Ints]]:
        """The rejected rows, grouped by equal rejections."""
        rows = self.rows[~self.feasible[self.rows]]
        if self.is_pod_refused or not len(rows):
            return []
        kinds = np.stack([statuses.indices[rows] for statuses in self.by_filter], axis=1)
        _, first, inverse = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        order = np.argsort(inverse, kind="stable")
        parts = np.split(rows[order], np.cumsum(np.bincount(inverse))[:-1])
        found = zip(first.tolist(), parts, strict=True)
        return [(self.refusals_at(int(rows[sample])), part) for sample, part in found]

    def note(self, statuses: Iterable[tuple[int, Status]]) -> None:
        """Add the statuses of an extender or another source for some rows."""
        added = RowStatuses()
        added.clear(len(self.table))
        for row, status in statuses:
            added.put(row, status)
        if added.refused:
            self.by_filter.append(added)

    def _ask_filters(self) -> None:
        calls = PodCalls(self.state, self.pod, self.table)
        for plugin in self.filtering.filters:
            if plugin.name not in self.state.skip_filter:
                verdict = calls.filter(plugin, ALL)
                if verdict.codes.any():
                    self.by_filter.append(_statuses(self.table, verdict, plugin.name))

    def _note_outside(self) -> None:
        """Reject the nodes that PreFilter excluded, unless a filter already does."""
        if self.pre.node_names is None:
            return
        feasible = self.feasible
        plugins = " ".join(sorted(self.pre.narrowed_by))
        reason = OUTSIDE.format(plugins)
        refused = Status(Code.UnschedulableAndUnresolvable, (reason,), plugins)
        names = self.table.names
        outside = [r for r in self.rows.tolist() if names[r] not in self.pre.node_names]
        self.note((row, refused) for row in outside if feasible[row])

    def _note_nominated(self) -> None:
        """Nodes may be rejected because of pods nominated to them."""
        feasible, row_of = self.feasible, self.table.row_of
        rows = [row_of[name] for name in self._nominator.node_names() if name in row_of]
        crowded = []
        for row in rows:
            if feasible[row]:
                node = self.table.node_at(row)
                status = self.filtering.filter_with_nominated(self.state, self.pod, node)
                crowded.append((row, status))
        self.note(crowded)


def _statuses(table: NodeTable, verdict: Verdict, plugin: str) -> RowStatuses:
    statuses = RowStatuses()
    statuses.clear(len(table))
    everything = np.arange(len(table), dtype=np.int64)
    statuses.put_rows(everything, [(everything, verdict, plugin)])
    return statuses
