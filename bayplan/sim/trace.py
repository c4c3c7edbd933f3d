"""Trace: the events of a simulation as they happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..api.pod import Pod
from ..api.pod_status import DISRUPTION_TARGET
from ..api.storage import (
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from ..api.text.durations import format_duration
from ..clock import Clock
from ..cluster.memory.object_store import MemoryCluster
from .plain_part import PlainPart

FROM_THE_CLUSTER = frozenset({"created", "deleted"})
"""The scheduler's events about its pods, and the cluster's about all."""


class TraceEntry(PlainPart, msgspec.Struct, frozen=True):
    """An event of an object, `time_s` seconds after the simulation began."""

    PLAIN = "time=time_s~ what kind namespace name details"

    time_s: float
    what: str
    kind: str
    namespace: str
    name: str
    details: str = ""

    @property
    def subject(self) -> str:
        """A pod by its namespace and name, other objects with their kind as well."""
        kind = "" if self.kind == "Pod" else self.kind.lower()
        return "/".join(part for part in (kind, self.namespace, self.name) if part)


class Tracer:
    """Watches the cluster and the scheduler, and passes each event to `write`."""

    def __init__(self, clock: Clock, write: Callable[[TraceEntry], None]) -> None:
        self._clock = clock
        self._write = write

    def begin(self, cluster: MemoryCluster) -> None:
        """Write the pending pods, and from then on every change."""
        for pod in cluster.list("Pod"):
            if not pod.node_name:
                self.on_add(pod)
        cluster.watch(self, replay=False)

    def observe(self, what: str, pod: Pod, details: str) -> None:
        """Write a scheduler event."""
        if what not in FROM_THE_CLUSTER:
            self._tell(what, pod, details)

    def on_add(self, obj: Any) -> None:
        """Write an added object."""
        if isinstance(obj, Pod):
            if not obj.is_finished and not obj.is_terminating:
                self._tell("created", obj, f"on {obj.node_name}" if obj.node_name else "")
        else:
            self._tell("added", obj, _made_for(obj) if isinstance(obj, PersistentVolume) else "")

    def on_update(self, old: Any, new: Any) -> None:
        """Write the end of a pod, since the scheduler reports its other changes, and changes of storage."""
        if isinstance(new, PersistentVolumeClaim):
            self._tell_if_any(_claim_news(old, new), new)
        elif isinstance(new, PersistentVolume):
            self._tell_if_any(_volume_news(old, new), new)
        elif isinstance(new, CSIStorageCapacity):
            self._tell("changed", new, f"to {new.capacity}" if new.capacity is not None else "")
        elif not isinstance(new, Pod):
            self._tell("changed", new)
        elif new.is_finished and not old.is_finished:
            self._tell("finished", new, f"on {new.node_name}" if new.node_name else "")
        elif new.is_terminating and not old.is_terminating and not _is_preempted(new):
            self._tell("terminating", new, f"for {format_duration(new.spec.grace_s)}")

    def on_delete(self, obj: Any) -> None:
        """Write a deleted object."""
        if isinstance(obj, Pod):
            self._tell("deleted", obj, f"from {obj.node_name}" if obj.node_name else "")
        else:
            self._tell("removed", obj)

    def _tell_if_any(self, news: tuple[str, str] | None, obj: Any) -> None:
        if news is not None:
            self._tell(news[0], obj, news[1])

    def _tell(self, what: str, obj: Any, details: str = "") -> None:
        now = self._clock.monotonic()
        self._write(TraceEntry(now, what, obj.kind, obj.namespace, obj.name, details))


def _is_preempted(pod: Pod) -> bool:
    """Whether the scheduler preempted the pod, which it reports itself."""
    return pod.status.condition(DISRUPTION_TARGET) is not None


def _claim_news(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> tuple[str, str] | None:
    """The change of a claim, as a word and details; None for internal changes."""
    was, now = old.annotations.get(SELECTED_NODE), new.annotations.get(SELECTED_NODE)
    if new.is_fully_bound and not old.is_fully_bound:
        return "bound", f"to {new.spec.volume_name}"
    if new.status.phase == "Lost" and old.status.phase != "Lost":
        return "lost", f"its volume {new.spec.volume_name}"
    if now and now != was:
        return "selected", f"{now}: a volume is to be made there"
    if was and not now:
        return "failed", f"no volume was made on {was}"
    if new.is_terminating and not old.is_terminating:
        return "terminating", "while it is in use"
    return None if (old.spec, old.labels) == (new.spec, new.labels) else ("changed", "")


def _volume_news(old: PersistentVolume, new: PersistentVolume) -> tuple[str, str] | None:
    """The change of a volume; becoming available or bound is not reported."""
    if new.status.phase == "Released" and old.status.phase != "Released":
        return "released", ""
    was, now = old.spec.claim_ref, new.spec.claim_ref
    if now is not None and was is None:
        return "reserved", _made_for(new)
    if was is not None and now is None:
        return "freed", ""
    if new.is_terminating and not old.is_terminating:
        return "terminating", "while it is bound"
    same = (old.spec, old.labels) == (new.spec, new.labels)
    return None if same or now != was else ("changed", "")


def _made_for(volume: PersistentVolume) -> str:
    kept_for = volume.spec.claim_ref
    return f"for {kept_for.namespace}/{kept_for.name}" if kept_for is not None else ""
