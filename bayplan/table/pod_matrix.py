"""PodMatrix: the pods of every row side by side, the most important first, as arrays.

For questions about removing pods: which of them, and in which order, on many nodes at once. Made on first use, then
kept up to date row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..api.pod import Pod
from .columns import Bools, Ints
from .node_table import NodeTable

NOT_STARTED = np.iinfo(np.int64).max
EMPTY_PLACE = np.iinfo(np.int64).max
"""The priority of an empty place: higher than that of any pod, so that it is never removed."""
POD_COUNT = "pods"


class PodMatrix:
    """Arrays with one row per node and one place per pod.

    `priority` and `start_s` are [rows, places], `amounts` is [rows, places, resources] in the order of `resources`;
    every pod counts 1 for the resource `pods`. `labels` [rows, places] are positions in `label_samples`: pods that no
    selector can tell apart share one.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._versions: tuple[int, int] | None = None
        self.resources: dict[str, int] = {POD_COUNT: 0}
        self.pods: list[list[Pod]] = []
        self.priority: Ints = np.zeros((0, 0), dtype=np.int64)
        self.start_s: Ints = np.zeros((0, 0), dtype=np.int64)
        self.amounts: NDArray[np.int64] = np.zeros((0, 0, 1), dtype=np.int64)
        self.labels: Ints = np.zeros((0, 0), dtype=np.int64)
        self.label_samples: list[Pod | None] = [None]
        self._label_ids: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._in_namespace: dict[str, list[int]] = {}

    def refresh(self) -> None:
        """Follow the table."""
        changed = self._changed()
        if changed is None:
            changed = list(range(len(self._table)))
        self.pods.extend([] for _ in range(len(self._table) - len(self.pods)))
        for row in changed:
            self.pods[row] = by_importance(self._table.pods[row].values())
        self._make_room(changed)
        for row in changed:
            self._fill(row)
        self._versions = (self._table.row_changes.version, self._table.order_changes.version)

    def _changed(self) -> list[int] | None:
        if self._versions is None:
            return None
        rows = self._table.row_changes.since(self._versions[0])
        started = self._table.order_changes.since(self._versions[1])
        return None if rows is None or started is None else sorted({*rows, *started})

    def index_of(self, resource: str) -> int | None:
        """Where `resource` is in `amounts`; None when no pod has asked for it."""
        return self.resources.get(resource)

    def labels_in(self, namespace: str) -> Sequence[int]:
        """Positions in `label_samples` of pods in a namespace."""
        return self._in_namespace.get(namespace, ())

    def has_labels(self, ids: Collection[int]) -> Bools:
        """bool per row: a pod there has one of these labels, given as positions in `label_samples`."""
        wanted = np.zeros(len(self.label_samples), dtype=np.bool_)
        wanted[list(ids)] = True
        return np.asarray(wanted[self.labels].any(axis=1))

    def _make_room(self, changed: list[int]) -> None:
        """Grow the arrays to what the changed rows need."""
        for row in changed:
            for pod in self.pods[row]:
                for resource in pod.usage:
                    self.resources.setdefault(resource, len(self.resources))
        rows, places = self.priority.shape
        wanted_rows = max(rows, len(self._table))
        wanted_places = max([places, *(len(self.pods[row]) for row in changed)])
        if wanted_places > places:
            wanted_places = max(wanted_places, 2 * places)
        shape = (wanted_rows, wanted_places, len(self.resources))
        if shape == self.amounts.shape:
            return
        self.priority = _grown(self.priority, shape[:2], EMPTY_PLACE)
        self.start_s = _grown(self.start_s, shape[:2], NOT_STARTED)
        self.amounts = _grown(self.amounts, shape, 0)
        self.labels = _grown(self.labels, shape[:2], 0)

    def _fill(self, row: int) -> None:
        pods = self.pods[row]
        self.priority[row] = EMPTY_PLACE
        self.start_s[row] = NOT_STARTED
        self.amounts[row] = 0
        self.labels[row] = 0
        for place, pod in enumerate(pods):
            self.priority[row, place] = pod.priority
            self.start_s[row, place] = start_of(pod)
            self.labels[row, place] = self._label_id(pod)
            self.amounts[row, place, 0] = 1
            for resource, amount in pod.usage.items():
                self.amounts[row, place, self.resources[resource]] = amount

    def _label_id(self, pod: Pod) -> int:
        key = (pod.namespace, frozenset(pod.labels.items()))
        known = self._label_ids.get(key)
        if known is None:
            known = self._label_ids[key] = len(self.label_samples)
            self.label_samples.append(pod)
            self._in_namespace.setdefault(pod.namespace, []).append(known)
        return known


def by_importance(pods: Iterable[Pod]) -> list[Pod]:
    """The most important pod first: higher priority, then started earlier.

    Mirrors MoreImportantPod of pkg/scheduler/util/utils.go and the sort that uses it. There a missing start time is the
    current time, read for each operand of a comparison, the left one first. So of two pods that have not started the
    left operand is the more important one, and the sort reverses their order. Pods that are equal otherwise keep it.
    With more than 12 pods kube-scheduler's sort is not stable; then only pods of equal priority and start differ.
    """
    listed = list(pods)
    listed.sort(key=_importance)
    first = 0
    while first < len(listed):
        pod, last = listed[first], first + 1
        if pod.status.start_time is None:
            while last < len(listed) and _importance(listed[last]) == _importance(pod):
                last += 1
            listed[first:last] = listed[first:last][::-1]
        first = last
    return listed


def _importance(pod: Pod) -> tuple[int, int]:
    return -pod.priority, start_of(pod)


def start_of(pod: Pod) -> int:
    """When the pod started, in seconds; one that has not counts as starting last."""
    text = pod.status.start_time
    return NOT_STARTED if text is None else _seconds(text)


@lru_cache(maxsize=65_536)
def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _grown(values: NDArray[np.int64], shape: tuple[int, ...], fill: int) -> NDArray[np.int64]:
    grown = np.full(shape, fill, dtype=np.int64)
    grown[tuple(slice(size) for size in values.shape)] = values
    return grown
