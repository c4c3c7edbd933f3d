"""Embedded cluster: the objects of the store as our types, for controllers and a scheduler within the process.

It follows the store; writes go through the registry, as if they had come over the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from ...api.custom import CustomResource, custom_kind
from ...api.pod import Pod, PodCondition
from ...api.pod_groups import GroupPreemptor, PodGroup
from ...api.wire.encode import to_dict
from ...api.wire.kinds import FieldError, Kind
from ...api.wire.lenient import decode_leniently
from ...api.wire.pod_text import build_pod
from ...api.wire.sourced import with_source
from ...api.wire.whole import carry_over
from ...clock import Clock
from ...cluster.objects import pod_life
from ...cluster.objects.object_index import AnyObject, ClusterObject, ObjectIndex
from ...errors import ApiError, ConflictError, NotFoundError
from ...framework.handle import Client, PodEvent, preempted_event
from ..registry.object_admission import kind_of
from ..registry.object_registry import DeleteOptions, ObjectRegistry
from ..registry.pods import PODS, set_conditions
from ..registry.resource_table import BY_STORAGE
from ..registry.status_errors import StatusError
from ..store.records import Record, RecordChange
from ..store.store import Store
from .new_objects import Making, resource_named
from .recorder import ObjectRecorder, Reporter
from .revisions import Revisions

Tree = dict[str, Any]
REMEMBERED = frozenset({"Node", "PersistentVolume", "PersistentVolumeClaim"})
"""Kinds whose deleted objects are remembered; pods are not, as there are too many."""
SOURCED = frozenset({"Pod", "Node"})
KINDS_STORED: dict[str, Kind] = {
    storage: kind
    for storage, resource in BY_STORAGE.items()
    if (kind := kind_of(resource)) is not None
}
log = logging.getLogger(__name__)


class LiveCluster(ObjectIndex, Client):
    """A mirror of the store, with writes that go through the registry. Is a `Cluster`, a `Lister` and a `Client`.

    Kinds that do not affect placement are left out. `gates` are the feature gates of the API server.
    """

    def __init__(self, store: Store, clock: Clock, gates: Mapping[str, bool] | None) -> None:
        super().__init__()
        self._store = store
        self._kinds: dict[str, list[Kind]] = {}
        for storage, kind in KINDS_STORED.items():
            self._add_kind(storage, kind)
        store.follow(self._follow)
        self.registry = ObjectRegistry(store, self, clock, gates)
        self.revisions = Revisions(self.registry, self)
        self.making = Making(store, self, self.revisions)
        self._events = ObjectRecorder(self.registry)
        self.tell = self._events.record
        """Writes an event about an object, or counts it."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """A copy of all objects of `kind`, in `namespace` when given."""
        return list(super().list(kind, namespace))

    # Following the store

    def follow_custom(self, resource: CustomResource) -> None:
        """Also follow the objects of a resource that plugins read."""
        group = resource.name.split(".", 2)[2]
        storage = f"{resource.plural}.{group}" if group else resource.plural
        self._add_kind(storage, custom_kind(resource))

    def _add_kind(self, storage: str, kind: Kind) -> None:
        self._kinds.setdefault(storage, []).append(kind)
        for record in self._store.list(storage):
            obj = _decode(kind, record)
            if obj is not None:
                self.put_in(obj)

    def _follow(self, change: RecordChange) -> None:
        for kind in self._kinds.get(change.resource, ()):
            obj = None if change.new is None else _decode(kind, change.new)
            if obj is not None:
                self.put_in(obj)
            else:
                self._remove(kind, change.record)  # deleted or unreadable: no stale version stays

    def _remove(self, kind: Kind, record: Record) -> None:
        gone = self.get(kind.name, *record.key)
        if gone is not None:
            self.take_out(gone)
            if gone.kind not in REMEMBERED:
                self._deaths.pop((gone.kind, gone.namespace, gone.name), None)

    # Writing

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object; raises ApiError when it is rejected."""
        resource = resource_named(obj.kind)
        with _api_errors():
            record = self.registry.create(resource, obj.namespace, self.making.tree_of(obj))
        return cast(AnyObject, self.get(obj.kind, *record.key))

    def update(self, obj: AnyObject) -> AnyObject:
        """Write the difference between `obj` and the stored object of its name."""
        stored = self.unchanged(obj)
        resource = resource_named(obj.kind)
        record = self.registry.get(resource, obj.namespace, obj.name)
        tree = carry_over(record.decode(), to_dict(stored), to_dict(obj))
        self.registry.write(resource, record, tree)
        return cast(AnyObject, self.get(obj.kind, obj.namespace, obj.name) or obj)

    create = add  # under the API client's name

    def update_status(self, obj: AnyObject) -> AnyObject:
        """Write the difference in the status; within the process the same as `update`.

        The conditions of a PodGroup are merged by type, whatever else has changed since it was read.
        """
        if not isinstance(obj, PodGroup):
            return self.update(obj)
        stored = self.stored(obj)
        status = to_dict(replace(stored, status=stored.status.merged(obj.status))).get("status")

        def edit(tree: Tree) -> Tree:
            return {**tree, "status": status or {}}

        with _api_errors():
            self.registry.update(resource_named(obj.kind), obj.namespace, obj.name, edit, "status")
        return cast(AnyObject, self.get(obj.kind, obj.namespace, obj.name) or obj)

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Delete the object and its dependents."""
        options = DeleteOptions(grace_s=int(grace_s), propagation="Background", uid=obj.uid)
        with _api_errors():
            self.registry.delete(resource_named(obj.kind), obj.namespace, obj.name, options)

    # Scheduler operations

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to a node."""
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        binding = {"metadata": metadata, "target": {"kind": "Node", "name": node_name}}
        with _api_errors():
            self.registry.bind(pod.namespace, pod.name, binding)

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        """Delete `victim`, with its grace period, for `preemptor`."""
        stored = self.get("Pod", victim.namespace, victim.name)
        if stored is None or stored.is_terminating or stored.uid != victim.uid:
            return
        status = pod_life.disrupted(stored, preemptor)
        self.patch_status(stored, status.condition("DisruptionTarget"), None)
        self.record_event(preempted_event(stored, preemptor))
        self.delete(stored, stored.spec.grace_s)

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None."""
        now = self.registry.now()

        def edit(tree: Tree) -> Tree:
            status = tree.setdefault("status", {})
            if condition is not None:
                set_conditions(status, [msgspec.to_builtins(condition)], now)
            if nominated_node_name:
                status["nominatedNodeName"] = nominated_node_name
            elif nominated_node_name is not None:
                status.pop("nominatedNodeName", None)
            return tree

        with suppress(NotFoundError), _api_errors():
            self.registry.update(PODS, pod.namespace, pod.name, edit, "status")

    def record_event(self, event: PodEvent) -> None:
        """Write an event about a pod."""
        self._events.record_pod_event(event)

    def note(self, workload: ClusterObject, reason: str, message: str) -> None:
        """Write a normal event about a workload, as of its controller."""
        self.tell(workload, _controller(workload), ("Normal", reason), message)

    def warn(self, workload: ClusterObject, reason: str, message: str) -> None:
        """Write an event about a failure of a workload, as of its controller."""
        self.tell(workload, _controller(workload), ("Warning", reason), message)


def _controller(workload: ClusterObject) -> Reporter:
    return Reporter(f"{workload.kind.lower()}-controller")


@contextmanager
def _api_errors() -> Iterator[None]:
    """Raise a StatusError of the block as one of the package's errors."""
    try:
        yield
    except StatusError as error:
        kind = {404: NotFoundError, 409: ConflictError}.get(error.code)
        raise (kind(str(error)) if kind else ApiError(str(error), error.code)) from None


def _decode(kind: Kind, record: Record) -> Any | None:
    """The object as far as it can be read, with a log record if that is not all; None if it cannot be used.

    Pods and nodes have their source, which the store keeps anyway.
    """
    try:
        if kind.build is build_pod:
            return build_pod(kind.decoder.decode(record.data), record.data)
        obj: Any = kind.build(kind.decoder.decode(record.data))
    except (msgspec.ValidationError, FieldError):  # nulls, or something unreadable
        obj, faults = decode_leniently(record.data, kind)
        for fault in faults:
            log.warning("%s %s: cannot be read: %s", kind.name, "/".join(record.key), fault)
    return with_source(obj, record.data) if kind.name in SOURCED else obj
