"""Events: changes in a cluster, by the names that waiting plugins use.

Mirrors staging/src/k8s.io/kube-scheduler/framework/types.go (ActionType, EventResource, ClusterEvent)
and pkg/scheduler/framework/{types,events}.go (matching, the events the scheduler makes itself).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, IntFlag
from functools import wraps
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from ..api.pod import Pod
from ..api.storage import PersistentVolumeClaim
from ..errors import InputError
from ..releases.feature_gates import DEFAULT_GATES, FeatureGates

T = TypeVar("T")


class ActionType(IntFlag):
    """A change of an object. The order of the bits matters: see `ClusterEvent.matches`."""

    Add = 1
    Delete = 1 << 1
    UpdateNodeAllocatable = 1 << 2
    UpdateNodeLabel = 1 << 3
    UpdateNodeTaint = 1 << 4
    UpdateNodeCondition = 1 << 5
    UpdateNodeAnnotation = 1 << 6
    UpdateNodeDeclaredFeature = 1 << 7
    UpdatePodLabel = 1 << 8
    UpdatePodScaleDown = 1 << 9
    UpdatePodToleration = 1 << 10
    UpdatePodSchedulingGatesEliminated = 1 << 11
    UpdatePodGeneratedResourceClaim = 1 << 12
    Update = ((1 << 13) - 1) & ~0b11
    All = (1 << 13) - 1

    @classmethod
    def parse(cls, text: str) -> ActionType:
        """The action of a text such as `Add|UpdateNodeLabel`; InputError for an unknown name."""
        action = cls(0)
        for name in text.split("|"):
            if name not in cls.__members__:
                raise InputError(f"action: expected names joined by |; got {text!r}")
            action |= cls[name]
        return action

    @property
    def text(self) -> str:
        """The names joined by `|`; `Update` and `All` stand for all the bits they cover."""
        if self == ActionType.All:
            return "All"
        is_update = (self & ActionType.Update) == ActionType.Update
        rest = self & ~ActionType.Update if is_update else self
        names = [str(action.name) for action in ActionType if rest & action == action]
        return "|".join([*names, "Update"] if is_update else names)


POD = "Pod"
"""Any pod. The scheduler itself distinguishes pods that have a node from pods that wait for one."""
ASSIGNED_POD = "AssignedPod"
UNSCHEDULABLE_POD = "UnschedulablePod"
"""A pod that waits; in releases with fact `names_target_pods` it has one of the names below."""
UNSCHEDULED_POD = "UnscheduledPod"
TARGET_POD = "TargetPod"
"""The pod itself that is queued."""
NODE = "Node"
PERSISTENT_VOLUME = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS = "resource.k8s.io/DeviceClass"
POD_GROUP = "scheduling.k8s.io/PodGroup"
WILDCARD = "*"
RESOURCES = (
    POD,
    ASSIGNED_POD,
    UNSCHEDULABLE_POD,
    UNSCHEDULED_POD,
    TARGET_POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    POD_GROUP,
    WILDCARD,
)
"""Subjects of events, besides custom resources."""


class ClusterEvent(Struct, frozen=True, cache_hash=True):
    """A change that may make a waiting pod schedulable: a single event, or a pattern that matches several.

    `resource` is a kind such as `Node`, a custom resource such as `foos.v1.example.com`, or `*`; `label` replaces the
    text of the event in logs and metrics.
    """

    resource: str
    action: ActionType
    label: str = ""

    @property
    def is_wildcard(self) -> bool:
        """Whether the pattern matches every event."""
        return self.resource == WILDCARD and self.action == ActionType.All

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether `incoming` is one of the events that this pattern asks for.

        It is when it is the same or more specific. An update that is not one of the
        specific ones is called `Update`, so a pattern for a specific one must not match it;
        upstream reads that off the size of the number, and so do we.
        """
        if not _covers(self.resource, incoming.resource) or incoming.action > self.action:
            return False
        # A plain AND of integers: making a new flag would take ten times as long.
        return int.__and__(self.action, incoming.action) != 0

    def __str__(self) -> str:
        return self.label or f"{self.resource}{self.action.text}"


_COVERED = {
    POD: (ASSIGNED_POD, UNSCHEDULABLE_POD, UNSCHEDULED_POD, TARGET_POD),
    UNSCHEDULABLE_POD: (UNSCHEDULED_POD, TARGET_POD),
}


def _covers(pattern: str, resource: str) -> bool:
    if pattern in (resource, WILDCARD):
        return True
    return resource in _COVERED.get(pattern, ())


class Hint(Enum):
    """Whether an event is worth a new attempt."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction = Callable[[Pod, Any, Any], Hint]
"""(waiting pod, object before, object after) -> Hint; None stands for "no object".

It is called once per waiting pod and event, so it must be cheap, or be marked `called_for(EACH_SPEC)`. One that
raises counts as QUEUE.
"""
Helps = Callable[[Pod, Any, Any], bool]
"""(waiting pod, object before, object after) -> whether the event is worth a new attempt. Objects are of the kind."""


Affected = Callable[[Any, Any], Collection[str] | None]
"""(object before, object after) -> the keys of the pods for which the hint may return Queue; None if it may for any
pod.
"""


class CalledFor(Enum):
    """The pods that a hint is called for."""

    EACH_POD = "each pod"
    EACH_SPEC = "each spec"


EACH_POD, EACH_SPEC = CalledFor.EACH_POD, CalledFor.EACH_SPEC
Targets = CalledFor | Affected
CALLED_FOR = "_called_for"
Asked = TypeVar("Asked", bound=Callable[..., Hint | bool])


def called_for(targets: Targets) -> Callable[[Asked], Asked]:
    """Decorator: the waiting pods that a hint has to be called for.

    With EACH_SPEC the answer depends on the spec alone, and pods of one spec share it. It may still depend on other
    facts about a pod: whether the event is about the pod itself, its nomination, and the resources that its status
    grants. Pods with such facts are evaluated one by one. A function gives the keys of the pods that an event may
    affect, so that the hint is not called for the others.
    """

    def mark(hint: Asked) -> Asked:
        if isinstance(targets, CalledFor):
            setattr(hint, CALLED_FOR, targets)
            return hint

        @wraps(hint)  # the same hint may be registered with other targets
        def ask(*args: Any) -> Hint | bool:
            return hint(*args)

        setattr(ask, CALLED_FOR, targets)
        return cast(Asked, ask)

    return mark


def targets_of(hint: HintFunction) -> Targets:
    """The pods that a hint has to be called for."""
    targets: Targets = getattr(hint, CALLED_FOR, EACH_POD)
    return targets


class EventWithHint(msgspec.Struct, frozen=True):
    """An event a plugin waits for; without a hint every such event is worth a new attempt."""

    event: ClusterEvent
    hint: HintFunction | None = None


def wait_for(
    resource: str,
    action: ActionType,
    hint: HintFunction | None = None,
    *,
    helps: Helps | None = None,
) -> EventWithHint:
    """An entry of `events_to_register`: an event, and whether it is worth a new attempt."""
    event = ClusterEvent(resource, action)
    return EventWithHint(event, hint if helps is None else _hint_of(helps, event))


def _hint_of(helps: Helps, event: ClusterEvent) -> HintFunction:
    """A hint that returns Queue if `helps` is true; InputError for an object of another kind, or without one."""
    kind = event.resource.rpartition("/")[2]
    needs_old = event.action == ActionType.Delete
    needs_new = not event.action & ActionType.Delete

    @wraps(helps)
    def hint(pod: Pod, old: Any, new: Any) -> Hint:
        for obj, is_needed in ((old, needs_old), (new, needs_new)):
            if obj is None and is_needed:
                raise InputError(f"object of the event: expected {kind}; got none")
            if obj is not None and getattr(obj, "kind", None) != kind:
                got = type(obj).__name__
                raise InputError(f"object of the event: expected {kind}; got {got}")
        return Hint.QUEUE if helps(pod, old, new) else Hint.SKIP

    return hint


@called_for(EACH_SPEC)
def is_own_change(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Hint: only a change of the pod itself may help."""
    return after.uid == pod.uid


def uses_claim(pod: Pod, before: Any, claim: PersistentVolumeClaim) -> bool:
    """Hint: the claim that came or changed is one of the pod's."""
    return claim.is_used_by(pod)


def names_claim(pod: Pod, before: Any, claim: PersistentVolumeClaim) -> bool:
    """Hint: the same, without the claims that are made for ephemeral volumes."""
    return claim.is_used_by(pod, named_only=True)


def required(kind: type[T], obj: Any) -> T:
    """The object of an event; InputError if it is absent or of another kind."""
    if isinstance(obj, kind):
        return obj
    got = "none" if obj is None else type(obj).__name__
    raise InputError(f"object of the event: expected {kind.__name__}; got {got}")


ANY_EVENT = tuple(
    wait_for(resource, ActionType.All)
    for resource in (
        POD,
        NODE,
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        CSI_NODE,
        CSI_DRIVER,
        CSI_STORAGE_CAPACITY,
        STORAGE_CLASS,
        RESOURCE_CLAIM,
        DEVICE_CLASS,
    )
)
"""Events for a plugin that registers none. Upstream leaves VolumeAttachment and ResourceSlice out."""


def default_events(feature_gates: FeatureGates = DEFAULT_GATES) -> tuple[EventWithHint, ...]:
    """Events for a plugin that registers none, and for extenders."""
    if feature_gates.enabled("GenericWorkload"):
        return (*ANY_EVENT, wait_for(POD_GROUP, ActionType.All))
    return ANY_EVENT


EXTENDER = "Extender"
"""The plugin name under which refusals by extenders are recorded."""

ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, ActionType.Add)
ASSIGNED_POD_UPDATE = ClusterEvent(ASSIGNED_POD, ActionType.Update)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, ActionType.Delete)
UNSCHEDULABLE_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, ActionType.Add)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.Update)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULED_POD, ActionType.Add)
UNSCHEDULED_POD_UPDATE = ClusterEvent(UNSCHEDULED_POD, ActionType.Update)
TARGET_POD_UPDATE = ClusterEvent(TARGET_POD, ActionType.Update)
NODE_ADD = ClusterEvent(NODE, ActionType.Add)
NODE_DELETE = ClusterEvent(NODE, ActionType.Delete)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, ActionType.All, "UnschedulableTimeout")
"""A pod was left waiting for too long: it is tried again with any hints."""
FORCE_ACTIVATE = ClusterEvent(WILDCARD, ActionType.All, "ForceActivate")
"""A pod is to be tried now, on request."""

# Moves within the queue that no cluster event caused; known by their label alone.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"
