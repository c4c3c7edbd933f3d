"""Judging: what one node, real or a what-if, says to a pod, with and without the pods nominated to it.

Mirrors RunFilterPlugins, RunFilterPluginsWithNominatedPods and the runs of AddPod and RemovePod of
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..api.pod import Pod
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    AdditiveFilter,
    Code,
    CycleState,
    Demands,
    FilterPlugin,
    Nominator,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    Status,
)
from ..framework.reserved import POD_COUNT
from ..table import NodeInfo
from ..table.what_if import WhatIf
from .demands import DemandsOf
from .failing import failed
from .kept import FILTERING, has_own

NO_DEMANDS = Demands({}, {})


class NodeJudge:
    """The filters of a profile, asked about one node after the other."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        nominator: Nominator,
        check_all: bool,
    ) -> None:
        self.pre_filters = tuple(pre_filters)
        self.filters = tuple(filters)
        self._nominator = nominator
        self._check_all = check_all
        self._looking = [p for p in self.filters if p.scope is not NODE_OBJECT]
        self._additive: dict[FilterPlugin, DemandsOf] = {
            p: DemandsOf(p) for p in self.filters if isinstance(p, AdditiveFilter)
        }
        self._position = {plugin.name: i for i, plugin in enumerate(self.filters)}

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if; the first refusal counts, or all of them when all are asked for."""
        merged = SUCCESS
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            try:
                status = plugin.filter_node(state, pod, node)
            except Exception as error:
                raise failed(FILTERING, plugin, error) from error
            if status.is_rejected:
                merged = merged.merged(status.by(plugin.name))
                if not self._check_all:
                    break
            elif not status.is_success:
                raise failed(FILTERING, plugin, status)
        return merged

    def filter_node_again(
        self, state: CycleState, pod: Pod, node: NodeInfo, before: Status
    ) -> Status:
        """Judge a node of which only the pods changed since the one filter that looks at pods said `before`.

        All filters before that one accept the node, as they did then.
        """
        plugin = self.filters[self._position[before.plugin]]
        try:
            status = plugin.filter_node(state, pod, node)
        except Exception as error:
            raise failed(FILTERING, plugin, error) from error
        return status.by(plugin.name) if status.is_rejected else self.filter_node(state, pod, node)

    def demands(self, state: CycleState, pod: Pod) -> Demands | None:
        """What `pod` needs free on a node, when no filter looks at the pods of a node in another way."""
        skip = state.skip_filter
        looking = [plugin for plugin in self._looking if plugin.name not in skip]
        if not looking:
            return NO_DEMANDS
        adding = looking[0]
        if len(looking) > 1 or adding not in self._additive:
            return None  # one that adds up is enough to know; two might count the same thing
        return self._additive[adding].get(pod)

    def beside_room(
        self, state: CycleState, pod: Pod
    ) -> tuple[Demands, Sequence[FilterPlugin]] | None:
        """What `pod` needs free on a node, and the filters that look at pods in another way, if they say at which."""
        skip = state.skip_filter
        looking = [plugin for plugin in self._looking if plugin.name not in skip]
        adding = [plugin for plugin in looking if plugin in self._additive]
        others = [plugin for plugin in looking if plugin not in self._additive]
        if self._check_all or len(adding) != 1:
            return None
        if not all(has_own(plugin, FilterPlugin, "looks_at") for plugin in others):
            return None
        return self._additive[adding[0]].get(pod), others

    def filter_with_room(self, state: CycleState, pod: Pod, node: NodeInfo, room: Status) -> Status:
        """Judge one node, where `room` is what the filter says that adds up."""
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            try:
                adds_up = plugin in self._additive
                status = room if adds_up else plugin.filter_node(state, pod, node)
            except Exception as error:
                raise failed(FILTERING, plugin, error) from error
            if status.is_rejected:
                return status.by(plugin.name)
            if not status.is_success:
                raise failed(FILTERING, plugin, status)
        return SUCCESS

    def _only_adds_up(self, state: CycleState, pod: Pod) -> bool:
        """Whether adding up is all that filters do with the pods of a node."""
        return not self._check_all and self.demands(state, pod) is not None

    def _crowded(self, node: NodeInfo, demands: Demands, rivals: Sequence[Pod]) -> Status:
        """Whether the nominated pods leave room on the node, by adding up."""
        reasons, code = [], Code.Unschedulable
        requested, allocatable = node.requested, node.allocatable
        for resource, wanted in demands.amounts.items():
            if resource == POD_COUNT:
                taken = len(node.table.pods[node.row]) + len(rivals)
            else:
                taken = requested.get(resource, 0)
                for rival in rivals:
                    taken += rival.usage.get(resource, 0)
            capacity = allocatable.get(resource, 0)
            if wanted > capacity - taken:
                reasons.append(demands.reasons[resource])
                if wanted > capacity and resource != POD_COUNT:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons), demands.plugin) if reasons else SUCCESS

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if, with and without the pods nominated to it."""
        rivals = self._rivals(pod, node)
        crowded = self.judge_with(state, pod, node, rivals) if rivals else SUCCESS
        if crowded.is_success:
            return self.filter_node(state, pod, node)
        if self._only_adds_up(state, pod):
            return self.first_of(crowded, self.filter_node(state, pod, node))
        return crowded

    def judge_with(
        self, state: CycleState, pod: Pod, node: NodeInfo, rivals: Sequence[Pod]
    ) -> Status:
        """Judge a node with nominated pods on it: they may come before this pod, or never.

        When all that filters do with pods is to add up, only the room is judged.
        """
        demands = None if self._check_all else self.demands(state, pod)
        if demands is not None:
            return self._crowded(node, demands, rivals)
        beside = self.beside_room(state, pod)
        if beside is not None and not _look_at(beside[1], state, pod, rivals):
            room = self._crowded(node, beside[0], rivals)
            return self.filter_with_room(state, pod, node, room)
        state, what_if = state.clone(), WhatIf(node.table, node.row)
        for rival in rivals:
            self.add_pod(state, pod, rival, what_if)
        return self.filter_node(state, pod, what_if.node)

    def first_of(self, crowded: Status, plain: Status) -> Status:
        """The status of a node without room for the pod beside the nominated ones, which says `plain` without them.

        The first plugin to refuse counts.
        """
        if plain.is_success or self._position[crowded.plugin] <= self._position[plain.plugin]:
            return crowded
        return plain

    def _rivals(self, pod: Pod, node: NodeInfo) -> list[Pod]:
        """The pods nominated to the node that `pod` must leave room for."""
        return [
            rival
            for rival in self._nominator.nominated_pods(node.name)
            if rival.priority >= pod.priority and rival.uid != pod.uid
        ]

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Put `added` on the node and tell the PreFilter plugins."""
        what_if.add_pod(added)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                self._tell(plugin, "AddPod", plugin.add_pod, state, pod, added, what_if)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and tell the PreFilter plugins."""
        what_if.remove_pod(removed)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                self._tell(plugin, "RemovePod", plugin.remove_pod, state, pod, removed, what_if)

    @staticmethod
    def _tell(
        plugin: Plugin,
        what: str,
        method: Callable[[CycleState, Pod, Pod, NodeInfo], Status],
        *told: Any,
    ) -> None:
        state, pod, other, what_if = told
        doing = f"running {what} on PreFilter plugin {{}}"
        try:
            status = method(state, pod, other, what_if.node)
        except Exception as error:
            raise failed(doing, plugin, error) from error
        if not status.is_success:
            raise failed(doing, plugin, status)


def _look_at(
    filters: Sequence[FilterPlugin], state: CycleState, pod: Pod, others: Sequence[Pod]
) -> bool:
    """Whether one of the filters cares about one of the other pods."""
    return any(f.looks_at(state, pod, other) for other in others for f in filters)
