"""Object index: the objects of a cluster by kind, namespace and name, and who is told of changes.

The read side of a cluster: what the scheduler sees as its `Lister`. Whoever owns the objects puts them in and takes
them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

from ...api.meta import KubeObject
from ...api.node import Node
from ...api.pod import Pod
from ...framework import ObjectKey, ObjectLog

ClusterObject: TypeAlias = Pod | Node | KubeObject
AnyObject = TypeVar("AnyObject", bound=ClusterObject)

UNVERSIONED_KINDS = frozenset({"Pod", "Node"})


class WatchHandler(Protocol):
    """Whoever wants to know what happens in the cluster; called at once, within the change."""

    def on_add(self, obj: Any) -> None:
        """`obj` is new."""

    def on_update(self, old: Any, new: Any) -> None:
        """`new` took the place of `old`."""

    def on_delete(self, obj: Any) -> None:
        """`obj` is gone."""


class Later(Protocol):
    """Where things are put that are to be done in a while; `Timers` is one."""

    def after(self, seconds: float, action: Callable[[], None]) -> object:
        """Do `action` in `seconds`."""


class Cluster(Protocol):
    """What controllers see of a cluster, and how they change it."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""

    def was_deleted(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object of that name was there once and went."""

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object and return it as stored; ConflictError if the name is taken."""

    def update(self, obj: AnyObject) -> AnyObject:
        """Put `obj` in the place of the one with its name and return it as stored.

        NotFoundError if there is none, ConflictError if that one was changed by somebody else.
        """

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Remove the object with the kind and name of `obj`; a pod that runs goes after `grace_s` seconds."""


class ObjectIndex:
    """Objects by kind and name, in the order in which they came. Objects are immutable."""

    remembers_deaths = True
    """Whether `was_deleted` can be asked: not for a cluster that lives long, where the names would pile up."""

    def __init__(self) -> None:
        self._log = ObjectLog()
        self._objects: dict[str, dict[tuple[str, str], Any]] = {}
        self._handlers: list[WatchHandler] = []
        self._deaths: Counter[tuple[str, str, str]] = Counter()

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        """Tell `handler` of everything there is (unless not to `replay` it), then of every change.

        Pods come last and those that run before those that wait, so that whoever schedules knows
        the whole cluster when the first waiting pod arrives. Handlers are told in the order in which they came.
        """
        if replay:
            for obj in list(self._in_order()):
                handler.on_add(obj)
        self._handlers.append(handler)

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""
        objects = self._objects.get(kind, {})
        if namespace is None:
            return objects.values()
        return [obj for obj in objects.values() if obj.namespace == namespace]

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""
        return self._objects.get(kind, {}).get((namespace, name))

    @property
    def version(self) -> int:
        """Changes whenever an object other than a pod or a node does."""
        return self._log.version

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Objects other than pods and nodes that came, changed or went after `version`; None: not known any more."""
        return self._log.since(version)

    def count(self, kind: str) -> int:
        """How many objects of `kind` there are."""
        return len(self._objects.get(kind, {}))

    def kinds(self) -> Iterable[str]:
        """The kinds of the objects that are, or were, there."""
        return tuple(self._objects)

    def was_deleted(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object of that name was there once and went."""
        return self._deaths[kind, namespace, name] > 0

    def put_in(self, obj: ClusterObject) -> None:
        """There is a new object, or another state of one that was there; those who watch are told."""
        objects = self._objects.setdefault(obj.kind, {})
        old = objects.get((obj.namespace, obj.name))
        objects[obj.namespace, obj.name] = obj
        self._touch(obj)
        for handler in self._handlers:
            if old is None:
                handler.on_add(obj)
            else:
                handler.on_update(old, obj)

    def take_out(self, obj: ClusterObject) -> None:
        """An object is gone; those who watch are told."""
        del self._objects[obj.kind][obj.namespace, obj.name]
        if self.remembers_deaths:
            self._deaths[obj.kind, obj.namespace, obj.name] += 1
        self._touch(obj)
        for handler in self._handlers:
            handler.on_delete(obj)

    def _in_order(self) -> Iterator[ClusterObject]:
        for kind in self._objects:
            if kind not in UNVERSIONED_KINDS:
                yield from self.list(kind)
        yield from self.list("Node")
        yield from (pod for pod in self.list("Pod") if pod.node_name)
        yield from (pod for pod in self.list("Pod") if not pod.node_name)

    def _touch(self, obj: ClusterObject) -> None:
        if obj.kind not in UNVERSIONED_KINDS:
            self._log.mark(obj)
