"""ServiceAffinity: pods of one Service share the values of some node labels, and are spread over those of others.

Mirrors pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go of v1.20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np

from ...api.pod import Pod
from ...api.selectors import LabelSelector
from ...config.plugin_args import ServiceAffinityArgs
from ...framework import (
    MAX_SCORE,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PreFilterExtensions,
    PreFilterPlugin,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unschedulable,
)
from ...framework.pod_owners import services_of
from ...table import ABSENT, Ints, NodeTable, PodTerm, Rows
from ...table.terms import NO_POD

REASON = "node(s) didn't match service affinity"
NODE_NOT_FOUND = "node not found"
STATE = "PreFilterServiceAffinity"


class MatchingPods(msgspec.Struct):
    """The pods whose labels contain all labels of the incoming pod, as a list that a what-if changes.

    Only the node of the first of them is read. `counts` are the counts of the cluster; `removed` has the number of pods
    per row that a what-if removed, `added` the pods that it added, at the end of the list.
    """

    table: NodeTable
    alike: PodTerm
    has_service: bool
    order: Ints
    counts: Ints
    removed: Counter[int] = msgspec.field(default_factory=Counter)
    added: list[Pod] = msgspec.field(default_factory=list)

    def clone(self) -> MatchingPods:
        """A copy for a what-if."""
        return msgspec.structs.replace(self, removed=self.removed.copy(), added=self.added.copy())

    def first_row(self) -> int | None:
        """The row of the first pod in the list; None when the list is empty. KeyError when its node is not known."""
        left = self.counts[self.order]
        if self.removed:
            left = left.copy()
            for row, number in self.removed.items():
                left[self.order == row] -= number
        found = np.flatnonzero(left > 0)
        if len(found):
            return int(self.order[found[0]])
        # A pod that is only nominated to a node names none: upstream fails on it, and so do we.
        return self.table.row_of[self.added[0].node_name] if self.added else None


class ServiceAffinity(PreFilterPlugin, PreFilterExtensions, FilterPlugin, ScorePlugin):
    """Filters by the labels of the node where the first pod of the kind went, scores by the pods of the Service."""

    name = "ServiceAffinity"
    args_type = ServiceAffinityArgs

    def __init__(self, wanted: ServiceAffinityArgs | None = None) -> None:
        self._wanted = wanted or ServiceAffinityArgs()

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        if not self._wanted.affinity_labels:
            return SKIP
        selector = LabelSelector.of(pod.labels)
        alike = PodTerm(frozenset({pod.namespace}), selector)
        order = self.handle.node_order
        kept = MatchingPods(
            table=table,
            alike=alike,
            has_service=bool(services_of(pod, self.handle.lister)),
            order=table.numbers(table.live_rows) if order is None else order(),
            counts=table.terms.count(alike).per_row,
        )
        state.write(STATE, kept)
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        kept: MatchingPods = state.read(STATE)
        if kept.alike.matches(added):
            kept.added.append(added)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        kept: MatchingPods = state.read(STATE)
        if not kept.alike.matches(removed):
            return SUCCESS
        for position, other in enumerate(kept.added):
            if other.key == removed.key:
                del kept.added[position]
                return SUCCESS
        row = kept.table.row_of.get(removed.node_name)
        if row is not None:
            kept.removed[row] += 1
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        wanted = self._labels_to_match(state.read(STATE), pod)
        if isinstance(wanted, Status):
            verdict.error = wanted
            return verdict
        for label, value in wanted.items():
            verdict.reject(~table.labels.equal(label, value, rows), REASON)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        wanted = self._labels_to_match(state.read(STATE), pod)
        if isinstance(wanted, Status):
            return wanted
        if all(node.labels.get(label) == value for label, value in wanted.items()):
            return SUCCESS
        return unschedulable(REASON)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row: pods of the pod's first Service on the node."""
        counts: Ints = table.terms.count(self._served_with(pod)).per_row[rows]
        return counts

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return sum(map(self._served_with(pod).matches, node.pods))

    def normalize_rows(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, scores: Ints
    ) -> Ints:
        """For each label to spread over: the share of the Service's pods that are not under the node's value."""
        labels = self._wanted.anti_affinity_labels_preference
        points = np.zeros(len(scores), dtype=np.float64)
        total = int(scores.sum())
        for label in labels:
            column = table.labels.column(label)
            codes = column.codes[rows]
            has_label = codes != ABSENT
            shares = np.full(column.slots, float(MAX_SCORE))
            if total > 0:
                sums = np.bincount(
                    codes[has_label], weights=scores[has_label], minlength=column.slots
                )
                shares = MAX_SCORE * ((total - sums) / total)
            points += np.where(has_label, shares[codes] / len(labels), 0.0)
        return points.astype(np.int64)

    def _labels_to_match(self, kept: MatchingPods, pod: Pod) -> Mapping[str, str] | Status:
        """Labels from the pod's node selector, completed from the node of the first matching pod."""
        asked = pod.spec.node_selector or {}
        labels = self._wanted.affinity_labels
        wanted = {label: asked[label] for label in labels if label in asked}
        if len(wanted) == len(labels) or not kept.has_service:
            return wanted
        try:
            row = kept.first_row()
        except KeyError:
            return failure(NODE_NOT_FOUND)
        node = kept.table.nodes[row] if row is not None else None
        if node is not None:
            known = {label: node.labels[label] for label in labels if label in node.labels}
            wanted = {**known, **wanted}
        return wanted

    def _served_with(self, pod: Pod) -> PodTerm:
        """The pods of the first Service of the pod; none when it has none."""
        services = services_of(pod, self.handle.lister)
        if not services or not services[0].selector:
            return NO_POD
        selector = LabelSelector.of(services[0].selector)
        return PodTerm(frozenset({pod.namespace}), selector, terminating=False)
