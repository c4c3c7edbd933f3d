"""Marks: the columns by which GROUPS plugins tell rows apart, per class of pods.

Stale: when a namespace, the affinity terms of pods on nodes, or the `cluster_key` of a plugin changed; when a node
changed, unless what the rules of all plugins depend on (`DomainRules.nodes_key`) is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..amounts.domain_rules import DomainRules, Limit, Score, Together, compile_rules, no_nodes
from ..api.pod import Pod
from ..framework import Plugin
from ..runtime.plugin_calls import ask_hook, ask_hooks, check_keys
from ..stamped_cache import StampedCache
from ..table import NodeTable, RowValues
from .class_plan import ClassPlan


@dataclass(eq=False)
class GroupRules:
    """The rules that are all GROUPS plugins go by for one class of pods."""

    limits: Sequence[Limit]
    scores: Sequence[tuple[Score, int]]
    """With the weights of the plugins."""
    plugins: frozenset[str]
    """The plugins whose rules they are, which need not be called."""

    @cached_property
    def judge(self) -> Any:
        """The rules in the compiled kernel."""
        return compile_rules(self.limits, self.scores)


@dataclass(slots=True, eq=False)
class Marks:
    """By what GROUPS plugins tell rows apart, for one class of pods."""

    columns: tuple[RowValues, ...] | None
    """Rows of equal values get equal answers; None if the plugins read more than columns."""
    quiet: frozenset[str]
    """The plugins that have no effect on such pods."""
    rules: GroupRules | None = None
    """None if some plugins have to be called."""
    nodes_keys: Sequence[Callable[[], Hashable]] | None = None
    """Give what of the nodes they depend on; None means anything."""
    nodes_key: Hashable = None
    nodes_version: int = -1
    """That of the log of node changes, for which they are right."""

    def hold(self, table: NodeTable) -> bool:
        """Whether they are right for the nodes that there are."""
        version = table.node_changes.version
        if self.nodes_version == version:
            return True
        if self.nodes_keys is None or self.nodes_key != _keys_of(self.nodes_keys, table):
            return False
        self.nodes_version = version
        return True


def _keys_of(keys: Sequence[Callable[[], Hashable]], table: NodeTable) -> Hashable:
    # Columns have other arrays when there is no room for another row.
    return (table.size.capacity, *[key() for key in keys])


NO_MARKS = Marks((), frozenset())


class MarksOfClasses:
    """The marks for each class of pods."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._marks: StampedCache[Hashable, Marks] = StampedCache("marks", 16384)
        """By class, and by what of a pod the plugins read: pods that differ in their requests share them."""

    def get(self, plan: ClassPlan, pod: Pod, stamp: Hashable) -> Marks:
        """The marks of rows for pods of the class of `pod`; those for another `stamp` are stale."""
        table, pod_class = self._table, pod.pod_class
        known = self._marks.get(pod_class, stamp)
        if known is not None and known.hold(table):
            return known
        claims, hooks = pod.spec.claims, [(plugin, plugin.spec_key) for plugin in plan.grouped]
        keys = ask_hooks(hooks, pod_class.spec)
        is_whole = None in keys
        key: Hashable = (pod_class, claims)
        if not is_whole:
            labels = tuple(pod.labels.items())
            key = (plan.grouped, *keys, pod.namespace, labels, pod.owner_references)
        try:
            known = self._marks.get(key, stamp)
        except TypeError:
            check_keys(hooks, keys)
            raise
        if known is None or not known.hold(table):
            known = self._marks.put(key, self._ask(plan, pod))
        if not (is_whole and claims):
            self._marks.put(pod_class, known)
        return known

    def _ask(self, plan: ClassPlan, pod: Pod) -> Marks:
        columns: dict[RowValues, None] | None = {}
        quiet: list[str] = []
        ruled: dict[Plugin, DomainRules] = {}
        nodes_keys: list[Callable[[], Hashable]] | None = []
        for plugin in plan.grouped:
            answer = ask_hook(plugin, plugin.row_groups, pod, self._table)
            if not isinstance(answer, DomainRules) or answer.nodes_key is None:
                nodes_keys = None
            elif nodes_keys is not None and answer.nodes_key is not no_nodes:
                nodes_keys.append(answer.nodes_key)
            if isinstance(answer, DomainRules):
                if answer.columns:
                    ruled[plugin] = answer
                answer = answer.columns
            if answer is None:
                columns = None
            elif not answer:
                quiet.append(plugin.name)
            elif columns is not None:
                columns.update(dict.fromkeys(answer))
        rules = None
        if columns and len(ruled) + len(quiet) == len(plan.grouped):
            rules = _rules(plan, ruled)
        return Marks(
            None if columns is None else tuple(columns),
            frozenset(quiet),
            rules,
            nodes_keys,
            None if nodes_keys is None else _keys_of(nodes_keys, self._table),
            self._table.node_changes.version,
        )


def _rules(plan: ClassPlan, ruled: dict[Plugin, DomainRules]) -> GroupRules | None:
    """The rules at the points where the plugins take part; None when the kernel has no place for them."""
    filters = {placed.plugin.name for placed in plan.live_filters}
    pre_scores = {plugin.name for plugin in plan.live_pre_scores}
    weights = {plugin.name: weight for plugin, weight in plan.live_scores}
    limits: list[Limit] = []
    scores: list[tuple[Score, int]] = []
    for plugin, rules in ruled.items():
        if plugin.name in filters:
            if plugin.name not in plan.asked_names:
                return None  # without its PreFilter, Filter fails
            limits += rules.limits
        if plugin.name in weights and rules.score is not None:
            if plugin.name not in pre_scores:
                return None
            scores.append((rules.score, weights[plugin.name]))
    single = [type(limit) for limit in limits if isinstance(limit, Together)]
    kinds = [*single, *(type(score) for score, _ in scores)]
    if len(kinds) != len(set(kinds)):
        return None
    return GroupRules(limits, scores, frozenset(plugin.name for plugin in ruled))
