"""NodeResourcesBalancedAllocation: favour nodes whose resources are used more equally with the pod.

Mirrors pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go; the arithmetic is in `amounts/scoring.py`.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any, Self

import numpy as np

from ..amounts import AmountRules, BalanceRule, rule_points
from ..api.pod import Pod, PodSpec
from ..api.resources import is_scalar
from ..framework import (
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    Handle,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
)
from ..table import Ints, NodeTable, Rows

PASSES, SKIPS = Settled(pre_score=SUCCESS), Settled(pre_score=SKIP)


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores how evenly the resources are used with the pod: from v1.36 on against the use without it, where 75 is
    "no difference"."""

    name = "NodeResourcesBalancedAllocation"
    scope = NODE_ROW

    def __init__(
        self, resources: Sequence[str] = ("cpu", "memory"), scores_change: bool = True
    ) -> None:
        self._resources = tuple(resources)
        self._scores_change = scores_change
        self._counted = [(resource, is_scalar(resource)) for resource in resources]
        """Extended resources count only when the pod asks for them."""

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        names = ("cpu", "memory") if args is None else [part.name for part in args.resources]
        plugin = cls(names, handle.release.balance_scores_change)
        plugin.handle = handle
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable:
        return tuple([spec.requests.get(resource, 0) for resource in self._resources])

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SUCCESS if self._asks_for_something(pod) else SKIP

    def settled(self, spec: PodSpec) -> Settled:
        return PASSES if self._counts(spec.wanted_names) else SKIPS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        if not self._asks_for_something(pod):
            return np.zeros(table.count(rows), dtype=np.int64)
        return rule_points(table, rows, self._rule(pod))

    def amount_rules(self, pod: Pod) -> AmountRules:
        return AmountRules(score=self._rule(pod))

    def _rule(self, pod: Pod) -> BalanceRule:
        wanted = pod.balanced_requests
        return BalanceRule(
            tuple(
                [
                    (resource, wanted.get(resource, 0))
                    for resource, extended in self._counted
                    if not extended or wanted.get(resource)
                ]
            ),
            self._scores_change,
        )

    def _asks_for_something(self, pod: Pod) -> bool:
        return self._counts(pod.balanced_requests.keys())

    def _counts(self, wanted: Container[str]) -> bool:
        """Whether a pod that requests some of `wanted` makes a difference."""
        return any(name in wanted for name in self._resources)
