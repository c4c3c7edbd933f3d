"""NodeResourcesFit: the node must have room for the pod; a scoring strategy ranks the nodes that do.

Mirrors pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Self

import numpy as np

from ...api.pod import Pod, PodSpec
from ...api.resources import is_extended
from ...config.plugin_args import NodeResourcesFitArgs
from ...framework import (
    NODE_ROW,
    SUCCESS,
    AdditiveFilter,
    Code,
    CycleState,
    Demands,
    Handle,
    NodeInfo,
    PreFilterPlugin,
    PreScorePlugin,
    RowFilter,
    RowScore,
    ScorePlugin,
    Status,
    Verdict,
)
from ...framework.events import EventWithHint, by_spec
from ...table import Ints, NodeTable, Rows
from .hints import FitHints
from .strategies import LeastAllocated, Strategy, make_strategy

TOO_MANY_PODS = "Too many pods"


class NodeResourcesFit(PreFilterPlugin, AdditiveFilter, PreScorePlugin, ScorePlugin):
    """Every resource that is short is named, not only the first."""

    name = "NodeResourcesFit"
    reads_pin = False
    scope = NODE_ROW
    key_is_spec = True
    by_amounts = True

    def __init__(
        self,
        strategy: Strategy | None = None,
        ignored_resources: Collection[str] = (),
        ignored_groups: Collection[str] = (),
    ) -> None:
        self._strategy = strategy or LeastAllocated({"cpu": 1, "memory": 1})
        self._ignored_resources = frozenset(ignored_resources)
        self._ignored_groups = frozenset(ignored_groups)
        self._hints = FitHints()

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or NodeResourcesFitArgs()
        strategy = make_strategy(args.scoring_strategy)
        plugin = cls(strategy, args.ignored_resources, args.ignored_resource_groups)
        plugin.handle = handle
        return plugin

    def pod_key(self, pod: Pod) -> Hashable:
        return pod.spec.resource_key

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events(lambda: self.handle.lister, self._is_too_little)

    @by_spec
    def _is_too_little(self, pod: Pod, old: Any, new: Any) -> bool:
        """Whether the pod that left its node did not use what `pod` lacks there, and nobody else can be pushed out.

        kube-scheduler tries again after any pod has left. The other nodes are as they were, so that is in vain; unless
        this is the node that was being cleared for `pod`, which may now look for another.
        """
        if new is not None or pod.nominated_node_name == old.node_name:
            return False
        table = self.handle.table
        row = table.row_of.get(old.node_name)
        if row is None or not table.live[row]:
            return False
        offered, used = table.allocatable.rows[row], table.requested.rows[row]
        is_short = any(
            wanted > offered.get(resource, 0) - used.get(resource, 0)
            for resource, wanted in pod.requests.items()
            if resource not in old.usage and not self._is_ignored(resource)
        )
        return is_short and not table.priorities.has_below(row, pod.priority)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS

    def pre_filter_spec(self, spec: PodSpec) -> Status:
        return SUCCESS

    def pre_score_spec(self, spec: PodSpec) -> Status:
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        verdict.reject(table.pod_count[rows] >= table.max_pods[rows], TOO_MANY_PODS)
        for resource, wanted in pod.requests.items():
            if self._is_ignored(resource):
                continue
            capacity = table.allocatable[resource][rows]
            short = capacity - table.requested[resource][rows] < wanted
            if np.count_nonzero(short):
                verdict.reject(short, f"Insufficient {resource}", unresolvable=wanted > capacity)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        reasons, code = [], Code.Unschedulable
        allocatable, requested = node.allocatable, node.requested
        if len(node.table.pods[node.row]) + 1 > allocatable.get("pods", 0):
            reasons.append(TOO_MANY_PODS)
        for resource, wanted in pod.requests.items():
            capacity = allocatable.get(resource, 0)
            if wanted > capacity - requested.get(resource, 0) and not self._is_ignored(resource):
                reasons.append(f"Insufficient {resource}")
                if wanted > capacity:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons)) if reasons else SUCCESS

    def row_filter(self, pod: Pod, table: NodeTable) -> RowFilter:
        wants = [(r, n) for r, n in pod.requests.items() if not self._is_ignored(r)]
        pods, allocatable, requested = table.pods, table.allocatable.rows, table.requested.rows

        if (
            len(wants) == 2
        ):  # cpu and memory, as most pods: without a loop it takes two thirds of the time
            (first, much_first), (second, much_second) = wants

            def fits_both(row: int) -> bool:
                offered, used = allocatable[row], requested[row]
                return (
                    much_first <= offered.get(first, 0) - used.get(first, 0)
                    and much_second <= offered.get(second, 0) - used.get(second, 0)
                    and len(pods[row]) < offered.get("pods", 0)
                )

            return fits_both

        def fits(row: int) -> bool:
            offered, used = allocatable[row], requested[row]
            if len(pods[row]) >= offered.get("pods", 0):
                return False
            for resource, wanted in wants:  # noqa: SIM110  # a generator takes longer than this
                if wanted > offered.get(resource, 0) - used.get(resource, 0):
                    return False
            return True

        return fits

    def demands(self, pod: Pod) -> Demands:
        amounts, reasons = {"pods": 1}, {"pods": TOO_MANY_PODS}
        for resource, wanted in pod.requests.items():
            if not self._is_ignored(resource):
                amounts[resource] = wanted
                reasons[resource] = f"Insufficient {resource}"
        return Demands(amounts, reasons)

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return self._strategy.score(pod.scoring_requests, table, rows)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self._strategy.score_node(pod.scoring_requests, node)

    def row_score(self, pod: Pod, table: NodeTable) -> RowScore | None:
        return self._strategy.row_score(pod.scoring_requests, table)

    def _is_ignored(self, resource: str) -> bool:
        """Extended resources that the configuration leaves to somebody else."""
        if not (self._ignored_resources or self._ignored_groups) or not is_extended(resource):
            return False
        return (
            resource in self._ignored_resources
            or resource.partition("/")[0] in self._ignored_groups
        )
