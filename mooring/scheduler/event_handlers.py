"""EventHandlers: what each change in the cluster does to the cache and the queue.

Mirrors pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..api.workloads import Namespace
from ..cache import Cache
from ..queue import SchedulingQueue
from ..runtime import ProfileRuntime


class EventHandlers:
    """Receives objects that came, changed or went; other kinds than these are read through the lister."""

    def __init__(
        self, cache: Cache, queue: SchedulingQueue, profiles: Mapping[str, ProfileRuntime]
    ) -> None:
        self.cache = cache
        self.queue = queue
        self.profiles = profiles

    def on_add(self, obj: Any) -> None:
        """An object came."""
        match obj:
            case Pod():
                self._on_pod(None, obj)
            case Node():
                self.cache.set_node(obj)
            case Namespace():
                self.cache.set_namespace(obj.name, obj.labels)

    def on_update(self, old: Any, new: Any) -> None:
        """An object changed."""
        match new:
            case Pod():
                self._on_pod(old, new)
            case Node():
                self.cache.set_node(new)
            case Namespace():
                self.cache.set_namespace(new.name, new.labels)

    def on_delete(self, obj: Any) -> None:
        """An object went."""
        match obj:
            case Pod():
                self._on_pod(obj, None)
            case Node():
                self.cache.remove_node(obj.name)
            case Namespace():
                self.cache.remove_namespace(obj.name)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod moves between three places: nowhere (or finished), the queue, a node."""
        if old is not None and new is not None and old.uid != new.uid:
            self._on_pod(old, None)
            old = None
        was, now = self._place(old), self._place(new)
        if was == "queue" and old is not None:
            self._leave_queue(old, new if now == "queue" else None)
        if was == "node" and now != "node" and old is not None:
            self.cache.remove_pod(old)
        if new is None:
            return
        if now == "node" and was == "node" and old is not None:
            self.cache.update_pod(old, new)
        elif now == "node":
            self.cache.add_pod(new)
        elif now == "queue" and was != "queue":
            self.queue.add(new)

    def _leave_queue(self, old: Pod, new: Pod | None) -> None:
        if new is not None:
            if not self.cache.is_assumed(old):
                self.queue.update(old, new)
            return
        self.queue.delete(old)

    def _place(self, pod: Pod | None) -> str:
        """Where the scheduler keeps the pod: `node`, `queue`, or `` for pods that are not its business."""
        if pod is None or pod.is_finished:
            return ""
        if pod.node_name:
            return "node"
        return "queue" if pod.scheduler_name in self.profiles else ""
