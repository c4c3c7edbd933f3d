"""Object index: the objects of a cluster by kind, namespace and name, with change notification.

The read side of a cluster: the scheduler's `Lister`. The owner of the objects adds and removes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from ...api.meta import KubeObject
from ...api.node import Node
from ...api.pod import Pod
from ...errors import ConflictError, NotFoundError
from ...framework.lister import ObjectKey, ObjectLog

ClusterObject: TypeAlias = Pod | Node | KubeObject
AnyObject = TypeVar("AnyObject", bound=ClusterObject)

NOTHING: dict[tuple[str, str], Any] = {}
UNVERSIONED_KINDS = frozenset({"Pod", "Node"})


def describe(obj: ClusterObject) -> str:
    """The object as named in messages: `Pod "default/web-0"`."""
    return f'{obj.kind} "{obj.key}"'


class WatchHandler(Protocol):
    """Receives changes of the cluster, synchronously. As a base class it ignores those without a method."""

    def on_add(self, obj: Any) -> None:
        """`obj` was added."""
        return

    def on_update(self, old: Any, new: Any) -> None:
        """`new` replaced `old`."""
        return

    def on_delete(self, obj: Any) -> None:
        """`obj` was deleted."""
        return


@runtime_checkable
class TakesMany(Protocol):
    """A handler that takes the pods on nodes together, when it begins to watch."""

    def on_add_many(self, pods: Sequence[Pod]) -> None:
        """`pods`, all with a node, were added."""


class Later(Protocol):
    """Sets timers; `Timers` implements it."""

    def after(self, seconds: float, action: Callable[[], None]) -> object:
        """Run `action` in `seconds`."""


class ControllerCluster(Protocol):
    """The controllers' view of a cluster, with their operations."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-scoped kinds have the namespace ""."""

    def was_deleted(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object of that name existed and was deleted."""

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object and return it as stored; ConflictError if the name is taken."""

    def update(self, obj: AnyObject) -> AnyObject:
        """Replace the object of the same name and return it as stored.

        Raises NotFoundError if there is none, ConflictError if it was changed since `obj` was read.
        """

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Delete the object with the kind and name of `obj`; a running pod is removed after
        `grace_s` seconds."""

    def watch(self, handler: Any, replay: bool = True) -> None:
        """Call `handler` with every change."""


class ObjectIndex:
    """Objects by kind and name, in insertion order. Objects are immutable."""

    remembers_deaths = True
    """Whether `was_deleted` is supported: not in a long-lived cluster, where the names would
    accumulate."""

    def __init__(self) -> None:
        self._log = ObjectLog()
        self._objects: dict[str, dict[tuple[str, str], Any]] = {}
        self._spaces: dict[str, dict[str, dict[str, Any]]] = {}
        """Objects by kind, namespace and name, of kinds that were listed by namespace; never pods."""
        self._handlers: list[WatchHandler] = []
        self._deaths: dict[tuple[str, str, str], int] = {}

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        """Notify `handler` of all existing objects (unless `replay` is False), then of every change.

        Pods come last and running ones before pending ones, so that the scheduler has the whole
        cluster when the first pending pod arrives. Handlers are called in the order of
        registration.
        """
        if replay:
            for obj in list(self._all_but_pods()):
                handler.on_add(obj)
            running = [pod for pod in self.list("Pod") if pod.node_name]
            if isinstance(handler, TakesMany):
                handler.on_add_many(running)
            else:
                for pod in running:
                    handler.on_add(pod)
            for pod in [pod for pod in self.list("Pod") if not pod.node_name]:
                handler.on_add(pod)
        self._handlers.append(handler)

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""
        objects = self._objects.get(kind, {})
        if namespace is None:
            return objects.values()
        if kind in UNVERSIONED_KINDS:
            return [obj for obj in objects.values() if obj.namespace == namespace]
        spaces = self._spaces.get(kind)
        if spaces is None:
            spaces = self._spaces[kind] = {}
            for (space, name), obj in objects.items():
                spaces.setdefault(space, {})[name] = obj
        return list(spaces.get(namespace, {}).values())

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-scoped kinds have the namespace ""."""
        objects = self._objects.get(kind)
        return None if objects is None else objects.get((namespace, name))

    def stored(self, obj: AnyObject) -> AnyObject:
        """The object with the kind and name of `obj`; NotFoundError if there is none, ConflictError if that has another
        uid."""
        found = self._objects.get(obj.kind, NOTHING)
        stored: AnyObject | None = found.get((obj.namespace, obj.name))
        if stored is None:
            raise NotFoundError(f"{describe(obj)} not found")
        uid = obj.uid
        if uid and uid != stored.uid:
            raise ConflictError(f"{describe(obj)} was replaced by another of the same name")
        return stored

    def unchanged(self, obj: AnyObject) -> AnyObject:
        """Like `stored`; also ConflictError if the object was changed since `obj` was read, except for pods and
        nodes.
        """
        stored = self.stored(obj)
        if obj.kind not in UNVERSIONED_KINDS:
            version = obj.resource_version
            if version and version != stored.resource_version:
                raise ConflictError(f"{describe(obj)} was changed since it was read")
        return stored

    def by_name(self, kind: str) -> dict[tuple[str, str], Any]:
        """The objects of `kind` by namespace and name, as they are now."""
        return dict(self._objects.get(kind, {}))

    @property
    def version(self) -> int:
        """Changes with every change of an object other than a pod or a node."""
        return self._log.version

    def version_of(self, *kinds: str) -> int:
        """The version of the objects of these kinds; pods and nodes have no version."""
        return self._log.version_of(kinds)

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Objects other than pods and nodes that were added, changed or deleted after `version`;
        None to end the record."""
        return self._log.since(version)

    def count(self, kind: str) -> int:
        """The number of objects of `kind`."""
        return len(self._objects.get(kind, {}))

    def kinds(self) -> Iterable[str]:
        """The kinds of current and deleted objects."""
        return tuple(self._objects)

    def objects(self) -> tuple[Any, ...]:
        """All objects, kind after kind."""
        return tuple(obj for kind in self.kinds() for obj in self.list(kind))

    def was_deleted(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object of that name existed and was deleted."""
        return (kind, namespace, name) in self._deaths

    def put_in(self, obj: ClusterObject) -> None:
        """Add or replace an object and notify the watchers."""
        kind, key = obj.kind, (obj.namespace, obj.name)
        objects = self._objects.setdefault(kind, {})
        old = objects.get(key)
        objects[key] = obj
        if kind not in UNVERSIONED_KINDS:
            self._log.mark(ObjectKey(kind, *key))
            if kind in self._spaces:
                self._spaces[kind].setdefault(key[0], {})[key[1]] = obj
        if old is None:
            for handler in self._handlers:
                handler.on_add(obj)
        else:
            for handler in self._handlers:
                handler.on_update(old, obj)

    def take_out(self, obj: ClusterObject) -> None:
        """Remove an object and notify the watchers."""
        kind, key = obj.kind, (obj.namespace, obj.name)
        del self._objects[kind][key]
        if self.remembers_deaths:
            gone = (kind, *key)
            self._deaths[gone] = self._deaths.get(gone, 0) + 1
        if kind not in UNVERSIONED_KINDS:
            self._log.mark(ObjectKey(kind, *key))
            if kind in self._spaces:
                del self._spaces[kind][key[0]][key[1]]
        for handler in self._handlers:
            handler.on_delete(obj)

    def _all_but_pods(self) -> Iterator[ClusterObject]:
        for kind in self._objects:
            if kind not in UNVERSIONED_KINDS:
                yield from self.list(kind)
        yield from self.list("Node")
