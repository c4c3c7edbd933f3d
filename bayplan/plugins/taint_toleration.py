"""TaintToleration: keep a pod off nodes whose taints it does not tolerate.

Mirrors pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from typing import Any, Self

import numpy as np

from ..api.node import Node
from ..api.pod import Pod, PodSpec
from ..api.taints import Taint, find_untolerated, tolerated
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
    scale_to_max,
    unresolvable,
)
from ..framework.events import (
    EACH_SPEC,
    NODE,
    POD,
    ActionType,
    EventWithHint,
    called_for,
    is_own_change,
    wait_for,
)
from ..framework.interface import SettledPreFilter
from ..table import Bools, Ints, NodeTable, Rows

REASON = "node(s) had untolerated taint(s)"
REFUSED = unresolvable(REASON)
HARD = frozenset({"NoSchedule", "NoExecute"})
SOFT = frozenset({"PreferNoSchedule"})
SETTLED = Settled(SUCCESS, pre_score=SUCCESS)


class TaintToleration(SettledPreFilter, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters on NoSchedule and NoExecute taints; scores by PreferNoSchedule taints.

    PreFilter, from v1.37 on, is about pods that are being resized.

    A cluster has few distinct taints: each is matched against the pod once, then the
    rows that carry it are counted together.
    """

    name = "TaintToleration"
    scope = NODE_OBJECT

    def __init__(self, comparison_operators: bool = False, names_taints: bool = False) -> None:
        self._comparison_operators = comparison_operators
        self._names_taints = names_taints
        """Fact `names_taints` of the release."""

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")
        plugin = cls(operators, handle.release.names_taints)
        plugin.handle = handle
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.tolerations or ()

    def events_to_register(self) -> Sequence[EventWithHint]:
        node_changes = ActionType.Add | ActionType.UpdateNodeTaint
        return (
            wait_for(NODE, node_changes, helps=self.after_node_change),
            wait_for(POD, ActionType.UpdatePodToleration, helps=is_own_change),
        )

    @called_for(EACH_SPEC)
    def after_node_change(self, pod: Pod, before: Node | None, after: Node) -> bool:
        """Hint: a node was added without, or lost, the taints that the pod does not tolerate."""
        return not self._repels(after, pod) and (before is None or self._repels(before, pod))

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        if self._names_taints:
            for taint, mask in self._first_untolerated(pod, table, rows):
                verdict.reject(mask, named_reason(taint), unresolvable=True)
            return verdict
        verdict.reject(self._untolerated(pod, table, rows, HARD) > 0, REASON, unresolvable=True)
        return verdict

    def _first_untolerated(
        self, pod: Pod, table: NodeTable, rows: Rows
    ) -> Iterator[tuple[Taint, Bools]]:
        """Each taint that is the first untolerated one of some rows, with a mask of those."""
        ids = table.taints.ids[rows]
        for number in np.flatnonzero(np.bincount(ids)).tolist():
            found = self._find(table.taints.distinct[number], pod)
            if found is not None:
                yield found, ids == number

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        found = self._find(node.taints, pod) if node.taints else None
        if found is None:
            return SUCCESS
        return unresolvable(named_reason(found)) if self._names_taints else REFUSED

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SUCCESS

    def settled(self, spec: PodSpec) -> Settled:
        return SETTLED

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return self._untolerated(pod, table, rows, SOFT)

    def normalize(self, scores: Ints) -> Ints:
        return scale_to_max(scores, reverse=True)

    def _repels(self, node: Node, pod: Pod) -> bool:
        return self._find(node.taints, pod) is not None

    def _find(self, taints: Sequence[Taint], pod: Pod) -> Taint | None:
        """The first taint that keeps the pod off a node."""
        return find_untolerated(taints, pod.tolerations, HARD, self._comparison_operators)

    def _untolerated(self, pod: Pod, table: NodeTable, rows: Rows, effects: Set[str]) -> Ints:
        """Taints per row that have one of `effects` and that `pod` does not tolerate."""

        def matters(taint: Taint) -> bool:
            return taint.effect in effects and not tolerated(
                taint, pod.tolerations, self._comparison_operators
            )

        return table.taints.count(matters, rows)


def named_reason(taint: Taint) -> str:
    """The reason with the name of the taint."""
    return f"node(s) had untolerated taint {{{taint.key}: {taint.value or ''}}}"
