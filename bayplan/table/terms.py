"""TermCounts: how many pods of each node match a (namespaces, selector) term, kept up to date pod by pod.

Topology spread and inter-pod affinity need the number of similar pods per zone. Pods with equal namespace and labels
are one *label class*; a term is matched against each class once, and a pod that comes or goes only touches the counts
of the terms its class matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from ..api.node import HOSTNAME
from ..api.pod import Pod, PodClass
from ..api.selectors import LabelSelector
from .columns import Column, Ints, RowValues, Size
from .labels import ABSENT, LabelColumn, LabelColumns

MAX_CELLS = 32_000_000
"""Limit on the counts (terms times rows); the least recently used terms are dropped first."""


class PodTerm:
    """Which pods count: in one of `namespaces` (None means in any), labels matching `selector`.

    `terminating` is true if pods that are being deleted count, too.
    """

    __slots__ = ("_hash", "namespaces", "selector", "terminating")

    def __init__(
        self,
        namespaces: frozenset[str] | None,
        selector: LabelSelector,
        terminating: bool = True,
    ) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.terminating = terminating
        self._hash = hash((namespaces, selector, terminating))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PodTerm)
            and self._hash == other._hash
            and self.namespaces == other.namespaces
            and self.selector == other.selector
            and self.terminating == other.terminating
        )

    def matches(self, pod: Pod) -> bool:
        """Whether `pod` counts."""
        return (self.terminating or not pod.is_terminating) and self.selects(pod)

    def selects(self, pod: Pod) -> bool:
        """Whether `pod` counts as long as it is not being deleted."""
        is_within = self.namespaces is None or pod.namespace in self.namespaces
        return is_within and self.selector.matches(pod.labels)


FindPods: TypeAlias = Callable[[], Iterable[Mapping[int, int]]]
"""Gives the number of pods at each row, in parts."""

NO_POD = PodTerm(frozenset(), LabelSelector())
"""The term of a missing selector: no pod counts."""


class DomainCounts:
    """A count per row and, for the topology keys in use, per domain.

    With `find`, which gives the pods by row, there is no column until it is read: most terms need their domains only.
    """

    __slots__ = ("_column", "_domains", "_find", "_size", "total")

    def __init__(self, size: Size, find: FindPods | None = None) -> None:
        self._size = size
        self._find = find
        self._column = Column(size) if find is None else None
        self._domains: dict[str, tuple[LabelColumn, Ints, memoryview]] = {}
        """By topology key: its column, and counts of the values that it had, as an array and cell by cell."""
        self.total = 0

    @property
    def column(self) -> Column:
        """Holds `per_row`."""
        if self._column is None:
            self._column = Column(self._size)
            np.add.at(self._column.data, *self._pods())
        return self._column

    @property
    def per_row(self) -> Ints:
        """int64 per row."""
        return self.column.view

    def add(self, row: int, change: int) -> None:
        """Add `change` to the count at `row` (writer only)."""
        if self._column is not None:
            self._column.cells[row] += change
        self.total += change
        for label, _, cells in self._domains.values():
            code = label.column.cells[row]
            if ABSENT < code < len(cells) - 1:  # values that the label got later have no cell
                cells[code] += change

    def add_rows(self, rows: Ints, changes: Ints) -> None:
        """Add `changes` to the counts at `rows`, without repeated rows (writer only)."""
        if self._column is not None:
            self._column.data[rows] += changes
        self.total += int(changes.sum())
        for label, counts, _ in self._domains.values():
            codes = label.column.data[rows]
            known = (codes > ABSENT) & (codes < len(counts) - 1)
            np.add.at(counts, codes[known], changes[known])

    def relabel(self, row: int, label: LabelColumn, old: int) -> None:
        """Move the pods at `row` to another domain: the code of `label` was `old` (writer only)."""
        known = self._domains.get(label.key)
        if known is not None:
            cells, last, pods = known[2], len(known[1]) - 1, self.column.cells[row]
            for code, change in ((old, -pods), (label.column.cells[row], pods)):
                if ABSENT < code < last:
                    cells[code] += change

    def per_domain(self, label: LabelColumn) -> Ints:
        """int64 per domain of `label` (by code, one slot more for ABSENT, always 0). Do not write to it.

        The array is the same, and follows the pods, until the label has a new value.
        """
        known = self._domains.get(label.key)
        if known is not None and len(known[1]) == label.slots:
            return known[1]
        counts = _sum_at(label, *self._pods())
        self._domains[label.key] = (label, counts, memoryview(counts))  # type: ignore[arg-type]  # an array is a buffer
        return counts

    def _pods(self) -> tuple[Ints, Ints]:
        """Rows, and the number of pods to add for each; a row may occur several times."""
        if self._find is None:
            rows = np.flatnonzero(self.per_row)  # few in most cases
            return rows, self.per_row[rows]
        there = [np.array([[*found], [*found.values()]], np.int64) for found in self._find()]
        rows, pods = np.concatenate(there, axis=1) if there else np.zeros((2, 0), np.int64)
        return rows, pods


def marks_of_domains(label: LabelColumn, counts: DomainCounts, nodes: int) -> tuple[RowValues, ...]:
    """Columns that distinguish rows whose domains of `label` differ in `counts`; the cluster has that many nodes.

    Usually the column of domains. If every node is a domain of its own, the column of counts; also for host names that
    some nodes lack, together with a column that says which nodes have one.
    """
    if label.is_unique and label.labelled == nodes:
        return (counts.column,)
    if label.is_unique and label.key == HOSTNAME:
        return counts.column, label.presence
    return (label.column,)


def _sum_at(label: LabelColumn, rows: Ints, pods: Ints) -> Ints:
    """int64 per domain: the sum of `pods` that are at `rows`."""
    codes = label.codes[rows]
    known = codes != ABSENT
    # Counts stay far below 2**53, so summing them as float64 is exact.
    sums = np.bincount(codes[known], weights=pods[known], minlength=label.slots)
    return sums.astype(np.int64)


class LabelClass:
    """Pods that no selector can distinguish: one namespace, equal labels."""

    __slots__ = ("aliases", "counts", "leaving", "live", "live_counts", "sample")

    def __init__(self, sample: Pod) -> None:
        self.sample = sample
        self.aliases: list[PodClass] = []
        self.live: dict[int, int] = {}
        """Number of matching pods that are not being deleted, by row."""
        self.leaving: dict[int, int] = {}
        """Number of matching pods that are being deleted, by row."""
        self.counts: list[DomainCounts] = []
        self.live_counts: list[DomainCounts] = []
        """Those of terms for which pods that are being deleted do not count."""

    def beside(self, term: PodTerm) -> list[DomainCounts]:
        """The list for the counts of a term that selects these pods."""
        return self.counts if term.terminating else self.live_counts


class TermCounts:
    """The counts of every term in use."""

    def __init__(self, size: Size, labels: LabelColumns) -> None:
        self._size = size
        self._labels = labels
        self._classes: dict[tuple[str, frozenset[tuple[str, str]]], LabelClass] = {}
        self._by_alias: dict[PodClass, LabelClass] = {}
        self._by_label: dict[tuple[str, str], set[LabelClass]] = {}
        self._terms: dict[PodTerm, DomainCounts] = {}  # in order of last use
        self._terms_by_label: dict[tuple[str, str] | None, dict[PodTerm, DomainCounts]] = {}
        """By a label that their selectors require; None for terms that require none."""
        self.dropped = 0
        """Number of dropped terms: their counts are no longer up to date."""

    def count(self, term: PodTerm) -> DomainCounts:
        """The counts of `term`; those of a new term are made from the present pods."""
        counts = self._terms.pop(term, None)
        if counts is None:
            counts = DomainCounts(self._size, partial(self._pods_of, term))
            for item in _required_labels(term.selector):
                self._terms_by_label.setdefault(item, {})[term] = counts
            for label_class in self._selected(term):
                label_class.beside(term).append(counts)
            counts.total = sum(sum(rows.values()) for rows in self._pods_of(term))
            self._make_room()
        self._terms[term] = counts
        return counts

    def _pods_of(self, term: PodTerm) -> Iterator[Mapping[int, int]]:
        """The number of pods that `term` counts at each row, in parts."""
        for label_class in self._selected(term):
            yield label_class.live
            if term.terminating:
                yield label_class.leaving

    def counts_of(self, pods: Iterable[Pod]) -> set[DomainCounts]:
        """The counts of the terms that match some of `pods`, which are on nodes."""
        found: set[DomainCounts] = set()
        for pod in pods:
            label_class = self._class_of(pod)
            found.update(label_class.counts, label_class.live_counts)
        return found

    def add_pod(self, row: int, pod: Pod, change: int) -> None:
        """Count a pod that was added to `row` (`change` 1) or removed (-1) (writer only)."""
        label_class = self._class_of(pod)
        if pod.deletion_timestamp is None:
            _add(label_class.live, row, change)
            for counts in label_class.live_counts:
                counts.add(row, change)
        else:
            _add(label_class.leaving, row, change)
        for counts in label_class.counts:
            counts.add(row, change)
        if not label_class.live and not label_class.leaving:
            self._drop_class(pod)

    def add_pods(self, rows: Mapping[int, int], pod: Pod) -> None:
        """Count added pods like `pod`, with a number for each of `rows` (writer only)."""
        label_class = self._class_of(pod)
        is_live = pod.deletion_timestamp is None
        there = label_class.live if is_live else label_class.leaving
        if there:
            for row, count in rows.items():
                there[row] = there.get(row, 0) + count
        else:
            there.update(rows)
        counted = [*label_class.counts, *(label_class.live_counts if is_live else ())]
        if counted:
            at = np.fromiter(rows.keys(), dtype=np.int64, count=len(rows))
            changes = np.fromiter(rows.values(), dtype=np.int64, count=len(rows))
            for counts in counted:
                counts.add_rows(at, changes)

    def pod_leaves(self, row: int, pod: Pod) -> None:
        """Record that a pod at `row` is being deleted (writer only)."""
        label_class = self._class_of(pod)
        _add(label_class.live, row, -1)
        _add(label_class.leaving, row, 1)
        for counts in label_class.live_counts:
            counts.add(row, -1)

    def _class_of(self, pod: Pod) -> LabelClass:
        known = self._by_alias.get(pod.pod_class)
        return self._make_class(pod) if known is None else known

    def _make_class(self, pod: Pod) -> LabelClass:
        key = (pod.namespace, frozenset(pod.labels.items()))
        label_class = self._classes.get(key)
        if label_class is None:
            label_class = self._classes[key] = LabelClass(pod)
            for item in key[1]:
                self._by_label.setdefault(item, set()).add(label_class)
            for required in (None, *key[1]):
                for term, counts in self._terms_by_label.get(required, {}).items():
                    if term.selects(pod):
                        label_class.beside(term).append(counts)
        label_class.aliases.append(pod.pod_class)
        self._by_alias[pod.pod_class] = label_class
        return label_class

    def _drop_class(self, pod: Pod) -> None:
        label_class = self._classes.pop((pod.namespace, frozenset(pod.labels.items())))
        for alias in label_class.aliases:
            del self._by_alias[alias]
        for item in pod.labels.items():
            members = self._by_label[item]
            members.discard(label_class)
            if not members:
                del self._by_label[item]

    def _selected(self, term: PodTerm) -> Iterator[LabelClass]:
        """The classes that `term` selects."""
        return (each for each in self._candidates(term.selector) if term.selects(each.sample))

    def _candidates(self, selector: LabelSelector) -> Iterable[LabelClass]:
        """Classes that may match: those with a label that the selector requires, or all."""
        found: set[LabelClass] = set()
        for item in _required_labels(selector):
            if item is None:
                return self._classes.values()
            found |= self._by_label.get(item, set())
        return found

    def _make_room(self) -> None:
        while len(self._terms) > 1 and len(self._terms) * self._size.capacity > MAX_CELLS:
            term = next(iter(self._terms))
            dropped = self._terms.pop(term)
            for item in _required_labels(term.selector):
                terms = self._terms_by_label[item]
                del terms[term]
                if not terms:
                    del self._terms_by_label[item]
            self.dropped += 1
            for label_class in self._classes.values():
                beside = label_class.beside(term)
                if dropped in beside:
                    beside.remove(dropped)


def _add(rows: dict[int, int], row: int, change: int) -> None:
    """Count pods at a row; rows without pods have no entry."""
    here = rows.get(row, 0) + change
    if here:
        rows[row] = here
    else:
        del rows[row]


def _required_labels(selector: LabelSelector) -> Iterable[tuple[str, str] | None]:
    """Labels of which a matching pod has at least one; None if there are no such labels."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return {(requirement.key, value) for value in requirement.values or ()}
    return (None,)
