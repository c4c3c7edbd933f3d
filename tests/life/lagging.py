"""A cluster over a network: reads and watches lag behind writes."""

from collections import deque
from collections.abc import Iterable
from typing import Any

from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.objects.object_index import UNVERSIONED_KINDS
from bayplan.framework.lister import ObjectKey


class LaggingCluster:
    """Writes go to `real`; the scheduler reads `seen`, which gets the changes when they are delivered."""

    def __init__(self) -> None:
        self.real = MemoryCluster()
        self.seen = MemoryCluster()
        self.news: deque[tuple[Any, Any]] = deque()
        self.is_lagging = False
        self.real.watch(self)

    # The watch of the real one

    def on_add(self, obj: Any) -> None:
        self._tell(None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._tell(old, new)

    def on_delete(self, obj: Any) -> None:
        self._tell(obj, None)

    def _tell(self, old: Any, new: Any) -> None:
        self.news.append((old, new))
        if not self.is_lagging:
            self.deliver()

    def deliver(self, count: int | None = None) -> None:
        """Deliver the events to the scheduler, at most so many."""
        while self.news and count != 0:
            old, new = self.news.popleft()
            obj = new if new is not None else old
            # Stored unchanged, with its version and uid.
            objects = self.seen._objects.setdefault(obj.kind, {})
            if new is None:
                del objects[obj.namespace, obj.name]
            else:
                objects[obj.namespace, obj.name] = new
            if obj.kind not in UNVERSIONED_KINDS:
                self.seen._log.mark(ObjectKey(obj.kind, obj.namespace, obj.name))
            for handler in self.seen._handlers:
                if old is None:
                    handler.on_add(new)
                elif new is None:
                    handler.on_delete(old)
                else:
                    handler.on_update(old, new)
            count = None if count is None else count - 1

    # The Lister

    @property
    def version(self) -> int:
        return self.seen.version

    def version_of(self, *kinds: str) -> int:
        return self.seen.version_of(*kinds)

    def changes_since(self, version: int) -> Any:
        return self.seen.changes_since(version)

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        return self.seen.list(kind, namespace)

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return self.seen.get(kind, namespace, name)

    def watch(self, handler: Any) -> None:
        self.seen.watch(handler)

    # The Client

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
