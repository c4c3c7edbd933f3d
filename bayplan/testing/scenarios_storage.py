"""Scenarios with storage: a scheduler that can die, on a cluster whose volume controller and API can be hindered.

For tests of what becomes of volumes and claims when something goes wrong on their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from ..api.pod import Pod
from ..api.storage import PersistentVolume, PersistentVolumeClaim
from ..clock import ManualClock, Timers
from ..cluster.memory import MemoryCluster, VolumeController
from ..runtime.executor import InlineExecutor
from ..scheduler import Attempt, FirstByName, Scheduler, build_scheduler
from .scenarios import make_config, places_of

Hook = Callable[[Any], None]


class HinderedApi:
    """The cluster as the scheduler reaches it: writes of volumes and claims can be slow, or be got in the way of."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.delay_s = 0.0
        self.before_write: list[Hook] = []
        """Each is called once, before one write; the write goes on unless it raises."""
        self.writes: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def update(self, obj: Any) -> Any:
        """Write `obj`, late or not at all when told so."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.before_write:
            self.before_write.pop(0)(obj)
        self.writes.append(obj)
        return self._cluster.update(obj)


class Ear:
    """Tells a scheduler what happens in the cluster, for as long as it lives."""

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
    """A cluster with storage, and a scheduler that can die and be born again; time is virtual."""

    def __init__(self, *objects: Any, bind_timeout_s: int = 600) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = MemoryCluster(self.clock, self.timers)
        self.volumes = VolumeController(self.cluster, timers=self.timers)
        self.cluster.watch(self.volumes)
        self.api = HinderedApi(self.cluster)
        self.messages: list[str] = []
        """What came of each attempt that has ended; empty for a pod that was bound."""
        self._timeout_s = bind_timeout_s
        self.scheduler: Scheduler | None = None
        self.add(*objects)
        self.start()

    def start(self) -> None:
        """A scheduler that knows the cluster and nothing else."""
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
        """The scheduler dies where it stands."""
        self.scheduler = self._ear.scheduler = None
        self._executor.close()

    def _ended(self, attempt: Attempt) -> None:
        self.messages.append(attempt.message)

    # What happens

    def add(self, *objects: Any) -> None:
        """Put objects into the cluster."""
        for obj in objects:
            self.cluster.add(obj)
        self.volumes.run()

    def advance(self, seconds: float) -> None:
        """Let time pass; at each moment the cluster comes before the scheduler."""
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

    # How it stands

    def pod(self, name: str = "pod") -> Pod:
        """The pod as the cluster has it."""
        found = self.cluster.get("Pod", "default", name)
        assert isinstance(found, Pod)
        return found

    def claim(self, name: str = "claim") -> PersistentVolumeClaim:
        """The claim as the cluster has it."""
        found = self.cluster.get("PersistentVolumeClaim", "default", name)
        assert isinstance(found, PersistentVolumeClaim)
        return found

    def volume(self, name: str) -> PersistentVolume:
        """The volume as the cluster has it."""
        found = self.cluster.get("PersistentVolume", "", name)
        assert isinstance(found, PersistentVolume)
        return found

    def place(self, name: str = "pod") -> list[str]:
        """Where the scheduler keeps the pod."""
        assert self.scheduler is not None
        return places_of(self.scheduler, self.pod(name))

    def claims(self) -> Iterable[PersistentVolumeClaim]:
        """All claims."""
        found: Iterable[PersistentVolumeClaim] = self.cluster.list("PersistentVolumeClaim")
        return found

    def check_pairs(self) -> None:
        """No volume has two claims, and no claim two volumes."""
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
