"""Embedded cluster: the embedded cluster for controllers and a scheduler within the process.

Writes go through the registry, as if they had come over the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from ...api.pod import Pod, PodCondition
from ...api.pod_groups import GroupPreemptor, PodGroup
from ...api.wire.encode import to_dict
from ...api.wire.whole import carry_over
from ...cluster.objects import UNVERSIONED_KINDS, AnyObject, ClusterObject, WatchHandler, pod_life
from ...errors import ApiError, ConflictError, NotFoundError
from ...framework.handle import PodEvent
from ...framework.lister_changes import ObjectKey
from ...framework.preemptor import preempted_event
from ..registry.object_registry import DeleteOptions, ObjectRegistry
from ..registry.pods import PODS, set_conditions
from ..registry.status_errors import StatusError
from .mirror import Mirror
from .new_objects import Making, resource_named
from .object_events import EventWriter
from .recorder import Described, EventNames, ObjectRecorder, Reporter
from .revisions import Revisions

Tree = dict[str, Any]


class LiveCluster:
    """Reads from the mirror, writes through the registry. Is a `Cluster`, a `Lister` and a `Client`."""

    def __init__(self, mirror: Mirror, registry: ObjectRegistry) -> None:
        self._mirror = mirror
        self._registry = registry
        self.revisions = Revisions(registry, mirror)
        self.making = Making(registry.store, mirror, self.revisions)
        names = EventNames(registry.clock)
        self._events = EventWriter(registry, names)
        self._recorder = ObjectRecorder(registry, names)

    # Reading

    @property
    def version(self) -> int:
        """Changes with every change of an object other than a pod or a node."""
        return self._mirror.version

    def version_of(self, *kinds: str) -> int:
        """The same for objects of these kinds."""
        return self._mirror.version_of(*kinds)

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Objects other than pods and nodes that were added, changed or deleted after `version`."""
        return self._mirror.changes_since(version)

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """A copy of all objects of `kind`, in `namespace` when given."""
        return list(self._mirror.list(kind, namespace))

    def kinds(self) -> Iterable[str]:
        """The kinds of current and deleted objects."""
        return self._mirror.kinds()

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""
        return self._mirror.get(kind, namespace, name)

    def was_deleted(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object of that name existed and was deleted."""
        return self._mirror.was_deleted(kind, namespace, name)

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        """Notify `handler` of all existing objects, and of every change."""
        self._mirror.watch(handler, replay)

    # Writing

    def add(self, obj: AnyObject) -> AnyObject:
        """Store a new object; raises ApiError when it is rejected."""
        resource = resource_named(obj.kind)
        try:
            record = self._registry.create(resource, obj.namespace, self.making.tree_of(obj))
        except StatusError as error:
            raise _api_error(error) from None
        return cast(AnyObject, self._mirror.get(obj.kind, *record.key))

    def update(self, obj: AnyObject) -> AnyObject:
        """Write the difference between `obj` and the stored object of its name."""
        stored = self._find(obj)
        if obj.kind not in UNVERSIONED_KINDS and obj.resource_version not in (
            "",
            stored.resource_version,
        ):
            raise ConflictError(f'{obj.kind} "{obj.key}" was changed since it was read')
        resource = resource_named(obj.kind)
        record = self._registry.get(resource, obj.namespace, obj.name)
        tree = carry_over(record.decode(), to_dict(stored), to_dict(obj))
        self._registry.write(resource, record, tree)
        return cast(AnyObject, self._mirror.get(obj.kind, obj.namespace, obj.name) or obj)

    def create(self, obj: AnyObject) -> AnyObject:
        """The same as `add`, under the API client's name."""
        return self.add(obj)

    def update_status(self, obj: AnyObject) -> AnyObject:
        """Write the difference in the status; within the process the same as `update`.

        The conditions of a PodGroup are merged by type, whatever else has changed since it was read.
        """
        if not isinstance(obj, PodGroup):
            return self.update(obj)
        stored = self._find(obj)
        status = to_dict(replace(stored, status=stored.status.merged(obj.status))).get("status")

        def edit(tree: Tree) -> Tree:
            return {**tree, "status": status or {}}

        try:
            self._registry.update(resource_named(obj.kind), obj.namespace, obj.name, edit, "status")
        except StatusError as error:
            raise _api_error(error) from None
        return cast(AnyObject, self._mirror.get(obj.kind, obj.namespace, obj.name) or obj)

    def delete(self, obj: ClusterObject, grace_s: float = 0) -> None:
        """Delete the object and its dependents."""
        options = DeleteOptions(grace_s=int(grace_s), propagation="Background", uid=obj.uid)
        try:
            self._registry.delete(resource_named(obj.kind), obj.namespace, obj.name, options)
        except StatusError as error:
            raise _api_error(error) from None

    # Scheduler operations

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to a node."""
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        binding = {"metadata": metadata, "target": {"kind": "Node", "name": node_name}}
        try:
            self._registry.bind(pod.namespace, pod.name, binding)
        except StatusError as error:
            raise _api_error(error) from None

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        """Delete `victim`, with its grace period, for `preemptor`."""
        stored = self._mirror.get("Pod", victim.namespace, victim.name)
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
        now = self._registry.now()

        def edit(tree: Tree) -> Tree:
            status = tree.setdefault("status", {})
            if condition is not None:
                set_conditions(status, [_plain_condition(condition)], now)
            if nominated_node_name:
                status["nominatedNodeName"] = nominated_node_name
            elif nominated_node_name is not None:
                status.pop("nominatedNodeName", None)
            return tree

        try:
            self._registry.update(PODS, pod.namespace, pod.name, edit, "status")
        except StatusError as error:
            if error.code != 404:
                raise _api_error(error) from None

    def clear_nomination(self, pod: Pod) -> None:
        """Clear the nominated node in the pod's status."""
        stored = self._mirror.get("Pod", pod.namespace, pod.name)
        if stored is not None and stored.nominated_node_name:
            self.patch_status(stored, None, "")

    def record_event(self, event: PodEvent) -> None:
        """Write an event about a pod."""
        self._events.record(event)

    def tell(
        self,
        about: Described,
        reporter: Reporter,
        what: tuple[str, str],
        message: str,
        field_path: str = "",
    ) -> None:
        """Write an event with this type and reason (`what`) about an object, or count it."""
        self._recorder.record(about, reporter, what, message, field_path)

    def note(self, workload: Described, reason: str, message: str) -> None:
        """Write a normal event about a workload, as of its controller."""
        self.tell(workload, _controller(workload), ("Normal", reason), message)

    def warn(self, workload: Described, reason: str, message: str) -> None:
        """Write an event about a failure of a workload, as of its controller."""
        self.tell(workload, _controller(workload), ("Warning", reason), message)

    def _find(self, obj: AnyObject) -> AnyObject:
        stored = self._mirror.get(obj.kind, obj.namespace, obj.name)
        if stored is None:
            raise NotFoundError(f'{obj.kind} "{obj.key}" not found')
        if obj.uid and obj.uid != stored.uid:
            raise ConflictError(f'{obj.kind} "{obj.key}" was replaced by another of the same name')
        return cast(AnyObject, stored)


def _controller(workload: Described) -> Reporter:
    return Reporter(f"{workload.kind.lower()}-controller")


def _plain_condition(condition: PodCondition) -> Tree:
    plain: Tree = {"type": condition.type, "status": condition.status}
    if condition.reason:
        plain["reason"] = condition.reason
    if condition.message:
        plain["message"] = condition.message
    if condition.observed_generation:
        plain["observedGeneration"] = condition.observed_generation
    return plain


def _api_error(error: StatusError) -> ApiError:
    """The StatusError as one of the package's errors."""
    if error.code == 404:
        return NotFoundError(str(error))
    if error.code == 409:
        return ConflictError(str(error))
    return ApiError(str(error), error.code)
