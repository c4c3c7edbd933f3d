"""NodeAffinity: nodeSelector and node affinity of the pod, and the affinity the profile adds to every pod.

Mirrors pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from ..api.node import Node
from ..api.pod import NodeAffinity as Affinity
from ..api.pod import Pod, PodSpec, PreferredSchedulingTerm
from ..api.selectors import NAME_FIELD, matches_map
from ..errors import InputError
from ..framework import (
    NODE_OBJECT,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
    failure,
    scale_to_max,
    unresolvable,
)
from ..framework.events import (
    EACH_SPEC,
    NODE,
    ActionType,
    EventWithHint,
    called_for,
    wait_for,
)
from ..table import Ints, NodeTable, Rows
from ..table.node_selection import match_required, match_selector, match_term

REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_ADDED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by the required terms, scores by the weights of the preferred ones."""

    name = "NodeAffinity"
    scope = NODE_OBJECT

    def __init__(self, added_affinity: Affinity | None = None) -> None:
        self._added_required = added_affinity.required if added_affinity else None
        self._added_preferred = added_affinity.preferred if added_affinity else ()

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        plugin = cls(args.added_affinity if args is not None else None)
        plugin.handle = handle
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable:
        selector = frozenset(spec.node_selector.items()) if spec.node_selector else None
        return selector, spec.affinity.node_affinity if spec.affinity else None

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        required = pod.spec.required_node_selector
        if required is None and pod.spec.node_selector is None and self._added_required is None:
            return SKIP
        if required is None or not required.terms:
            return SUCCESS
        named: frozenset[str] = frozenset()
        for term in required.terms:
            sets = [
                frozenset(field.values or ())
                for field in term.fields
                if field.key == NAME_FIELD and field.operator == "In"
            ]
            if not sets:
                return SUCCESS
            named |= frozenset.intersection(*sets)
        return PreFilterResult(named) if named else unresolvable(REASON_CONFLICT)

    def events_to_register(self) -> Sequence[EventWithHint]:
        node_changes = ActionType.Add | ActionType.UpdateNodeLabel
        return (wait_for(NODE, node_changes, helps=self.after_node_change),)

    @called_for(EACH_SPEC)
    def after_node_change(self, pod: Pod, before: Node | None, after: Node) -> bool:
        """Hint: the node matches now and did not before."""
        added = self._added_required
        if added is not None and not added.matches(after.labels, after.name):
            return False
        return matches_node(pod, after) and (before is None or not matches_node(pod, before))

    def settled(self, spec: PodSpec) -> Settled:
        return Settled(self._settled_filter(spec), self._settled_score(spec))

    def _settled_filter(self, spec: PodSpec) -> Status | None:
        required = spec.required_node_selector
        if required is None and spec.node_selector is None and self._added_required is None:
            return SKIP
        if required is not None and any(term.fields for term in required.terms):
            return None  # it may narrow the nodes
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        matched = match_required(table, pod.spec, rows)
        if self._added_required is not None:
            allowed = match_selector(table, self._added_required, rows)
            verdict.reject(~allowed, REASON_ADDED, unresolvable=True)
            matched |= ~allowed  # only the first reason is given
        verdict.reject(~matched, REASON, unresolvable=True)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        labels, name, spec = node.labels, node.name, pod.spec
        if self._added_required is not None and not self._added_required.matches(labels, name):
            return unresolvable(REASON_ADDED)
        required = spec.required_node_selector
        matched = matches_map(spec.node_selector, labels)
        if matched and required is not None:
            matched = required.matches(labels, name)
        return SUCCESS if matched else unresolvable(REASON)

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        preferred = _preferred(pod)
        if not preferred and not self._added_preferred:
            return SKIP
        for position, term in enumerate(preferred):
            for path, problem in term.preference.problems() if term.weight else ():
                return failure(f"preferred term {position}: {path}: {problem}")
        return SUCCESS

    def _settled_score(self, spec: PodSpec) -> Status | None:
        affinity = spec.affinity.node_affinity if spec.affinity else None
        preferred = affinity.preferred if affinity else ()
        if not preferred and not self._added_preferred:
            return SKIP
        has_problems = any(any(term.preference.problems()) for term in preferred if term.weight)
        return None if has_problems else SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        scores = np.zeros(table.count(rows), dtype=np.int64)
        for term in (*self._added_preferred, *_preferred(pod)):
            scores += term.weight * match_term(table, term.preference, rows)
        return scores

    def normalize(self, scores: Ints) -> Ints:
        return scale_to_max(scores)


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.preferred if affinity else ()


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether the pod's terms select a node.

    Raises InputError if no term selects the node and one of them is invalid: it might select the node.
    """
    if not matches_map(pod.spec.node_selector, node.labels):
        return False
    selector = pod.spec.required_node_selector
    if selector is None or selector.matches(node.labels, node.name):
        return True
    if all(term.is_usable or term.is_empty for term in selector.terms):
        return False
    for path, fault in selector.problems():
        raise InputError(f"{path}: {fault}")
    return False
