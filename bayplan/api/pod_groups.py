"""Pod groups: gangs by `spec.schedulingGroup` or, without that API, by labels."""

from __future__ import annotations

from dataclasses import dataclass

from .pod import Pod
from .workloads import PodGroup

NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"


def pod_group_of(pod: Pod) -> str | None:
    """The name of the PodGroup (scheduling.k8s.io) that the pod is scheduled with, if any."""
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None else None


def labelled_group_of(pod: Pod) -> str | None:
    """The name of the group that the pod's labels put it in, if any."""
    return pod.labels.get(NAME_LABEL) or None


def min_available(pod: Pod) -> int:
    """How many pods of the pod's labelled group must run together; at least 1."""
    text = pod.labels.get(MIN_AVAILABLE_LABEL, "")
    return max(int(text), 1) if text.isdecimal() else 1


@dataclass(frozen=True, slots=True)
class GroupPreemptor:
    """A pod group that preempts as a whole, and the scheduler of its members."""

    group: PodGroup
    scheduler_name: str

    @property
    def uid(self) -> str:
        return self.group.uid

    @property
    def namespace(self) -> str:
        return self.group.namespace

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def key(self) -> str:
        return self.group.key
