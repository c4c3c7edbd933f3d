"""EventHandlers: the effect of each change in the cluster on the cache and the queue.

Mirrors pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..api.custom import CustomObject
from ..api.devices import DeviceTaintRule, ResourceSlice
from ..api.node import Node
from ..api.pod import FINISHED_PHASES, Pod
from ..api.pod_groups import PodGroup
from ..api.workloads import Namespace
from ..cache import CacheError
from ..framework import ActionType, ClusterEvent
from ..framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NODE_ADD,
    NODE_DELETE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_GROUP,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULED_POD_ADD,
    VOLUME_ATTACHMENT,
)
from ..framework.registration import registered_events
from ..framework.update_events import node_update_events, pod_update_events
from ..queue.group_queue import GroupQueue
from ..runtime import ProfileRuntime
from .parts import Parts

log = logging.getLogger(__name__)

PodReader = Callable[[Pod], Pod]

RESOURCE_OF_KIND = {
    "PersistentVolume": PERSISTENT_VOLUME,
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
    "CSINode": CSI_NODE,
    "CSIDriver": CSI_DRIVER,
    "CSIStorageCapacity": CSI_STORAGE_CAPACITY,
    "StorageClass": STORAGE_CLASS,
    "VolumeAttachment": VOLUME_ATTACHMENT,
    "ResourceClaim": RESOURCE_CLAIM,
    "ResourceSlice": RESOURCE_SLICE,
    "DeviceClass": DEVICE_CLASS,
    "PodGroup": POD_GROUP,
}
"""Names of the events of these kinds."""


class EventHandlers:
    """Handles added, changed and deleted objects, and timers."""

    read_pod: PodReader | None = None
    """Drops the fields of pods whose feature gates are off; None if no such gate is off."""

    def __init__(self, parts: Parts) -> None:
        self.cache = parts.cache
        self.queue = parts.queue
        self.profiles = parts.profiles
        self.cluster = parts.cluster
        self.clock = parts.clock
        self.timers = parts.timers
        self.ties = parts.ties
        self.waiting_pods = parts.waiting_pods
        self.observer = parts.settings.observer
        self.is_observed = parts.is_observed
        self.ended = parts.settings.ended
        self.metrics = parts.metrics
        self.feature_gates = parts.feature_gates
        self.release = release = self.feature_gates.release
        self._forgets_deleted = release.forgets_deleted_assumed
        self._pod_add = UNSCHEDULED_POD_ADD if release.names_target_pods else UNSCHEDULABLE_POD_ADD
        self._reads_taint_rules = self.feature_gates.enabled("DRADeviceTaintRules")
        self._group_queue = parts.queue if isinstance(parts.queue, GroupQueue) else None
        self._new_pods_matter = any(map(_waits_for_new_pods, parts.profiles.values()))

    def as_read(self, obj: Any) -> Any:
        """The object without the fields that feature gates switch off."""
        return obj if self.read_pod is None or not isinstance(obj, Pod) else self.read_pod(obj)

    def on_add(self, obj: Any) -> None:
        """Handle an added object."""
        match obj:
            case Pod():
                self._on_pod(None, obj if self.read_pod is None else self.read_pod(obj))
            case Node():
                self.cache.set_node(obj)
                self.queue.move_all_to_active_or_backoff(NODE_ADD, None, obj)
            case Namespace():
                self.cache.set_namespace(obj.name, obj.labels)
            case _:
                self._on_other(ActionType.Add, None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a changed object."""
        if isinstance(new, Pod):
            if self.read_pod is not None:
                new = self.read_pod(new)
            is_new_there = new.node_name and not old.node_name
            if is_new_there and not new.is_finished and self.cache.confirm_pod(new):
                # As expected. The pod left the queue when its attempt began.
                self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_ADD, None, new)
            else:
                self._on_pod(self.as_read(old), new)
            return
        match new:
            case Node():
                self.cache.set_node(new)
                for event in node_update_events(old, new):
                    self.queue.move_all_to_active_or_backoff(event, old, new)
            case Namespace():
                self.cache.set_namespace(new.name, new.labels)
            case _:
                self._on_other(ActionType.Update, old, new)

    def on_delete(self, obj: Any) -> None:
        """Handle a deleted object."""
        match obj:
            case Pod():
                self._on_pod(obj if self.read_pod is None else self.read_pod(obj), None)
            case Node():
                self.queue.move_all_to_active_or_backoff(NODE_DELETE, obj, None)
                _change("RemoveNode", self.cache.remove_node, obj.name)
            case Namespace():
                self.cache.remove_namespace(obj.name)
            case _:
                self._on_other(ActionType.Delete, obj, None)

    def _on_other(self, action: ActionType, old: Any, new: Any) -> None:
        """Requeue pods after a change of an object that is only read through the lister."""
        obj = new or old
        resource = RESOURCE_OF_KIND.get(obj.kind)
        if resource is None and isinstance(obj, DeviceTaintRule):
            self._on_taint_rule(old, new)
            return
        if resource is None and isinstance(obj, CustomObject):
            resource = obj.kind
        if self._group_queue is not None and isinstance(obj, PodGroup):
            self._on_group(self._group_queue, old, new)
        if resource is not None:
            self.queue.move_all_to_active_or_backoff(ClusterEvent(resource, action), old, new)

    @staticmethod
    def _on_group(queue: GroupQueue, old: PodGroup | None, new: PodGroup | None) -> None:
        """Queue the members of a group as long as the group exists."""
        if new is None:
            assert old is not None, "a deleted group existed before"
            queue.delete_group(old)
        elif old is None:
            queue.add_group(new)
        else:
            queue.update_group(new)

    def _on_taint_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Report a rule that changes the taints of a slice as an update of the slice."""
        rules = [rule for rule in (old, new) if rule is not None]
        is_changed = old is None or new is None or old.spec != new.spec
        if not self._reads_taint_rules or not is_changed:
            return
        for made in self.cluster.list(ResourceSlice.kind):
            if any(rule.selects(made) for rule in rules):
                self.queue.move_all_to_active_or_backoff(
                    ClusterEvent(RESOURCE_SLICE, ActionType.Update), made, made
                )
                return  # further slices would move no other pods

    # Pods are in one of three places: nowhere (or finished, or another scheduler's), the queue, a node.

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old.uid != new.uid:
            self._on_pod(old, None)
            old = None
        was, now = self._place(old), self._place(new)
        if now == "node":
            assert new is not None, "a pod on a node has a present version"
            if was == "node" and old is not None:
                self._pod_on_node_changed(old, new)
                return
            self._pod_reached_node(new)
            if was == "queue":
                self.queue.delete(new)
        elif was == "queue" and now == "queue" and old is not None and new is not None:
            self._waiting_pod_changed(old, new)
        else:
            if old is not None and was:
                (self._pod_left_node if was == "node" else self._waiting_pod_went)(old)
            if new is not None and now:
                self._pod_came(new)

    def _place(self, pod: Pod | None) -> str:
        if pod is None or pod.status.phase in FINISHED_PHASES:
            return ""
        if pod.node_name:
            return "node"
        return "queue" if pod.scheduler_name in self.profiles else ""

    def _pod_came(self, pod: Pod) -> None:
        self.observer("created", pod, "")
        self.cache.pod_groups.set_pod(pod)
        self.queue.add(pod)
        if self._new_pods_matter:
            self.queue.move_all_to_active_or_backoff(self._pod_add, None, pod)

    def _waiting_pod_changed(self, old: Pod, new: Pod) -> None:
        if old.resource_version == new.resource_version and old.resource_version:
            return
        if self.cache.is_assumed(new):
            if self._forgets_deleted and new.is_terminating and not old.is_terminating:
                self._assumed_pod_goes(new)
            return
        self.cache.pod_groups.set_pod(new)
        self.queue.update(old, new)
        nominated = old.nominated_node_name
        if nominated and nominated != new.nominated_node_name:
            self.queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, old, None, self._at_most(old.priority)
            )

    def _waiting_pod_went(self, pod: Pod) -> None:
        self.observer("deleted", pod, "")
        self.queue.delete(pod)
        self.cache.pod_groups.remove_pod(pod)
        if self.cache.is_assumed(pod) and self._forgets_deleted:
            self._assumed_pod_goes(pod)
        elif self.cache.is_assumed(pod) and self.waiting_pods.reject(pod.uid):
            self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, pod, None)
        elif pod.nominated_node_name:
            self.queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, pod, None, self._at_most(pod.priority)
            )

    def _assumed_pod_goes(self, pod: Pod) -> None:
        """Free the node of the pod: end its wait on Permit, or forget it if it is past that."""
        assumed = self.cache.get_pod(pod)
        if not self.waiting_pods.reject(pod.uid) and self.cache.is_assumed(assumed):
            _change("ForgetPod", self.cache.forget_pod, assumed)
        self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, assumed, None)

    def _pod_reached_node(self, pod: Pod) -> None:
        _change("AddPod", self.cache.add_pod, pod)
        self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_ADD, None, pod)

    def on_add_many(self, pods: Sequence[Pod]) -> None:
        """Add the pods that have a node, at the start; vectorised, because no pod waits for their events yet."""
        if self.read_pod is not None:
            pods = list(map(self.read_pod, pods))
        placed = [pod for pod in pods if pod.status.phase not in FINISHED_PHASES]
        by_uid = {pod.uid: pod for pod in placed}
        is_fresh = len(by_uid) == len(placed) and self.cache.has_none(by_uid.keys())
        if is_fresh and self.queue.count_ignored(ASSIGNED_POD_ADD, len(placed)):
            self.cache.add_pods(by_uid)
            return
        for pod in pods:
            self.on_add(pod)

    def _pod_on_node_changed(self, old: Pod, new: Pod) -> None:
        _change("UpdatePod", self.cache.update_pod, old, new)
        for event in pod_update_events(old, new):
            self.queue.move_all_to_active_or_backoff(event, old, new)

    def _pod_left_node(self, pod: Pod) -> None:
        if self.is_observed:
            self.observer("deleted", pod, f"from {pod.node_name}")
        _change("RemovePod", self.cache.remove_pod, pod)
        self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, pod, None)

    @staticmethod
    def _at_most(priority: int) -> Callable[[Pod], bool]:
        return lambda pod: pod.priority <= priority

    # Time

    def next_timer(self) -> float | None:
        """Time of the next timer, in seconds of the clock's `monotonic`; None if there is none."""
        times = (self.timers.next(), self.queue.next_timer(), self.cache.next_expiry())
        return min((time for time in times if time is not None), default=None)

    @property
    def is_settled(self) -> bool:
        """Whether time alone changes nothing: no pod is ready, backs off, waits or is being bound."""
        return (
            self.timers.next() is None
            and self.cache.next_expiry() is None
            and self.queue.waits_for_events
        )

    def run_timers(self) -> None:
        """Fire the timers: end waits, end backoffs, bring back pods that waited too long."""
        self.timers.fire_due()
        self.queue.flush_due()
        self.cache.expire_pods()


def _change(operation: str, change: Callable[..., object], *objects: Any) -> None:
    """Change the cache; a change that it refuses is logged, and the event still reaches the queue."""
    try:
        change(*objects)
    except CacheError as error:
        log.error("scheduler cache: %s failed: %s", operation, error)


def _waits_for_new_pods(profile: ProfileRuntime) -> bool:
    """Whether a plugin may hold pods back until others exist, as those for gangs do.

    Without one, events of pods that have no node yet are ignored: they cannot make room.
    """
    return any(
        wanted.event.matches(UNSCHEDULABLE_POD_ADD)
        for plugin in profile.pre_enqueues
        for wanted in registered_events(plugin)
    )
