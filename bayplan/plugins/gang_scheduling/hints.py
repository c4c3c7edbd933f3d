"""When a pod that waits for its gang is worth another try.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api.pod import Pod
from ...api.pod_groups import PodGroup, pod_group_of
from ...framework.events import (
    POD,
    POD_GROUP,
    ActionType,
    Concern,
    EventWithHint,
    Hint,
    NarrowHint,
    required,
    typed,
    wait_for,
)


def events(concerned: Concern) -> Sequence[EventWithHint]:
    """Events that GangScheduling waits for. Groups never change, and a pod keeps its group.

    `concerned` finds the pods that an added pod may let through.
    """
    return (
        wait_for(POD, ActionType.Add, NarrowHint(after_pod_added, concerned)),
        wait_for(POD_GROUP, ActionType.Add, after_pod_group_added),
    )


def after_pod_added(pod: Pod, old: Any, new: Any) -> Hint:
    """Another member may make the gang complete."""
    typed(Pod, old)
    added = required(Pod, new)
    group = pod_group_of(pod)
    helps = group is not None and added.namespace == pod.namespace and pod_group_of(added) == group
    return Hint.QUEUE if helps else Hint.SKIP


def after_pod_group_added(pod: Pod, old: Any, new: Any) -> Hint:
    """The group of the pod came."""
    typed(PodGroup, old)
    added = required(PodGroup, new)
    helps = added.namespace == pod.namespace and added.name == pod_group_of(pod)
    return Hint.QUEUE if helps else Hint.SKIP
