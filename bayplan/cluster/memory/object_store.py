"""Object store: the objects of a cluster by kind, namespace and name, with change notification.

Acts as the API server: assigns uids and resource versions, rejects a second object of the same
name, binds pods. The scheduler uses it as its `Lister` and its `Client`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from msgspec.structs import replace

from ...api.meta import KubeObject
from ...api.pod import Pod, PodCondition, PodStatus
from ...api.pod_groups import GroupPreemptor, PodGroup
from ...clock import Clock
from ...errors import ConflictError, NotFoundError
from ...framework.handle import Client, PodEvent, preempted_event
from ..objects import pod_life
from ..objects.object_index import (
    NOTHING,
    UNVERSIONED_KINDS,
    AnyObject,
    ClusterObject,
    Later,
    ObjectIndex,
    describe,
)
from .created_names import make_free_name, make_uid

MOST_EVENTS = 1000
"""Pods that wait for days of virtual time have an event per attempt."""


class MemoryCluster(ObjectIndex, Client):
    """A cluster within the process. Objects are immutable; a change replaces them.

    Lists are in insertion order. With a `clock`, pods start when they are bound, with the status of running pods.
    With `timers`, too, a deleted pod has its grace period; without, it is removed at once.
    """

    def __init__(self, clock: Clock | None = None, timers: Later | None = None) -> None:
        assert timers is None or clock is not None, "timers need a clock"
        super().__init__()
        self._clock = clock
        self._timers = timers
        self.evictions: list[tuple[Pod, Pod | GroupPreemptor]] = []
        """The evicted pods with their preemptors."""
        self.events: deque[PodEvent] = deque(maxlen=MOST_EVENTS)
        """The scheduler's latest events about pods, in order."""
        self._last_resource_version = 0
        self.first_status: Callable[[Pod, PodStatus], PodStatus] | None = None
        """The kubelets' status of a pod that is being bound, which has it running."""

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object and return it with its uid and resource version.

        An object that has these already keeps them; pods and nodes get a resource version with
        their first change. An object with a generateName gets a name. Raises ConflictError if the
        name is taken.
        """
        if not obj.name:
            obj = self._with_name(obj)
        if self.get(obj.kind, obj.namespace, obj.name) is not None:
            raise ConflictError(f"{describe(obj)} exists already")
        changes = {} if obj.uid else {"uid": self._new_uid(obj)}
        if obj.resource_version:
            self._skip_resource_version(obj.resource_version)
        elif obj.kind not in UNVERSIONED_KINDS:
            changes["resource_version"] = self._next_resource_version()
        stored = _with_meta(obj, changes)
        self.put_in(stored)
        return stored

    def add_pods(self, pods: Iterable[Pod]) -> list[Pod]:
        """Store new pods and return them as stored: the same as `add` for each of them."""
        found, objects = list(pods), self._objects.setdefault("Pod", {})
        by_key = {(pod.namespace, pod.name): pod for pod in found}
        is_fresh = len(by_key) == len(found) and objects.keys().isdisjoint(by_key)
        is_complete = all(pod.name and pod.uid for pod in found)
        if self._handlers or not is_fresh or not is_complete:
            return [self.add(pod) for pod in found]
        for version in {pod.resource_version for pod in found if pod.resource_version}:
            self._skip_resource_version(version)
        if objects:
            objects.update(by_key)
        else:
            self._objects["Pod"] = by_key
        return found

    def update(self, obj: AnyObject) -> AnyObject:
        """Replace the object of the same name and return it as stored.

        Raises NotFoundError if there is none and ConflictError if that one has another uid, or, for
        kinds other than pods and nodes, another resource version: it was changed since `obj` was
        read.
        """
        old = self.unchanged(obj)
        changes = {"uid": old.uid, "resource_version": self._next_resource_version()}
        stored = _with_meta(obj, changes)
        self.put_in(stored)
        return stored

    create = add  # under the API client's name

    def update_status(self, obj: AnyObject) -> AnyObject:
        """Replace the status of the object with the name of `obj`; otherwise as `update`.

        The conditions of a PodGroup are merged by type, whatever else has changed since it was read; an unchanged
        status is not written.
        """
        if not isinstance(obj, PodGroup):
            return self.update(obj)
        stored = self.stored(obj)
        status = stored.status.merged(obj.status)
        return stored if status == stored.status else self.update(replace(stored, status=status))

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Delete the object with the kind and name of `obj`; raises as `update` does.

        A running pod is removed after `grace_s` seconds, if the cluster has timers, and is
        terminating until then.
        """
        old = self.stored(obj)
        if isinstance(old, Pod) and grace_s > 0 and self._timers is not None:
            if old.is_terminating:
                return
            if old.node_name and not old.is_finished:
                self._terminate(old, grace_s)
                return
        self.take_out(old)

    def forget(self, obj: ClusterObject) -> None:
        """Keep no record of a deleted object: `was_deleted` is False for it."""
        self._deaths.pop((obj.kind, obj.namespace, obj.name), None)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to a node.

        Raises NotFoundError if pod or node is gone, ConflictError if the pod has another node
        already or is terminating.
        """
        stored = self.stored(pod)
        if ("", node_name) not in self._objects.get("Node", NOTHING):
            raise NotFoundError(f'Node "{node_name}" not found')
        if stored.deletion_timestamp is not None:
            raise ConflictError(f"{describe(pod)} is being deleted")
        if stored.node_name:
            raise ConflictError(f'{describe(pod)} is on node "{stored.node_name}" already')
        status = stored.status
        if self._clock is not None:
            status = pod_life.running(stored, pod_life.timestamp(self._clock))
            if self.first_status is not None:
                status = self.first_status(stored, status)
        bound = stored.bound(node_name, status, self._next_resource_version())
        self._objects["Pod"][pod.namespace, pod.name] = bound
        for handler in self._handlers:
            handler.on_update(stored, bound)

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        """Delete `victim`, with its grace period, for `preemptor`; a terminating one is left as it
        is."""
        stored = self.get("Pod", victim.namespace, victim.name)
        if stored is None or stored.is_terminating or stored.uid != victim.uid:
            return
        self.evictions.append((stored, preemptor))
        self.record_event(preempted_event(stored, preemptor))
        if self._timers is None or not stored.spec.grace_s:
            self.take_out(stored)
        else:
            status = pod_life.disrupted(stored, preemptor)
            self._terminate(stored.with_status(status), stored.spec.grace_s)

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; an unchanged status
        is not written."""
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
        """Record the event."""
        self.events.append(event)

    def _terminate(self, pod: Pod, grace_s: float) -> None:
        """Mark the pod as terminating, and remove it in `grace_s` seconds."""
        assert self._timers is not None
        assert self._clock is not None
        leaves = pod_life.timestamp(self._clock, grace_s)
        version = self._next_resource_version()
        leaving = pod.replace(deletion_timestamp=leaves, resource_version=version)
        self.put_in(leaving)

        def leave() -> None:
            stored = self.get("Pod", leaving.namespace, leaving.name)
            if stored is not None and stored.uid == leaving.uid:
                self.take_out(stored)

        self._timers.after(grace_s, leave)

    def _with_name(self, obj: AnyObject) -> AnyObject:
        """The object with a generated name."""
        prefix = getattr(getattr(obj, "metadata", obj), "generate_name", "")
        assert prefix, "an object without a name has a generateName"

        def is_taken(name: str) -> bool:
            return self.get(obj.kind, obj.namespace, name) is not None

        name = make_free_name(obj.kind, obj.namespace, prefix, is_taken)
        return _with_meta(obj, {"name": name})

    def _new_uid(self, obj: ClusterObject) -> str:
        """The deterministic uid of this name; a recreated object counts its incarnations."""
        path = f"{obj.kind}/{obj.namespace}/{obj.name}"
        lives = self._deaths.get((obj.kind, obj.namespace, obj.name))
        return make_uid(f"{path}#{lives}" if lives else path)

    def _next_resource_version(self) -> str:
        self._last_resource_version += 1
        return str(self._last_resource_version)

    def _skip_resource_version(self, given: str) -> None:
        """Skip the resource versions of the input."""
        if given.isdecimal():
            self._last_resource_version = max(self._last_resource_version, int(given))


def _with_meta(obj: AnyObject, changes: dict[str, str]) -> AnyObject:
    """The object with some of its metadata changed."""
    if not changes:
        return obj
    if isinstance(obj, KubeObject):
        return cast(AnyObject, replace(obj, metadata=replace(obj.metadata, **changes)))
    return cast(AnyObject, obj.replace(**changes))
