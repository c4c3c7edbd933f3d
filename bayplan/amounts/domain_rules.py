"""DomainRules: a plugin's computation from the numbers of pods in the domains of a node, as data.

PodTopologySpread and InterPodAffinity state their rules for a class of pods in these types. The compiled kernel applies
them to one row of each group (`_domains.pxi`); without it the plugins are called on these rows, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..table import DomainCounts, Ints, LabelColumn, RowValues
from .kernel import compiled


class CountedPods(NamedTuple):
    """Pods that are counted by the domains of a label."""

    label: LabelColumn
    counts: DomainCounts
    among: tuple[Ints, Ints] | None = None
    """The rows whose pods count, and the domain of each; None means all rows that have the label."""


class MaxSkew(NamedTuple):
    """A domain of the node has at most `allowance` more pods than the emptiest of `domains`, or than 0."""

    pods: CountedPods
    allowance: int
    domains: Ints | None = None
    """Codes; None to compare with 0."""
    needs_label: bool = False


class Together(NamedTuple):
    """The domains of the node have some of the pods, by each label.

    `may_be_first`: while there are none of them in any domain, a node that has the labels will do.
    """

    pods: tuple[CountedPods, ...]
    may_be_first: bool


class SpreadPart(NamedTuple):
    """One constraint of `Spreading`."""

    pods: CountedPods
    max_skew: int
    by_row: bool
    """The pods of the node count, not those of its domain."""
    is_per_node: bool
    """Each node is a domain of its own."""


class Spreading(NamedTuple):
    """Points for nodes in domains with few pods, normalised as PodTopologySpread does."""

    parts: tuple[SpreadPart, ...]
    checks_labels: bool
    """Some nodes lack a topology key."""
    requires_labels: bool
    """Nodes that lack one get no points."""


class Attraction(NamedTuple):
    """Points for nodes in domains with pods, each of which counts by a factor, normalised as InterPodAffinity does."""

    parts: tuple[tuple[CountedPods, int], ...]


Limit = MaxSkew | Together
Score = Spreading | Attraction


class DomainRules(NamedTuple):
    """The rules of a plugin for one class of pods. A plugin has at most one `Together` and one score.

    They hold, and the arrays in them stay, until the terms of pods on nodes, the terms that are counted or the value of
    `nodes_key` change. The values of the arrays change with the pods on nodes.
    """

    columns: Sequence[RowValues]
    """Columns that distinguish rows; see `Plugin.row_groups`."""
    limits: tuple[Limit, ...]
    score: Score | None
    nodes_key: Callable[[], Hashable] | None = None
    """Gives the value of the nodes that they depend on; None if they hold until a node changes."""


def no_nodes() -> Hashable:
    """For `nodes_key`: nothing depends on nodes."""
    return ()


NO_DOMAIN_RULES = DomainRules((), (), None, no_nodes)
"""No row differs from another, whatever nodes there are."""


def compile_rules(limits: Sequence[Limit], scores: Sequence[tuple[Score, int]]) -> Any:
    """The rules for the compiled kernel: limits of all plugins, and scores with their weights; None without it."""
    if compiled is None:
        return None
    judge = compiled.DomainJudge()
    for limit in limits:
        match limit:
            case MaxSkew(pods, allowance, domains, needs_label):
                judge.add_skew(_counts(pods), allowance, domains, needs_label)
            case Together():
                judge.add_together(list(map(_counts, limit.pods)), limit.may_be_first)
    for score, weight in scores:
        match score:
            case Spreading(parts, checks_labels, requires_labels):
                made = list(map(_spread_part, parts))
                judge.add_spreading(made, weight, checks_labels, requires_labels)
            case Attraction():
                counted = [_counts(pods) for pods, _ in score.parts]
                judge.add_attraction(counted, [factor for _, factor in score.parts], weight)
    return judge


def _spread_part(part: SpreadPart) -> Any:
    label, counts, _ = part.pods
    if part.by_row:
        pods = compiled.CompiledCounts(None, counts.per_row)
    else:
        pods = _counts(part.pods)
    blank, slots = label.code_of(""), 0 if part.is_per_node else label.slots
    return compiled.SpreadPart(pods, label.codes, slots, part.max_skew, blank, part.is_per_node)


def _counts(pods: CountedPods) -> Any:
    label, counts, among = pods
    if among is None:
        return compiled.CompiledCounts(label.codes, counts.per_domain(label))
    found = compiled.CompiledCounts(label.codes, np.zeros(label.slots, dtype=np.int64))
    found.sum_up(*among, counts.per_row)
    return found
