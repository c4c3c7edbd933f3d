"""Queueing hints: events after which a pod without room may fit.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...api.dra import DeviceClass
from ...api.node import Node
from ...api.pod import Pod
from ...api.resources import PODS, is_scalar
from ...framework.events import (
    DEVICE_CLASS,
    EACH_SPEC,
    NODE,
    POD,
    ActionType,
    EventWithHint,
    called_for,
    required,
    wait_for,
)
from ...framework.lister import Lister


class FitHints:
    """The hints of NodeResourcesFit. Resources that the filter ignores are not ignored here.

    `uses_devices` is feature gate DRAExtendedResource.
    """

    def __init__(self, uses_devices: bool = True) -> None:
        self._uses_devices = uses_devices
        self._lister: Lister | None = None
        self._lister_version = -1
        self._device_resources: frozenset[str] = frozenset()

    def events(
        self,
        lister_of: Callable[[], Lister],
        still_unschedulable: Callable[[Pod, Any, Any], bool],
    ) -> Sequence[EventWithHint]:
        """Events that the plugin waits for; `lister_of` gives the lister of device classes.

        `still_unschedulable` is true for a pod that left its node without making room for another.
        """

        @called_for(EACH_SPEC)
        def after_pod_change(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
            helps = after_pod_event(pod, before, after)
            return helps and not still_unschedulable(pod, before, after)

        @called_for(EACH_SPEC)
        def after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
            return self.after_node_change(pod, before, after, lister_of())

        node_changes = ActionType.Add | ActionType.UpdateNodeAllocatable
        less = ActionType.Delete | ActionType.UpdatePodScaleDown
        events = (
            wait_for(POD, less, helps=after_pod_change),
            wait_for(NODE, node_changes, helps=after_node_change),
        )
        if not self._uses_devices:
            return events
        changes = ActionType.Add | ActionType.Update
        return (*events, wait_for(DEVICE_CLASS, changes, helps=after_device_class_event))

    def after_node_change(self, pod: Pod, before: Node | None, after: Node, lister: Lister) -> bool:
        """Hint: the pod fits the empty node, and the amount of something that it needs has grown."""
        if not self._fits(pod, after, lister):
            return False
        return before is None or self._has_grown(pod, before, after, lister)

    def _fits(self, pod: Pod, node: Node, lister: Lister) -> bool:
        if node.allocatable.get(PODS, 0) < 1:
            return False
        return all(
            wanted <= node.allocatable.get(name, 0) or self._is_left_to_devices(name, node, lister)
            for name, wanted in pod.requests.items()
        )

    def _has_grown(self, pod: Pod, before: Node, after: Node, lister: Lister) -> bool:
        then, now = before.allocatable, after.allocatable
        if now.get(PODS, 0) > then.get(PODS, 0):
            return True
        return any(
            now.get(name, 0) > then.get(name, 0) or self._is_left_to_devices(name, after, lister)
            for name in pod.requests
        )

    def _is_left_to_devices(self, name: str, node: Node, lister: Lister) -> bool:
        """Whether a class of devices provides the resource, which the node lacks."""
        if not self._uses_devices or not is_scalar(name) or node.allocatable.get(name, 0) > 0:
            return False
        version = lister.version_of(DeviceClass.kind)
        if lister is not self._lister or version != self._lister_version:
            self._lister, self._lister_version = lister, version
            classes = lister.list(DeviceClass.kind)
            self._device_resources = frozenset(n for c in classes for n in c.resource_names)
        return name in self._device_resources


def after_pod_event(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
    """Hint: the pod itself changed, or another pod was removed from a node or requests less of the pod's resources."""
    if after is None:
        return required(Pod, before).is_assigned_or_nominated
    if after.uid == pod.uid:
        return True
    if not after.node_name:
        return False
    then, now = required(Pod, before).usage, after.usage
    return any(then.get(name, 0) > now.get(name, 0) for name in pod.usage)


@called_for(EACH_SPEC)
def after_device_class_event(pod: Pod, before: DeviceClass | None, after: DeviceClass) -> bool:
    """Hint: a class of devices now provides a resource that the pod names, even with zero."""
    named, asked = after.spec.extended_resource_name, pod.spec.requested_names
    if before is None:
        return any(name in asked for name in after.resource_names)
    return (before.spec.extended_resource_name or "") != (named or "") and named in asked
