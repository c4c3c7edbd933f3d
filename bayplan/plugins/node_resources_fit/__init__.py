"""NodeResourcesFit: the node must have room for the pod; a scoring strategy ranks the nodes that do.

Mirrors pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Self

import numpy as np

from ...api.dra import DeviceClass
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
from ...framework.devices import Devices
from ...framework.events import EventWithHint, by_spec
from ...table import FIRST_ROW, Ints, NodeTable, Rows
from .devices import DeviceTotals
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
        self._scored = frozenset(self._strategy.resources)
        self._known: tuple[Handle, Devices] | None = None

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or NodeResourcesFitArgs()
        strategy = make_strategy(args.scoring_strategy)
        plugin = cls(strategy, args.ignored_resources, args.ignored_resource_groups)
        plugin.handle = handle
        return plugin

    def pod_key(self, pod: Pod) -> Hashable:
        return pod.spec.resource_key

    @property
    def follows_scene(self) -> bool:  # type: ignore[override]  # depends on the configuration
        """Not if devices may count in the score: what is given out is in no object yet."""
        return not any(map(is_extended, self._scored))

    def cluster_key(self, table: NodeTable) -> Hashable:
        # Which resources a node without them leaves to devices; and, where those count in the score, what is in use.
        devices = self._devices()
        devices.follow()
        if not devices.classes.backed(self._scored):
            return devices.classes.version
        offered, used = devices.inventory.changes, devices.allocated.changes
        return devices.classes.version, offered.version, used.version

    def _devices(self) -> Devices:
        known = self._known
        if known is None or known[0] is not self.handle:
            known = self._known = (self.handle, Devices.of(self.handle))
        return known[1]

    def _backed(self, pod: Pod) -> Sequence[str]:
        """The resources of the pod that a node without them may have from devices."""
        names = pod.spec.device_resources
        return self._devices().classes.backed(names) if names else ()

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
        backed = self._backed(pod)
        is_short = any(
            wanted > offered.get(resource, 0) - used.get(resource, 0)
            for resource, wanted in pod.requests.items()
            if resource not in old.usage
            and resource not in backed
            and not self._is_ignored(resource)
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
        backed = self._backed(pod)
        for resource, wanted in pod.requests.items():
            if self._is_ignored(resource):
                continue
            capacity = table.allocatable[resource][rows]
            short = capacity - table.requested[resource][rows] < wanted
            if resource in backed:
                short &= capacity > 0  # a node that has none leaves it to DynamicResources
            if np.count_nonzero(short):
                verdict.reject(short, f"Insufficient {resource}", unresolvable=wanted > capacity)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        reasons, code = [], Code.Unschedulable
        backed = self._backed(pod)
        allocatable, requested = node.allocatable, node.requested
        if len(node.table.pods[node.row]) + 1 > allocatable.get("pods", 0):
            reasons.append(TOO_MANY_PODS)
        for resource, wanted in pod.requests.items():
            capacity = allocatable.get(resource, 0)
            if wanted > capacity - requested.get(resource, 0) and not self._is_ignored(resource):
                if resource in backed and not capacity:
                    continue
                reasons.append(f"Insufficient {resource}")
                if wanted > capacity:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons)) if reasons else SUCCESS

    def row_filter(self, pod: Pod, table: NodeTable) -> RowFilter | None:
        if pod.spec.device_resources:
            return None  # a node may leave these to devices
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
        given = self._given(pod)
        if given:
            totals = DeviceTotals(self._devices())
            seen = {name: totals.of_rows(found, table, rows) for name, found in given.items()}
            return self._strategy.score(pod.scoring_requests, table, rows, seen)
        return self._strategy.score(pod.scoring_requests, table, rows)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        if self._given(pod):
            return int(self.score_rows(state, pod, node.as_table(), FIRST_ROW)[0])
        return self._strategy.score_node(pod.scoring_requests, node)

    def row_score(self, pod: Pod, table: NodeTable) -> RowScore | None:
        if not self._scored.isdisjoint(pod.spec.device_resources):
            return None  # devices may count, too
        return self._strategy.row_score(pod.scoring_requests, table)

    def _given(self, pod: Pod) -> dict[str, DeviceClass]:
        """The resources that count in the score and may come from devices, with the class of those."""
        names = pod.spec.device_resources
        if not names or self._scored.isdisjoint(names):
            return {}
        found = {name: self._devices().classes.for_resource(name) for name in names}
        return {n: c for n, c in found.items() if c is not None and n in self._scored}

    def _is_ignored(self, resource: str) -> bool:
        """Extended resources that the configuration leaves to somebody else."""
        if not (self._ignored_resources or self._ignored_groups) or not is_extended(resource):
            return False
        return (
            resource in self._ignored_resources
            or resource.partition("/")[0] in self._ignored_groups
        )
