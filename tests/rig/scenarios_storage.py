"""Scenarios with storage: a scheduler that can be killed, on a cluster with faults in volume controller and API.

For tests of volumes and claims when something fails on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.volume_controller import VolumeController
from bayplan.runtime.executor import InlineExecutor
from bayplan.scheduler import Attempt, FirstByName, Scheduler, build_scheduler
from tests.rig.objects import stored

from .scenarios import make_config, places_of

Hook = Callable[[Any], None]


class HinderedApi:
    """The cluster as the scheduler reaches it: writes of volumes and claims can be delayed or fail."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.delay_s = 0.0
        self.before_write: list[Hook] = []
        """Each is called once, before one write; the write continues unless it raises."""
        self.writes: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def update(self, obj: Any) -> Any:
        """Write `obj`, delayed or failing as configured."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.before_write:
            self.before_write.pop(0)(obj)
        self.writes.append(obj)
        return self._cluster.update(obj)


class Ear:
    """Forwards cluster events to a scheduler until it is killed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler: Scheduler | None = scheduler

    def on_add(self, obj: Any) -> None:
        if self.scheduler is not None:
            self.scheduler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        if self.scheduler is not None:
            self.scheduler.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        if self.scheduler is not None:
            self.scheduler.on_delete(obj)


class StorageScenario:
    """A cluster with storage, and a scheduler that can be killed and restarted; time is virtual."""

    def __init__(self, *objects: Any, bind_timeout_s: int = 600) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = MemoryCluster(self.clock, self.timers)
        self.volumes = VolumeController(self.cluster, timers=self.timers)
        self.cluster.watch(self.volumes)
        self.api = HinderedApi(self.cluster)
        self.messages: list[str] = []
        """The message of each finished attempt; empty for a bound pod."""
        self._timeout_s = bind_timeout_s
        self.scheduler: Scheduler | None = None
        self.add(*objects)
        self.start()

    def start(self) -> None:
        """Start a fresh scheduler on the cluster."""
        args = {"bindTimeoutSeconds": self._timeout_s}
        profile = {"pluginConfig": [{"name": "VolumeBinding", "args": args}]}
        timers = Timers(self.clock)
        self._executor = InlineExecutor(self.clock, timers)
        self.scheduler = build_scheduler(
            make_config(profile),
            self.api,
            clock=self.clock,
            timers=timers,
            executor=self._executor,
            ties=FirstByName(),
            ended=self._ended,
        )
        self._ear = Ear(self.scheduler)
        self.cluster.watch(self._ear)

    def stop(self) -> None:
        """Kill the scheduler."""
        self.scheduler = self._ear.scheduler = None
        self._executor.close()

    def _ended(self, attempt: Attempt) -> None:
        self.messages.append(attempt.message)

    # Events

    def add(self, *objects: Any) -> None:
        """Add objects to the cluster."""
        for obj in objects:
            self.cluster.add(obj)
        self.volumes.run()

    def advance(self, seconds: float) -> None:
        """Advance the clock; at each moment the cluster runs before the scheduler."""
        until = self.clock.monotonic() + seconds
        self._work()
        while (due := self._next()) is not None and due <= until:
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            self._work()
        self.clock.advance(until - self.clock.monotonic())

    def _next(self) -> float | None:
        times = [self.timers.next()]
        if self.scheduler is not None:
            times.append(self.scheduler.next_timer())
        return min((time for time in times if time is not None), default=None)

    def _work(self) -> None:
        self.timers.fire_due()
        self.volumes.run()
        if self.scheduler is not None:
            self.scheduler.run_timers()
            self.volumes.run()
            while self.scheduler.schedule_one() is not None:
                self.volumes.run()

    # State

    def pod(self, name: str = "pod") -> Pod:
        """The stored pod."""
        return stored(self.cluster, Pod, name)

    def claim(self, name: str = "claim") -> PersistentVolumeClaim:
        """The stored claim."""
        found = self.cluster.get("PersistentVolumeClaim", "default", name)
        assert isinstance(found, PersistentVolumeClaim)
        return found

    def volume(self, name: str) -> PersistentVolume:
        """The stored volume."""
        found = self.cluster.get("PersistentVolume", "", name)
        assert isinstance(found, PersistentVolume)
        return found

    def place(self, name: str = "pod") -> list[str]:
        """The scheduler's place of the pod."""
        assert self.scheduler is not None
        return places_of(self.scheduler, self.pod(name))

    def claims(self) -> Iterable[PersistentVolumeClaim]:
        """All claims."""
        found: Iterable[PersistentVolumeClaim] = self.cluster.list("PersistentVolumeClaim")
        return found

    def check_pairs(self) -> None:
        """Check that no volume has two claims, and no claim two volumes."""
        taken: dict[str, str] = {}
        for claim in self.claims():
            name = claim.spec.volume_name
            assert not name or taken.setdefault(name, claim.name) == claim.name
        owners: dict[tuple[str, str], str] = {}
        for volume in self.cluster.list("PersistentVolume"):
            kept_for = volume.spec.claim_ref
            if kept_for is not None:
                key = kept_for.namespace, kept_for.name
                assert owners.setdefault(key, volume.name) == volume.name
