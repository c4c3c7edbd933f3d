"""Marks: the columns by which GROUPS plugins tell rows apart, per class of pods.

Stale: when a namespace, the affinity terms of pods on nodes, or the `cluster_key` of a plugin changed; when a node
changed, unless the facts that the rules of all plugins depend on (`DomainRules.nodes_key`) are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..amounts.domain_rules import DomainRules, Limit, Score, Together, compile_rules, no_nodes
from ..api.pod import Pod
from ..framework import Plugin
from ..runtime.plugin_calls import ask_hook, ask_hooks, check_keys
from ..stamped_cache import StampedCache
from ..table import NodeTable, RowValues
from .class_plan import ClassPlan


class GroupRules(NamedTuple):
    """The rules that replace all GROUPS plugins for one class of pods."""

    judge: Any
    """The rules in the compiled kernel."""
    may_refuse: bool
    plugins: frozenset[str]
    """The plugins that the rules replace, which need not be called."""


@dataclass(slots=True, eq=False)
class Marks:
    """The columns by which GROUPS plugins distinguish rows, for one class of pods."""

    columns: tuple[RowValues, ...] | None
    """Rows of equal values get equal answers; None if the plugins read more than columns."""
    quiet: frozenset[str]
    """The plugins that have no effect on such pods."""
    rules: GroupRules | None = None
    """None if some plugins have to be called."""
    nodes_keys: Sequence[Callable[[], Hashable]] | None = None
    """Functions that return the facts about nodes that the marks depend on; None if unknown."""
    nodes_key: Hashable = None
    nodes_version: int = -1
    """Version of the log of node changes for which the marks are valid."""

    def hold(self, table: NodeTable) -> bool:
        """Whether the marks are valid for the present nodes."""
        version = table.node_changes.version
        if self.nodes_version != version:
            if self.nodes_keys is None or self.nodes_key != _keys_of(self.nodes_keys, table):
                return False
            self.nodes_version = version
        return True


def _keys_of(keys: Sequence[Callable[[], Hashable]], table: NodeTable) -> Hashable:
    # Columns get new arrays when the table grows beyond its capacity.
    return (table.size.capacity, *[key() for key in keys])


NO_MARKS = Marks((), frozenset())


class MarksOfClasses:
    """The marks for each class of pods."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._marks: StampedCache[Hashable, Marks] = StampedCache("marks", 16384)
        """By class, and by the parts of a pod that the plugins read: pods that differ in their requests share them."""

    def get(self, plan: ClassPlan, pod: Pod, stamp: Hashable) -> Marks:
        """The marks of rows for pods of the class of `pod`; those for another `stamp` are stale."""
        table, pod_class = self._table, pod.pod_class
        known = self._marks.get(pod_class, stamp)
        if known is not None and known.hold(table):
            return known
        claims, hooks = pod.spec.claims, [(plugin, plugin.spec_key) for plugin in plan.grouped]
        keys = ask_hooks(hooks, pod_class.spec)
        is_whole, labels = None in keys, tuple(pod.labels.items())
        by_reads = (plan.grouped, *keys, pod.namespace, labels, pod.owner_references)
        key: Hashable = (pod_class, claims) if is_whole else by_reads
        try:
            known = self._marks.get(key, stamp)
        except TypeError:
            check_keys(hooks, keys)
            raise
        if known is None or not known.hold(table):
            known = self._marks.put(key, self._find(plan, pod))
        if not (is_whole and claims):
            self._marks.put(pod_class, known)
        return known

    def _find(self, plan: ClassPlan, pod: Pod) -> Marks:
        columns, is_grouped = dict[RowValues, None](), True
        quiet, ruled = list[str](), dict[Plugin, DomainRules]()
        keys: list[Callable[[], Hashable] | None] = []
        for plugin in plan.grouped:
            answer = ask_hook(plugin, plugin.row_groups, pod, self._table)
            found = answer.columns if isinstance(answer, DomainRules) else answer
            keys.append(answer.nodes_key if isinstance(answer, DomainRules) else None)
            if found and isinstance(answer, DomainRules):
                ruled[plugin] = answer
            elif found is not None and not found:
                quiet.append(plugin.name)
            is_grouped = is_grouped and found is not None
            columns.update(dict.fromkeys(found or ()))
        is_ruled = columns and len(ruled) + len(quiet) == len(plan.grouped)
        nodes_keys = [key for key in keys if key is not None and key is not no_nodes]
        return Marks(
            tuple(columns) if is_grouped else None,
            frozenset(quiet),
            _rules(plan, ruled) if is_ruled else None,
            None if None in keys else nodes_keys,
            _keys_of(nodes_keys, self._table),
            self._table.node_changes.version,
        )


def _rules(plan: ClassPlan, ruled: dict[Plugin, DomainRules]) -> GroupRules | None:
    """The rules at the points where the plugins take part; None if the kernel cannot hold them."""
    filters = {placed.plugin.name for placed in plan.filters.live}
    pre_scores = {plugin.name for plugin in plan.live_pre_scores}
    weights = {scorer.plugin.name: scorer.weight for scorer in plan.scores.live}
    limits: list[Limit] = []
    scores: list[tuple[Score, int]] = []
    for plugin, rules in ruled.items():
        if plugin.name in filters:
            if plugin.name not in plan.pre_filters:
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
    judge = compile_rules(limits, scores)
    plugins = frozenset(plugin.name for plugin in ruled)
    return None if judge is None else GroupRules(judge, bool(limits), plugins)
