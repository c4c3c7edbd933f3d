"""A cluster in memory with storage objects and the volume controller."""

from typing import Any

from bayplan.api.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    with_annotation,
)
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.provisioners import Provisioning
from bayplan.cluster.memory.volume_controller import VolumeController

DRIVER = "disk.example.com"


class Storage:
    """A cluster with a volume controller and a manual clock."""

    def __init__(self, *objects: Any, **provisioning: Any) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = MemoryCluster(self.clock, self.timers)
        for obj in objects:
            self.cluster.add(obj)
        settings = Provisioning(**provisioning)
        self.controller = VolumeController(self.cluster, settings, self.timers)
        self.cluster.watch(self.controller)
        self.controller.run()

    def add(self, *objects: Any) -> None:
        for obj in objects:
            self.cluster.add(obj)
        self.controller.run()

    def select(self, node: str, name: str = "claim") -> None:
        """Simulate the scheduler's PreBind."""
        self.cluster.update(with_annotation(self.claim(name), SELECTED_NODE, node))
        self.controller.run()

    def delete(self, obj: Any) -> None:
        self.cluster.delete(obj)
        self.controller.run()

    def advance(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while (due := self.timers.next()) is not None and due <= until:
            self.clock.advance(due - self.clock.monotonic())
            self.timers.fire_due()
        self.clock.advance(until - self.clock.monotonic())

    def claim(self, name: str = "claim") -> PersistentVolumeClaim:
        found = self.cluster.get("PersistentVolumeClaim", "default", name)
        assert isinstance(found, PersistentVolumeClaim)
        return found

    def volume(self, name: str) -> PersistentVolume | None:
        found: PersistentVolume | None = self.cluster.get("PersistentVolume", "", name)
        return found

    def made(self, name: str = "claim") -> PersistentVolume:
        """The volume of a claim."""
        found = self.volume(self.claim(name).spec.volume_name)
        assert found is not None
        return found
