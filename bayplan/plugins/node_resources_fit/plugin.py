"""NodeResourcesFit: the node must have room for the pod; a scoring strategy ranks the nodes that do.

Mirrors pkg/scheduler/framework/plugins/noderesources/{fit,least_allocated,most_allocated,
requested_to_capacity_ratio}.go; the arithmetic of the strategies is in `amounts/scoring.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ...amounts import (
    POD_COUNT,
    AmountRules,
    FitRule,
    ShareKind,
    ShareRule,
    rule_points,
    share_points,
    shortage_at,
    shortages,
)
from ...api.dra import DeviceClass
from ...api.pod import Pod, PodSpec
from ...api.resources import is_extended, is_scalar
from ...config.plugin_args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from ...framework import (
    MAX_SCORE,
    NODE_ROW,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PlacementScorePlugin,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
)
from ...framework.devices import Devices
from ...framework.events import EventWithHint
from ...framework.fit_status import fit_status, fit_verdict
from ...framework.interface import SettledPreFilter
from ...framework.placement import PodGroupAssignments, PodGroupInfo
from ...framework.scores import shape_heights
from ...table import Ints, NodeTable, Rows
from .hints import FitHints

# The score of a placement: how full its nodes would be, taken together, with the pods of a group on them.
# Mirrors scorePlacement of pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.


def requests_together(pods: Sequence[Pod], resources: Iterable[str]) -> dict[str, int]:
    """Sum of the pods' requests for each resource."""
    return {
        resource: sum(pod.scoring_requests.get(resource, 0) for pod in pods)
        for resource in resources
    }


def most_allocated_together(
    table: NodeTable, rows: Ints, requests: Mapping[str, int], weights: Mapping[str, int]
) -> int:
    """The weighted mean, over resources, of the share that would be in use with `requests`, from 0 to 100.

    Resources that the nodes lack do not count, nor extended ones that are not requested. A node that lacks a resource
    has none of it in use, whatever its pods request.
    """
    points = total_weight = 0
    for resource, weight in weights.items():
        wanted = requests[resource]
        if not wanted and is_scalar(resource):
            continue
        capacities = table.allocatable[resource][rows]
        capacity = int(capacities.sum())
        if capacity:
            usage = table.scoring_usage[resource][rows]
            used = wanted + int(usage[capacities != 0].sum())
            points += weight * (min(used, capacity) * MAX_SCORE // capacity)
            total_weight += weight
    return points // total_weight if total_weight else 0


# Devices in the place of extended resources, as NodeResourcesFit sees them.
# Mirrors shouldDelegateResourceToDRA of pkg/scheduler/framework/plugins/noderesources/fit.go and
# calculateDRAResourceTotals of resource_allocation.go there.


class DeviceTotals:
    """Number of devices of a class that a node has, and of those in use."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def of_rows(self, device_class: DeviceClass, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """Two int64 per row: the devices there are, and those in use."""
        names = [table.names[row] for row in table.numbers(rows)]
        totals = [self.of_node(device_class, name) for name in names]
        found = np.array(totals, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def of_node(self, device_class: DeviceClass, node_name: str) -> tuple[int, int]:
        """The devices of one node, and those in use. Devices of incomplete pools count, too."""
        devices = self._devices
        selection = devices.classes.selection(device_class)
        offers = [
            offer
            for offer in devices.inventory.reached(devices.table.row_of[node_name])
            if selection.judge(offer) is True
        ]
        return len(offers), sum(offer.id in devices.allocated for offer in offers)


TOO_MANY_PODS = "Too many pods"
PLACED_REQUESTS = "NodeResourcesFit/placed"
"""Key in the state of a pod group: some of its pods, and the sum of their requests."""
SETTLED = Settled(pre_filter=SUCCESS, pre_score=SUCCESS)


NOTHING: frozenset[str] = frozenset()


class Reasons(dict[str, str]):
    """Reason for refusing a node that has too little of a resource."""

    def __missing__(self, resource: str) -> str:
        return f"Insufficient {resource}"


REASONS = Reasons({POD_COUNT: TOO_MANY_PODS})


class NodeResourcesFit(
    SettledPreFilter, FilterPlugin, PreScorePlugin, ScorePlugin, PlacementScorePlugin
):
    """Every resource that is short is named, not only the first."""

    name = "NodeResourcesFit"
    scope = NODE_ROW

    def __init__(
        self,
        strategy: Strategy | None = None,
        ignored_resources: Collection[str] = (),
        ignored_groups: Collection[str] = (),
    ) -> None:
        self._strategy = strategy or make_strategy(None)
        self._ignored_resources = frozenset(ignored_resources)
        self._ignored_groups = frozenset(ignored_groups)
        self._ignores = bool(ignored_resources or ignored_groups)
        self._hints = FitHints()
        self._is_always_resolvable = False
        self._scored = frozenset(self._strategy.weights)
        self._known: tuple[Handle, Devices] | None = None

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or NodeResourcesFitArgs()
        strategy = make_strategy(args.scoring_strategy)
        plugin = cls(strategy, args.ignored_resources, args.ignored_resource_groups)
        plugin.handle = handle
        plugin._is_always_resolvable = not handle.release.fit_unresolvable
        plugin._hints = FitHints(handle.feature_gates.enabled("DRAExtendedResource"))
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.resource_key

    def cluster_key(self, table: NodeTable) -> Hashable:
        # Which resources a node without them leaves to devices.
        return self.handle.lister.version_of(DeviceClass.kind)

    def _devices(self) -> Devices:
        """The devices of the cluster, up to date."""
        known = self._known
        if known is None or known[0] is not self.handle:
            known = self._known = (self.handle, Devices.of(self.handle))
        known[1].follow()
        return known[1]

    def _backed(self, pod: Pod) -> Sequence[str]:
        """The resources of the pod that devices may provide on a node without them."""
        names = pod.spec.device_resources
        return self._devices().classes.backed(names) if names else ()

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events(lambda: self.handle.lister, self._is_too_little)

    def _is_too_little(self, pod: Pod, old: Any, new: Any) -> bool:
        """Whether the pod that left its node did not use a resource that `pod` lacks there, and no other pod can be
        preempted.

        kube-scheduler tries again after any pod has left. The other nodes did not change, so a new attempt would fail;
        unless `pod` was nominated to this node and may now be nominated to another.
        """
        if new is not None or pod.nominated_node_name == old.node_name:
            return False
        table = self.handle.table
        row = table.row_of.get(old.node_name)
        if row is None or not table.live[row]:
            return False
        backed = self._backed(pod)
        as_before = {
            resource: wanted
            for resource, wanted in pod.requests.items()
            if resource not in old.usage
            and resource not in backed
            and not self._is_ignored(resource)
        }
        is_short = shortage_at(table, row, FitRule(as_before, {})) != 0
        return is_short and not table.priorities.has_below(row, pod.priority)

    def settled(self, spec: PodSpec) -> Settled:
        return SETTLED

    def amount_rules(self, pod: Pod) -> AmountRules:
        if self._given(pod):  # the use of devices is in no row
            return AmountRules(self._fit_rule(pod), scores_by_more=True)
        return AmountRules(self._fit_rule(pod), self._score_rule(pod))

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        rule = self._fit_rule(pod)
        return fit_verdict(rule, shortages(table, rows, rule))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        rule = self._fit_rule(pod)
        return fit_status(rule, shortage_at(node.table, node.row, rule))

    def _fit_rule(self, pod: Pod) -> FitRule:
        amounts = {POD_COUNT: 1, **pod.requests}
        if self._ignores:
            amounts = {
                name: amount for name, amount in amounts.items() if not self._is_ignored(name)
            }
        # A node that has none of these leaves them to DynamicResources.
        backed = self._backed(pod)
        devices = frozenset(backed) if backed else NOTHING
        return FitRule(amounts, REASONS, devices, self.name, self._is_always_resolvable)

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        rule, given = self._score_rule(pod), self._given(pod)
        if not given:
            return rule_points(table, rows, rule)
        totals = DeviceTotals(self._devices())
        devices = {name: totals.of_rows(found, table, rows) for name, found in given.items()}
        return share_points(table, rows, rule, devices)

    def score_placement(
        self, state: CycleState, group: PodGroupInfo, assigned: PodGroupAssignments
    ) -> int:
        """Utilisation of the nodes of the placement, taken together."""
        weights = self._strategy.weights
        known = state.get(PLACED_REQUESTS)
        if known is None or known[0] is not assigned.pods:  # on most placements the same pods fit
            known = (assigned.pods, requests_together(assigned.pods, weights))
            state.write(PLACED_REQUESTS, known)
        return most_allocated_together(
            self.handle.table, assigned.placement.rows, known[1], weights
        )

    def _score_rule(self, pod: Pod) -> ShareRule:
        return self._strategy.rule(pod.scoring_requests)

    def _given(self, pod: Pod) -> dict[str, DeviceClass]:
        """The resources that count in the score and may come from devices, each with its device class."""
        names = pod.spec.device_resources
        if not names or self._scored.isdisjoint(names):
            return {}
        classes = self._devices().classes
        found = {name: classes.for_resource(name) for name in names}
        return {n: c for n, c in found.items() if c is not None and n in self._scored}

    def _is_ignored(self, resource: str) -> bool:
        """Whether the configuration excludes this extended resource."""
        return is_extended(resource) and (
            resource in self._ignored_resources
            or resource.partition("/")[0] in self._ignored_groups
        )


class Strategy:
    """A weighted mean, over resources, of points from 0 to 100; `heights` is for RATIO."""

    def __init__(
        self, kind: ShareKind, weights: Mapping[str, int], heights: Ints | None = None
    ) -> None:
        self._kind = kind
        self._heights = heights
        self.weights = weights
        """The resources that count, with their weights."""
        # Whether the resource is an extended one: those count only when the pod asks for them.
        self._resources = [(name, weight, is_scalar(name)) for name, weight in weights.items()]

    def rule(self, wanted: Mapping[str, int]) -> ShareRule:
        """The rule for a pod asking for `wanted`."""
        parts = [
            (resource, wanted.get(resource, 0), weight)
            for resource, weight, extended in self._resources
            if not extended or wanted.get(resource)
        ]
        return ShareRule(self._kind, tuple(parts), self._heights)


def make_strategy(wanted: ScoringStrategy | None) -> Strategy:
    """The strategy of a configuration; RATIO favours the utilisation with the most points by a shape, a broken line."""
    if wanted is None:
        return Strategy(ShareKind.LEAST, {"cpu": 1, "memory": 1})
    weights = Counter[str]()
    for resource in wanted.resources:  # a resource that is listed twice counts twice
        weights[resource.name] += resource.weight or 1
    if wanted.type == MOST_ALLOCATED:
        return Strategy(ShareKind.MOST, weights)
    if wanted.type == REQUESTED_TO_CAPACITY_RATIO and wanted.requested_to_capacity_ratio:
        shape = wanted.requested_to_capacity_ratio.shape
        heights = shape_heights([(p.utilization, p.score) for p in shape])
        return Strategy(ShareKind.RATIO, weights, heights)
    return Strategy(ShareKind.LEAST, weights)
