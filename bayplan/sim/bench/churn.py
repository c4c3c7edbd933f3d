"""Churn: add and delete objects between the rounds of the scheduler.

Rounds replace time, so that a workload is deterministic: a round counts as a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from ...api.pod import Pod
from ...cluster.objects import ClusterObject
from .driver import Driver
from .measurement import Measurement
from .op_objects import Maker
from .ops import Churn


class Churning:
    """Add, or delete, an object of each template after every so many rounds."""

    def __init__(
        self,
        driver: Driver,
        op: Churn,
        makers: Sequence[Maker],
        measurement: Callable[[], Measurement | None],
    ) -> None:
        self._driver = driver
        self._makers = makers
        self._measurement = measurement
        self._every = op.interval_pods or max(op.interval_milliseconds, 1)
        self._limit = op.number
        self._recreates = op.mode == "recreate"
        self._rounds = 0
        self._ticks = 0
        self._there: dict[tuple[int, int], ClusterObject] = {}

    def step(self) -> None:
        """Handle the end of a round."""
        self._rounds += 1
        if self._rounds % self._every == 0:
            self._tick()
            self._ticks += 1

    def _tick(self) -> None:
        if not self._recreates:
            if not self._limit or self._ticks < self._limit:
                for obj in self._make():
                    self._driver.add(obj)
            return
        place = self._ticks % self._limit
        if (0, place) in self._there:
            for i in range(len(self._makers)):
                self._driver.delete(self._there.pop((i, place)))
            return
        for i, obj in enumerate(self._make()):
            self._there[i, place] = self._driver.add_passing(obj)

    def _make(self) -> list[ClusterObject]:
        """Make one object of each template, without advancing the clock."""
        measurement = self._measurement()
        with nullcontext() if measurement is None else measurement.left_out():
            return [obj for maker in self._makers for obj in maker.make(self._ticks)]


class Deleting:
    """Delete one more pod after every so many rounds, and whenever no pod is ready."""

    def __init__(self, driver: Driver, pods: Iterable[Pod], every: int) -> None:
        self._driver = driver
        self._pods = iter(pods)
        self._every = every
        self._rounds = 0

    def step(self) -> None:
        """Handle the end of a round."""
        self._rounds += 1
        if self._rounds % self._every == 0:
            self.delete_one()

    def delete_one(self) -> bool:
        """Delete the next pod; False when there is none."""
        for pod in self._pods:
            if self._driver.cluster.get("Pod", pod.namespace, pod.name):
                self._driver.delete(pod)
                return True
        return False
