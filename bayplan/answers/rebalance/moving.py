"""Moving: pods are tried elsewhere on a stage, as if they were deleted and scheduled anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from ...api.pod import Pod
from ...table import Ints, NodeTable
from ..budgets import Budgets
from ..judging import favourites, judge
from ..owners import is_bare, is_daemon, is_static, is_there, successor_of
from ..stage import Stage

CRITICAL = 2_000_000_000
"""Pods of this priority are the cluster's own."""
WHY = "rebalance"


class Mover:
    """Moves pods on a stage, keeps to the budgets and remembers who was moved: nobody is moved twice."""

    def __init__(self, stage: Stage, by_eviction: bool = False) -> None:
        self.stage = stage
        self._by_eviction = by_eviction
        """A pod lands only where the scheduler is sure to put it."""
        self.scheduler = stage.simulation.scheduler
        self.budgets = Budgets(stage.cluster)
        self._moved: set[str] = set()

    @property
    def table(self) -> NodeTable:
        return self.scheduler.cache.table

    def is_movable(self, pod: Pod) -> bool:
        """Whether the pod may be evicted: somebody makes another, it is nobody's daemon, and its budgets allow it."""
        return (
            bool(pod.node_name)
            and is_there(pod)
            and not (is_bare(pod) or is_daemon(pod) or is_static(pod))
            and pod.priority < CRITICAL
            and not pod.spec.resource_claims
            and pod.scheduler_name in self.scheduler.profiles
            and pod.key not in self._moved
            and self.budgets.allow(pod)
        )

    def movable_pods(self) -> list[Pod]:
        """The pods that may be moved, in the order of their nodes."""
        return [pod for pod in self.pods() if self.is_movable(pod)]

    def pods(self) -> Iterator[Pod]:
        """The pods on live nodes."""
        table = self.table
        for row in table.numbers(table.live_rows).tolist():
            yield from self.pods_at(row)

    def pods_at(self, row: int) -> list[Pod]:
        """The pods on the node of a row, by name."""
        return sorted(self.table.pods[row].values(), key=lambda pod: pod.key)

    @contextmanager
    def lifted(self, pod: Pod) -> Iterator[Pod]:
        """Within, the pod is off its node and one like it waits; afterwards it is back, unless it was put elsewhere."""
        waiting = self.stage.exchange(self._stored(pod), successor_of(pod), WHY)
        try:
            yield waiting
        finally:
            if not self._stored(pod).node_name:
                self.stage.cluster.bind(waiting, pod.node_name)

    def landing_rows(self, waiting: Pod, source: int) -> Ints:
        """The rows of the nodes, other than the source, that take the pod, or the one that it is sure to come to."""
        if self._by_eviction:
            best = self.favourites(waiting)
            rows = np.array(sorted(best) if len(best) == 1 else [], dtype=np.int64)
        else:
            rows = self.table.numbers(judge(self.scheduler, waiting).rows)
        others: Ints = rows[rows != source]
        return others

    def favourites(self, waiting: Pod) -> set[int]:
        """The rows that the scheduler would choose from."""
        return favourites(self.scheduler, waiting)

    def choice(self, waiting: Pod, row: int) -> str:
        """Where the scheduler would put the pod; `row`, if that is among the best."""
        best = self.favourites(waiting)
        chosen = row if row in best else min(best, default=row)
        return self.table.names[chosen]

    def put(self, waiting: Pod, row: int) -> None:
        """Put the pod on the node of a row, for good."""
        self.stage.cluster.bind(waiting, self.table.names[row])
        self._moved.add(waiting.key)
        self.budgets.take(waiting)

    def put_back(self, moves: Iterable[tuple[Pod, str]]) -> None:
        """Undo moves that were for good after all: each pod goes back to the node it came from."""
        for pod, source in moves:
            waiting = self.stage.exchange(self._stored(pod), successor_of(pod), WHY)
            self.stage.cluster.bind(waiting, source)
            self._moved.discard(pod.key)
            self.budgets.give_back(pod)

    def _stored(self, pod: Pod) -> Pod:
        stored = self.stage.cluster.get("Pod", pod.namespace, pod.name)
        assert isinstance(stored, Pod), "nobody else deletes it"
        return stored
