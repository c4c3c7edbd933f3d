"""Trial moves: try pods on other nodes of a stage, as if they were deleted and rescheduled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from ...api.pod import Pod, PodClass
from ...cluster.memory.absent_owners import is_bare, is_static, stays_with_node, successor_of
from ...cluster.memory.pod_index import is_there
from ...scheduler import Inquiry
from ...table import Ints, NodeTable
from ..budget_effects import BudgetCounts, BudgetUse
from ..stage import Stage

CRITICAL = 2_000_000_000
"""Pods of at least this priority are system-critical."""
WHY = "rebalance"


class Mover:
    """Moves pods on a stage within the budgets, each pod at most once."""

    def __init__(self, stage: Stage, by_eviction: bool = False) -> None:
        self.stage = stage
        self._by_eviction = by_eviction
        """Accept only targets that the scheduler is certain to choose."""
        self.scheduler = stage.simulation.scheduler
        self.budgets = BudgetCounts(stage.cluster)
        self._moved: set[str] = set()
        self._classes: dict[PodClass, tuple[bool, list[BudgetUse]]] = {}
        """Per class of pods: whether such pods may be evicted if their budgets allow it, and these."""

    @property
    def table(self) -> NodeTable:
        return self.scheduler.cache.table

    def is_movable(self, pod: Pod) -> bool:
        """Whether the pod may be evicted: a controller recreates it, it is no daemon, and its
        budgets allow it."""
        known = self._classes.get(pod.pod_class)
        if known is None:
            known = self._classes[pod.pod_class] = self._may_move(pod), self.budgets.uses_of(pod)
        may_move, uses = known
        return (
            may_move
            and bool(pod.node_name)
            and is_there(pod)
            and not pod.spec.resource_claims
            and not (pod.annotations and is_static(pod))
            and not (self._moved and pod.key in self._moved)
            and all(use.down < use.allowed for use in uses)
        )

    def _may_move(self, pod: Pod) -> bool:
        """Whether pods of this class may be evicted, as far as it does not depend on the single pod."""
        return (
            not (is_bare(pod) or stays_with_node(pod))
            and pod.priority < CRITICAL
            and pod.scheduler_name in self.scheduler.profiles
        )

    @cached_property
    def movable_pods(self) -> list[Pod]:
        """The pods that were movable before the first move, in node order."""
        assert not self._moved, "read before pods are moved"
        return [pod for pod in self.pods() if self.is_movable(pod)]

    def pods(self) -> Iterator[Pod]:
        """The pods on live nodes."""
        table = self.table
        for row in table.numbers(table.live_rows).tolist():
            yield from table.pods[row].values()

    @contextmanager
    def lifted(self, pod: Pod) -> Iterator[Pod]:
        """Inside the block the pod is off its node and its copy is pending; afterwards it is back,
        unless it was placed."""
        waiting = self.stage.exchange(self.stored(pod.key), successor_of(pod), WHY)
        try:
            yield waiting
        finally:
            if not self.stored(pod.key).node_name:
                self.stage.cluster.bind(waiting, pod.node_name)

    def landing_rows(self, waiting: Pod, source: int) -> Ints:
        """The rows other than the source that accept the pod, or the one the scheduler is certain to choose."""
        if self._by_eviction:
            best = self.best_rows(waiting)
            rows = np.array(sorted(best) if len(best) == 1 else [], dtype=np.int64)
        else:
            rows = self.table.numbers(Inquiry(self.scheduler, waiting).rows)
        others: Ints = rows[rows != source]
        return others

    def best_rows(self, waiting: Pod) -> set[int]:
        """The rows from which the scheduler would choose."""
        return Inquiry(self.scheduler, waiting).best_rows()

    def choice(self, waiting: Pod, row: int) -> str:
        """The scheduler's choice for the pod; `row`, if it is among the best."""
        best = self.best_rows(waiting)
        chosen = row if row in best else min(best, default=row)
        return self.table.names[chosen]

    def put(self, waiting: Pod, row: int) -> None:
        """Put the pod on the node of a row permanently."""
        self.stage.cluster.bind(waiting, self.table.names[row])
        self._moved.add(waiting.key)
        self.budgets.take(waiting)

    def put_back(self, moves: Iterable[tuple[Pod, str]]) -> None:
        """Undo permanent moves: each pod returns to its former node."""
        for pod, source in moves:
            waiting = self.stage.exchange(self.stored(pod.key), successor_of(pod), WHY)
            self.stage.cluster.bind(waiting, source)
            self._moved.discard(pod.key)
            self.budgets.give_back(pod)

    def stored(self, key: str) -> Pod:
        """The pod of this `namespace/name` as it is now."""
        stored = self.stage.cluster.get("Pod", *key.split("/", 1))
        assert isinstance(stored, Pod), "the pod still exists"
        return stored
