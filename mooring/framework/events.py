"""Events: what happens in a cluster, as the plugins that wait for it name it.

Mirrors staging/src/k8s.io/kube-scheduler/framework/types.go (ActionType, EventResource, ClusterEvent).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

from ..api.pod import Pod


class ActionType(IntFlag):
    """What happened to an object."""

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


WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that may make a waiting pod schedulable. `resource` is a kind such as `Node`, or `*`."""

    resource: str
    action: ActionType


class Hint(Enum):
    """Whether an event is worth a new attempt."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction = Callable[[Pod, Any, Any], Hint]
"""(waiting pod, object before, object after) -> Hint; None stands for "no object"."""


@dataclass(frozen=True, slots=True)
class EventWithHint:
    """An event a plugin waits for; without a hint every such event is worth a new attempt."""

    event: ClusterEvent
    hint: HintFunction | None = None


ANY_EVENT = (EventWithHint(ClusterEvent(WILDCARD, ActionType.All)),)
