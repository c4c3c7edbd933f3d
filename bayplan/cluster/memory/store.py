"""Store: the objects of a cluster by kind, namespace and name, and who is told of changes.

Plays the part of the API server: gives out uids and resource versions, refuses a second object
of the same name, binds pods. The scheduler sees it as its `Lister` and its `Client`.
"""

from __future__ import annotations

from itertools import count
from typing import Any, cast
from uuid import UUID, uuid5

from msgspec.structs import replace

from ...api.meta import KubeObject
from ...api.pod import Pod, PodCondition
from ...clock import Clock
from ...errors import ConflictError, NotFoundError
from ...framework import PodEvent
from . import pod_life
from .names import make_name
from .object_index import UNVERSIONED_KINDS, AnyObject, ClusterObject, Later, ObjectIndex

NAMESPACE_OF_UIDS = UUID("6d6f6f72-696e-4700-8000-000000000000")
NOTHING: dict[tuple[str, str], Any] = {}


class MemoryCluster(ObjectIndex):
    """A cluster within the process. Objects are immutable; a change puts another in their place.

    Lists are in the order in which objects were added. With a `clock` pods start when they are bound, and their status
    says so. With `timers`, too, a pod that is deleted has its grace period; without, it goes at once.
    """

    def __init__(self, clock: Clock | None = None, timers: Later | None = None) -> None:
        assert timers is None or clock is not None, "timers go by a clock"
        super().__init__()
        self._clock = clock
        self._timers = timers
        self.evictions: list[tuple[Pod, Pod]] = []
        """Who was evicted, and for whom."""
        self.events: list[PodEvent] = []
        """What the scheduler said about pods, in order."""
        self._last_resource_version = 0

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object and return it with its uid and resource version.

        An object that has these already keeps them; one that only says how its name begins gets
        a name. Raises ConflictError if the name is taken.
        """
        if not obj.name:
            obj = self._with_name(obj)
        if self.get(obj.kind, obj.namespace, obj.name) is not None:
            raise ConflictError(f"{describe(obj)} exists already")
        changes = {} if obj.uid else {"uid": self._new_uid(obj)}
        if obj.resource_version:
            self._skip_resource_version(obj.resource_version)
        else:
            changes["resource_version"] = self._next_resource_version()
        stored = _with_meta(obj, changes)
        self.put_in(stored)
        return stored

    def update(self, obj: AnyObject) -> AnyObject:
        """Put `obj` in the place of the one with its name and return it as stored.

        Raises NotFoundError if there is none and ConflictError if that one has another uid, or, other than a pod or a
        node, another resource version: whoever wrote it knew more.
        """
        old = self._find(obj)
        if obj.kind not in UNVERSIONED_KINDS and obj.resource_version not in (
            "",
            old.resource_version,
        ):
            raise ConflictError(f"{describe(obj)} was changed by somebody else")
        changes = {"uid": old.uid, "resource_version": self._next_resource_version()}
        stored = _with_meta(obj, changes)
        self.put_in(stored)
        return stored

    def create(self, obj: AnyObject) -> AnyObject:
        """The same as `add`, under the name that a client of the API uses."""
        return self.add(obj)

    def update_status(self, obj: AnyObject) -> AnyObject:
        """Put the status of `obj` in the place of that of the one with its name; otherwise as `update`."""
        return self.update(obj)

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Remove the object with the kind and name of `obj`; raises as `update` does.

        A pod that runs goes after `grace_s` seconds, if the cluster has timers, and is terminating until then.
        """
        old = self._find(obj)
        if isinstance(old, Pod) and grace_s > 0 and self._timers is not None:
            if old.is_terminating:
                return
            if old.node_name and not old.is_finished:
                self._terminate(old, grace_s)
                return
        self.take_out(old)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Put the pod on a node.

        Raises NotFoundError if pod or node is gone, ConflictError if the pod is elsewhere already
        or on its way out.
        """
        stored = self._find(pod)
        if ("", node_name) not in self._objects.get("Node", ()):
            raise NotFoundError(f'Node "{node_name}" is not there')
        if stored.is_terminating:
            raise ConflictError(f"{describe(pod)} is being deleted")
        if stored.node_name:
            raise ConflictError(f'{describe(pod)} is on node "{stored.node_name}" already')
        status = stored.status
        if self._clock is not None:
            status = pod_life.running(stored, pod_life.timestamp(self._clock))
        bound = stored.bound(node_name, status, self._next_resource_version())
        self._objects["Pod"][pod.namespace, pod.name] = bound
        for handler in self._handlers:
            handler.on_update(stored, bound)

    def evict(self, victim: Pod, preemptor: Pod) -> None:
        """Delete `victim`, with its grace period, to make room for `preemptor`; one that is going already is fine."""
        stored = self.get("Pod", victim.namespace, victim.name)
        if stored is None or stored.is_terminating or stored.uid != victim.uid:
            return
        self.evictions.append((stored, preemptor))
        self.record_event(pod_life.preempted_event(stored, preemptor))
        if self._timers is None or not stored.spec.grace_s:
            self.take_out(stored)
        else:
            status = pod_life.disrupted(stored, preemptor)
            self._terminate(stored.with_status(status), stored.spec.grace_s)

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; nothing new is not written."""
        stored = self.get("Pod", pod.namespace, pod.name)
        if stored is None:
            return
        status, changes = stored.status, dict[str, Any]()
        if condition is not None:
            others = tuple([c for c in status.conditions or () if c.type != condition.type])
            conditions = (*others, condition)
            if conditions != status.conditions:
                changes["conditions"] = conditions
        if nominated_node_name is not None and nominated_node_name != status.nominated_node_name:
            changes["nominated_node_name"] = nominated_node_name
        if changes:
            version = self._next_resource_version()
            patched = stored.bound(stored.node_name, replace(status, **changes), version)
            self._objects["Pod"][pod.namespace, pod.name] = patched
            for handler in self._handlers:
                handler.on_update(stored, patched)

    def record_event(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)

    def clear_nomination(self, pod: Pod) -> None:
        """Take the nominated node out of the pod's status."""
        stored = self.get("Pod", pod.namespace, pod.name)
        if stored is not None and stored.nominated_node_name:
            self.update(stored.with_status(replace(stored.status, nominated_node_name="")))

    def _terminate(self, pod: Pod, grace_s: float) -> None:
        """Say that the pod is on its way out, and remove it in `grace_s` seconds."""
        assert self._timers is not None
        assert self._clock is not None
        leaves = pod_life.timestamp(self._clock, grace_s)
        leaving = self.update(pod.replace(deletion_timestamp=leaves))

        def leave() -> None:
            stored = self.get("Pod", leaving.namespace, leaving.name)
            if stored is not None and stored.uid == leaving.uid:
                self.take_out(stored)

        self._timers.after(grace_s, leave)

    def _find(self, obj: AnyObject) -> AnyObject:
        stored = self._objects.get(obj.kind, NOTHING).get((obj.namespace, obj.name))
        if stored is None:
            raise NotFoundError(f"{describe(obj)} is not there")
        if obj.uid and obj.uid != stored.uid:
            raise ConflictError(f"{describe(obj)} was replaced by another of the same name")
        return cast(AnyObject, stored)

    def _with_name(self, obj: AnyObject) -> AnyObject:
        """The object with a name that begins as it asks for."""
        prefix = getattr(getattr(obj, "metadata", obj), "generate_name", "")
        assert prefix, "an object without a name says how its name begins"
        seeds = (f"{obj.kind}/{obj.namespace}/{prefix}/{number}" for number in count())
        names = (make_name(prefix, seed) for seed in seeds)
        free = (name for name in names if self.get(obj.kind, obj.namespace, name) is None)
        return _with_meta(obj, {"name": next(free)})

    def _new_uid(self, obj: ClusterObject) -> str:
        """The uid that this name always gets; one that lived before counts its lives."""
        path = f"{obj.kind}/{obj.namespace}/{obj.name}"
        lives = self._deaths[obj.kind, obj.namespace, obj.name]
        return str(uuid5(NAMESPACE_OF_UIDS, f"{path}#{lives}" if lives else path))

    def _next_resource_version(self) -> str:
        self._last_resource_version += 1
        return str(self._last_resource_version)

    def _skip_resource_version(self, given: str) -> None:
        """Keep versions that came with the input from being given out again."""
        if given.isdecimal():
            self._last_resource_version = max(self._last_resource_version, int(given))


def describe(obj: ClusterObject) -> str:
    """The object as people name it: `Pod "default/web-0"`."""
    return f'{obj.kind} "{obj.key}"'


def _with_meta(obj: AnyObject, changes: dict[str, str]) -> AnyObject:
    """The object with some of its metadata changed."""
    if not changes:
        return obj
    if isinstance(obj, KubeObject):
        return cast(AnyObject, replace(obj, metadata=replace(obj.metadata, **changes)))
    return cast(AnyObject, obj.replace(**changes))
