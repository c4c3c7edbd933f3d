"""PodMatrix: the pods of every row side by side, the most important first, as arrays.

For the choice of the pods to remove on many nodes at once. Made on first use, then kept up to date row by row.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..api.pod import Pod, PodClass
from ..api.text.go_sort import BY_INSERTION, go_sorted, ranks
from .columns import Ints
from .node_table import NodeTable

NOT_STARTED = np.iinfo(np.int64).max
EMPTY_PLACE = np.iinfo(np.int64).max
"""The priority of an empty place: higher than that of any pod, so that it is never removed."""
POD_COUNT = "pods"
ABOVE_ALL = np.iinfo(np.int64).max
"""A priority that no pod has."""
ANY_ORDER = -1
MOST_LABELS = 65_536
"""Number of kinds of pods above which unused kinds are dropped."""


class PodMatrix:
    """Arrays with one row per node and one place per pod.

    `count` is the number of pods on each row. `priority` and `start_s` are [rows, places], `amounts` is [rows, places,
    resources] in the order of `resources`; every pod counts 1 for the resource `pods`. `labels` [rows, places] are
    positions in `label_samples`: pods that no selector can tell apart share one. `pods` are the pods as they were when
    their row or their order last changed; `NodeTable.pods` has the current ones.

    A preemptor sorts only its potential victims. With more than 12 of them the order of equal pods depends on which
    pods are below its priority, so such rows are sorted again when the number of these pods differs.
    """

    def __init__(self, table: NodeTable, by_place: bool = False) -> None:
        self._table = table
        self.by_place = by_place
        """Whether pods that have not started keep their order; see `by_importance`."""
        self._versions: tuple[int, int] | None = None
        self.resources: dict[str, int] = {POD_COUNT: 0}
        self.pods: list[list[Pod]] = []
        self.count: Ints = np.zeros(0, dtype=np.int64)
        self.priority: Ints = np.zeros((0, 0), dtype=np.int64)
        self.start_s: Ints = np.zeros((0, 0), dtype=np.int64)
        self.amounts: NDArray[np.int64] = np.zeros((0, 0, 1), dtype=np.int64)
        self.labels: Ints = np.zeros((0, 0), dtype=np.int64)
        self.label_samples: list[Pod | None] = [None]
        self._label_ids: dict[PodClass, int] = {}
        self._rows = self._places = 0
        self._below: Ints = np.zeros(0, dtype=np.int64)
        """Per row: how many pods are sorted as potential victims, or ANY_ORDER where that makes no difference."""
        self._cells: tuple[memoryview, ...] = ()
        """`count`, `priority`, `start_s`, `amounts` and `labels`, one at a time: quicker than the arrays."""

    def refresh(self, priority: int = ABOVE_ALL) -> None:
        """Follow the table; pods below `priority` are potential victims."""
        changed = self._changed()
        if changed is None or len(self.label_samples) > MOST_LABELS:
            changed = list(range(len(self._table)))
            self.label_samples, self._label_ids = [None], {}
        self.pods.extend([] for _ in range(len(self._table) - len(self.pods)))
        for row in changed:
            self._sort(row, priority)
        if np.any(self._below != ANY_ORDER):
            now = self._table.priorities.below(priority)[: len(self._below)]
            for row in np.flatnonzero((self._below != ANY_ORDER) & (self._below != now)).tolist():
                self._sort(row, priority)
        self._versions = (self._table.row_changes.version, self._table.order_changes.version)

    def _sort(self, row: int, priority: int) -> None:
        """Write the pods of a row in the order for a preemptor of that priority."""
        pods = list(self._table.pods[row].values())
        below = ANY_ORDER
        if len(pods) > BY_INSERTION and len(set(map(_importance, pods))) < len(pods):
            lower = [pod for pod in pods if pod.priority < priority]
            upper = [pod for pod in pods if pod.priority >= priority]
            pods = by_importance(upper, self.by_place) + by_importance(lower, self.by_place)
            below = len(lower)
        else:
            pods = by_importance(pods, self.by_place)
        self._fill(row, pods)
        if below != ANY_ORDER or row < len(self._below):
            if row >= len(self._below):
                self._below = _grown(self._below, (len(self._table),), ANY_ORDER)
            self._below[row] = below

    def _changed(self) -> list[int] | None:
        if self._versions is None:
            return None
        rows = self._table.row_changes.since(self._versions[0])
        started = self._table.order_changes.since(self._versions[1])
        return None if rows is None or started is None else list({*rows, *started})

    def index_of(self, resource: str) -> int | None:
        """Position of `resource` in `amounts`; None if no pod requests it."""
        return self.resources.get(resource)

    def _fill(self, row: int, pods: list[Pod]) -> None:
        """Write the pods of a row; places beyond the `count` of the row are unchanged, with an empty priority."""
        self.pods[row] = pods
        usages = [pod.usage for pod in pods]
        if len(pods) > self._places or row >= self._rows or not self._has_all(usages):
            self._make_room(len(pods), usages)
        resources = self.resources
        count, priority, start_s, amounts, labels = self._cells
        for place in range(len(pods), count[row]):
            priority[row, place] = EMPTY_PLACE
        count[row] = len(pods)
        for place, pod in enumerate(pods):
            priority[row, place] = pod.priority
            start_s[row, place] = start_of(pod)
            labels[row, place] = self._label_id(pod)
            usage = usages[place]
            for resource, number in resources.items():
                amounts[row, place, number] = usage.get(resource, 0)
            amounts[row, place, 0] = 1

    def _has_all(self, usages: Iterable[Mapping[str, int]]) -> bool:
        return all(self.resources.keys() >= usage.keys() for usage in usages)

    def _make_room(self, places: int, usages: Iterable[Mapping[str, int]]) -> None:
        """Grow the arrays to the rows of the table, to so many places, and to the resources of `usages`."""
        for usage in usages:
            for resource in usage:
                self.resources.setdefault(resource, len(self.resources))
        if places > self._places:
            self._places = max(places, 2 * self._places)
        self._rows = len(self._table)
        shape = (self._rows, self._places, len(self.resources))
        self.count = _grown(self.count, shape[:1], 0)
        self.priority = _grown(self.priority, shape[:2], EMPTY_PLACE)
        self.start_s = _grown(self.start_s, shape[:2], NOT_STARTED)
        self.amounts = _grown(self.amounts, shape, 0)
        self.labels = _grown(self.labels, shape[:2], 0)
        self._cells = tuple(
            memoryview(array)  # type: ignore[arg-type]  # it has a buffer
            for array in (self.count, self.priority, self.start_s, self.amounts, self.labels)
        )

    def _label_id(self, pod: Pod) -> int:
        number = self._label_ids.get(pod.pod_class)
        if number is None:
            number = self._label_ids[pod.pod_class] = len(self.label_samples)
            self.label_samples.append(pod)
        return number


def by_importance(pods: Iterable[Pod], by_place: bool = False) -> list[Pod]:
    """The most important pod first: higher priority, then started earlier.

    With `by_place` pods that have not started keep their order, because the time is read once for each, in that order.

    Mirrors MoreImportantPod of pkg/scheduler/util/utils.go and the sort that uses it. There a missing start time is the
    current time, read for each operand of a comparison, the left one first. So the left one of two pods that have not
    started is the more important, and a sort by insertion reverses their order. Other equal pods keep their order. More
    than 12 pods are not sorted by insertion, and the order of equal pods is a result of Go's algorithm. Only the result
    of two equal readings of the clock is undetermined.
    """
    listed = list(pods)
    if len(listed) < 2:
        return listed
    keys = [_importance(pod) for pod in listed]
    if by_place:
        unstarted = [start == NOT_STARTED for _, start in keys]
        places = [place if last else 0 for place, last in enumerate(unstarted)]
        order = ranks(list(zip(keys, places, strict=True)))
        return go_sorted(listed, order, operator.lt)
    if len(listed) > BY_INSERTION and len(set(keys)) < len(keys):
        starts = (start == NOT_STARTED for _, start in keys)
        numbers = [2 * rank + last for rank, last in zip(ranks(keys), starts, strict=True)]
        return go_sorted(listed, numbers, _is_more_important)
    places = [-i if start == NOT_STARTED else i for i, (_, start) in enumerate(keys)]
    return [listed[abs(place)] for _, place in sorted(zip(keys, places, strict=True))]


def _is_more_important(one: int, other: int) -> bool:
    """Whether the pod with number `one` is more important; pods that have not started have odd numbers."""
    return one < other or (one == other and one % 2 == 1)


def _importance(pod: Pod) -> tuple[int, int]:
    return -pod.priority, start_of(pod)


def start_of(pod: Pod) -> int:
    """Time when the pod started, in seconds; a pod that has not started counts as the last."""
    text = pod.status.start_time
    return NOT_STARTED if text is None else _seconds(text)


@lru_cache(maxsize=65_536)
def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _grown(values: NDArray[np.int64], shape: tuple[int, ...], fill: int) -> NDArray[np.int64]:
    grown = np.full(shape, fill, dtype=np.int64)
    grown[tuple(slice(size) for size in values.shape)] = values
    return grown
