"""Node check: the filters of one node, real or a what-if, for a pod, with and without the pods nominated to it.

Mirrors RunFilterPlugins, RunFilterPluginsWithNominatedPods and the runs of AddPod and RemovePod of
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..amounts import POD_COUNT, FitRule, shortage_at
from ..api.pod import Pod
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    Status,
)
from ..framework.answer_checks import check_status
from ..framework.diagnosis import Diagnosis
from ..framework.fit_status import fit_status
from ..framework.handle import Nominator
from ..table import NodeInfo
from ..table.what_if import WhatIf
from .plugin_calls import ask_filter, ask_hook, has_own
from .plugin_failures import failed

NO_DEMANDS = FitRule({}, {})


class NodeJudge:
    """The filters of a profile, called for one node after the other."""

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
        self.check_all = check_all
        self._looking = [p for p in self.filters if p.scope is not NODE_OBJECT]
        self._additive = [p for p in self._looking if has_own(p, Plugin, "amount_rules")]
        self._position = {plugin.name: i for i, plugin in enumerate(self.filters)}

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if; the first refusal counts, or all of them on request."""
        merged = SUCCESS
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            status = ask_filter(plugin, state, pod, node)
            if not status.is_success:
                merged = merged.merged(status.by(plugin.name))
                if not self.check_all:
                    break
        return merged

    def demands(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> FitRule | None:
        """The fit rule of `pod`, if it alone decides about nodes that may fit without some of their pods.

        Filters before it accept every node that the fit rule is the first to refuse.
        """
        rule = self._only_rule(state, pod)
        if rule is None or rule is NO_DEMANDS or not rule.is_codable or self.check_all:
            return None
        after = self.filters[self._position[rule.plugin] + 1 :]
        if any(plugin.name not in state.skip_filter for plugin in after):
            return None
        return rule if diagnosis.refusers(Code.Unschedulable) <= {rule.plugin} else None

    def _only_rule(self, state: CycleState, pod: Pod) -> FitRule | None:
        """The amounts that `pod` needs free on a node, if filters only depend on a node's pods by their amounts; else
        None.
        """
        skip = state.skip_filter
        looking = [plugin for plugin in self._looking if plugin.name not in skip]
        if not looking:
            return NO_DEMANDS
        adding = looking[0]
        if len(looking) > 1 or adding not in self._additive:
            return None  # two rules might count the same amounts
        known = state.fit_rule
        return known if known is not None and known.plugin == adding.name else _rule_of(adding, pod)

    def beside_room(
        self, state: CycleState, pod: Pod
    ) -> tuple[FitRule, Sequence[FilterPlugin]] | None:
        """The amounts that `pod` needs free on a node, and the filters that depend on a node's pods otherwise; None
        unless these have `looks_at`.
        """
        skip = state.skip_filter
        looking = [plugin for plugin in self._looking if plugin.name not in skip]
        adding = [plugin for plugin in looking if plugin in self._additive]
        others = [plugin for plugin in looking if plugin not in self._additive]
        if self.check_all or len(adding) != 1:
            return None
        if not all(has_own(plugin, FilterPlugin, "looks_at") for plugin in others):
            return None
        rule = _rule_of(adding[0], pod)
        return None if rule is None else (rule, others)

    def reads_any(
        self,
        filters: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        others: Sequence[Pod],
    ) -> bool:
        """Whether an answer of one of `filters` can depend on one of the `others`."""
        return any(ask_hook(f, f.looks_at, state, pod, other) for other in others for f in filters)

    def filter_with_room(self, state: CycleState, pod: Pod, node: NodeInfo, room: Status) -> Status:
        """Judge one node, with `room` as the result of the fit rule."""
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            adds_up = plugin in self._additive
            status = room if adds_up else ask_filter(plugin, state, pod, node)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def _only_adds_up(self, state: CycleState, pod: Pod) -> bool:
        """Whether filters depend on the pods of a node by their amounts only."""
        return not self.check_all and self._only_rule(state, pod) is not None

    def _crowded(self, node: NodeInfo, rule: FitRule, rivals: Sequence[Pod]) -> Status:
        """The status of the node by amounts alone, with the nominated pods counted."""
        more = {POD_COUNT: len(rivals)}
        for rival in rivals:
            for resource, amount in rival.usage.items():
                if resource != POD_COUNT:
                    more[resource] = more.get(resource, 0) + amount
        return fit_status(rule, shortage_at(node.table, node.row, rule, more))

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
        """Judge a node with its nominated pods on it.

        If filters depend on these by their amounts only, only the amounts are judged.
        """
        demands = None if self.check_all else self._only_rule(state, pod)
        if demands is not None:
            return self._crowded(node, demands, rivals)
        beside = self.beside_room(state, pod)
        if beside is not None and not self.reads_any(beside[1], state, pod, rivals):
            room = self._crowded(node, beside[0], rivals)
            return self.filter_with_room(state, pod, node, room)
        state, what_if = state.clone(), WhatIf(node.table, node.row)
        for rival in rivals:
            self.add_pod(state, pod, rival, what_if)
        return self.filter_node(state, pod, what_if.node)

    def first_of(self, crowded: Status, plain: Status) -> Status:
        """The status of a node that is `crowded` with its nominated pods and `plain` without them.

        The refusal of the earlier plugin counts.
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
        """Put `added` on the node and call the PreFilter plugins."""
        what_if.add_pod(added)
        self.tell_added(state, pod, added, what_if)

    def tell_added(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Call the PreFilter plugins for a pod that was put on the node."""
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                self._tell(plugin, "AddPod", plugin.add_pod, state, pod, added, what_if)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and call the PreFilter plugins."""
        what_if.remove_pod(removed)
        self.tell_removed(state, pod, removed, what_if)

    def tell_removed(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Call the PreFilter plugins for a pod that was taken off the node."""
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
            status = check_status(method(state, pod, other, what_if.node))
        except Exception as error:  # a plugin may raise anything
            raise failed(doing, plugin, error, method.__name__) from error
        if not status.is_success:
            raise failed(doing, plugin, status, method.__name__)


def _rule_of(plugin: FilterPlugin, pod: Pod) -> FitRule | None:
    """The fit rule of a plugin, with its name."""
    rule = ask_hook(plugin, plugin.amount_rules, pod).fit
    if rule is None or rule.plugin == plugin.name:
        return rule
    return rule._replace(plugin=plugin.name)
