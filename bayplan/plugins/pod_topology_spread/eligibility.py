"""The nodes that count for a constraint, and their domains.

A node counts when it has the topology keys and passes the inclusion policies of the constraint. That depends on node
objects and the pod's spec alone, so it is cached for these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from ...amounts.domain_rules import CountedPods
from ...api.node import Node
from ...api.pod import PodSpec
from ...api.selectors import matches_map
from ...api.taints import HARD_EFFECTS, Taint, find_untolerated, tolerated
from ...stamped_cache import StampedCache
from ...table import (
    ABSENT,
    ALL,
    Bools,
    DomainCounts,
    Ints,
    LabelColumn,
    NodeTable,
    RowValues,
    marks_of_domains,
)
from ...table.node_selection import match_required
from .constraints import Constraint

NO_DOMAIN = 2**31 - 1
"""The smallest count where there is no domain at all."""


class Eligible:
    """The rows that count for a constraint, until a node changes."""

    __slots__ = ("view",)

    def __init__(self, view: Bools) -> None:
        self.view = view
        """bool per row."""


class Domains:
    """The domains of one topology key that have an eligible node."""

    __slots__ = ("_codes", "_eligible", "_present", "_rows", "label")

    def __init__(self, label: LabelColumn, eligible: Bools, codes: Ints | None = None) -> None:
        """`eligible` is a bool per row; `codes` stand in for the label's own, when given."""
        self.label = label
        self._codes: Ints = label.codes if codes is None else codes
        labelled = label.codes != ABSENT
        eligible = eligible & (labelled if codes is None else codes != ABSENT)
        is_whole = np.array_equal(eligible, labelled)
        self._rows: Ints | None = None if is_whole else np.flatnonzero(eligible)
        self._eligible = Eligible(eligible)
        self._present: Ints | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all nodes that have the key are eligible."""
        return self._rows is None

    @property
    def present(self) -> Ints:
        """The domains, by code, ascending."""
        if self._present is None:
            codes = self._codes[self._eligible.view]
            self._present = np.flatnonzero(np.bincount(codes, minlength=self.label.slots))
        return self._present

    @property
    def number(self) -> int:
        """Number of domains."""
        return len(self.present)

    def marks(self, counts: DomainCounts, table: NodeTable) -> tuple[RowValues, ...]:
        """Columns that distinguish rows whose domains differ in the `count` of `counts`."""
        marks = marks_of_domains(self.label, counts, table.node_count)
        return marks if self._rows is None else (*marks, self._eligible)

    def counted(self, counts: DomainCounts) -> CountedPods:
        """The pods that `count` counts, for a rule."""
        among = None if self._rows is None else (self._rows, self._codes[self._rows])
        return CountedPods(self.label, counts, among)

    def count(self, counts: DomainCounts) -> Ints:
        """int64 per domain (by code): pods on its eligible nodes. Do not write to it."""
        if self._rows is None:
            return counts.per_domain(self.label)
        pods = counts.per_row.take(self._rows)
        # Counts stay far below 2**53, so summing them as float64 is exact.
        codes = self._codes[self._rows]
        sums = np.bincount(codes, weights=pods, minlength=self.label.slots)
        return sums.astype(np.int64)

    def lowest(self, counts: Ints) -> int:
        """The smallest of `counts` (by code) over the domains."""
        if self.number == 0:
            return NO_DOMAIN
        if self.number == len(self.label.values):
            return int(counts[:-1].min())
        return int(counts.take(self.present).min())


class Eligibility:
    """The domains of each constraint of a pod, and which nodes have all their topology keys."""

    __slots__ = ("domains", "has_all_keys")

    def __init__(self, domains: tuple[Domains, ...], has_all_keys: Bools | None) -> None:
        self.domains = domains
        self.has_all_keys = has_all_keys
        """bool per row; None when every node has all keys."""


class EligibilityCache:
    """Eligibility by the parts of constraints and spec that it depends on, dropped when a node object changes."""

    def __init__(self, comparison_operators: bool = False) -> None:
        self._comparison_operators = comparison_operators
        self._found: StampedCache[Hashable, Eligibility] = StampedCache("spread domains", 1024)

    def get(
        self,
        table: NodeTable,
        spec: PodSpec,
        constraints: tuple[Constraint, ...],
        require_all: bool,
    ) -> Eligibility:
        """The eligibility for some `constraints` of `spec`."""
        key = (require_all, *_dependencies(spec, constraints))
        found = self._found.get(key, (table, table.node_changes.version))
        if found is None:
            found = self._found.put(key, self._judge(table, spec, constraints, require_all))
        return found

    def includes(self, constraint: Constraint, spec: PodSpec, node: Node) -> bool:
        """Whether one node passes the inclusion policies of `constraint`."""
        if constraint.honors_affinity:
            required = spec.required_node_selector
            if not matches_map(spec.node_selector, node.labels):
                return False
            if required is not None and not required.matches(node.labels, node.name):
                return False
        if not constraint.honors_taints:
            return True
        operators = self._comparison_operators
        tolerations = spec.tolerations or ()
        return find_untolerated(node.taints, tolerations, HARD_EFFECTS, operators) is None

    def _judge(
        self,
        table: NodeTable,
        spec: PodSpec,
        constraints: tuple[Constraint, ...],
        require_all: bool,
    ) -> Eligibility:
        has_all = table.live.copy()
        for constraint in constraints:
            has_all &= table.labels.has(constraint.topology_key, ALL)
        is_complete = np.array_equal(has_all, table.live)
        domains = []
        for constraint in constraints:
            eligible = has_all if require_all else table.live
            if constraint.honors_affinity and _has_requirements(spec):
                eligible = eligible & match_required(table, spec, ALL)
            if constraint.honors_taints:
                eligible = eligible & (table.taints.count(self._repels(spec), ALL) == 0)
            label = table.labels.column(constraint.topology_key)
            codes = None if require_all else _codes_with_blanks(label, table)
            domains.append(Domains(label, eligible, codes))
        return Eligibility(tuple(domains), None if is_complete else has_all)

    def _repels(self, spec: PodSpec) -> Callable[[Taint], bool]:
        tolerations, operators = spec.tolerations or (), self._comparison_operators

        def repels(taint: Taint) -> bool:
            return taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations, operators)

        return repels


def depends_on_labels(constraint: Constraint, spec: PodSpec) -> bool:
    """Whether a node counts for the constraint by its topology keys alone."""
    return not constraint.honors_taints and not (
        constraint.honors_affinity and _has_requirements(spec)
    )


def _has_requirements(spec: PodSpec) -> bool:
    """Whether the pod restricts its nodes."""
    return bool(spec.node_selector) or spec.required_node_selector is not None


def _dependencies(
    spec: PodSpec, constraints: tuple[Constraint, ...]
) -> tuple[Hashable, Hashable, Hashable]:
    """The parts of a spec and its constraints that determine which nodes count; neither the selector nor the skew is
    one.
    """
    required: Hashable = None
    if any(constraint.honors_affinity for constraint in constraints):
        selector = spec.node_selector
        required = frozenset(selector.items()) if selector else None, spec.required_node_selector
    tolerations = None
    if any(constraint.honors_taints for constraint in constraints):
        tolerations = spec.tolerations
    policies = tuple([(c.topology_key, c.honors_affinity, c.honors_taints) for c in constraints])
    return policies, required, tolerations


def _codes_with_blanks(label: LabelColumn, table: NodeTable) -> Ints | None:
    """A node without the key counts for the domain with the empty name if the key is not required.

    None when no node has an empty label, and so that domain is not used.
    """
    blank = label.code_of("")
    if blank == ABSENT:
        return None
    return np.where(table.live & (label.codes == ABSENT), blank, label.codes)
