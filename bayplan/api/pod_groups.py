"""Pod groups: gangs by `spec.schedulingGroup` or, without that API, by labels."""

from __future__ import annotations

import msgspec

from .pod import Pod
from .workloads import PodGroup

SCHEDULING_GROUP = "scheduling.k8s.io"
"""The API group of PodGroups."""
PREFERRED_TOPOLOGY = "bayplan.dev/preferred-topology"
"""On a PodGroup: the smallest level of the topology whose domains are tried."""
NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
CUSTOM_LABEL = "scheduling.x-k8s.io/pod-group"
"""Names a PodGroup of scheduling.x-k8s.io, which says how many pods must run together."""


def pod_group_of(pod: Pod) -> str | None:
    """The name of the PodGroup (scheduling.k8s.io) that the pod is scheduled with, if any."""
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None else None


def labelled_group_of(pod: Pod) -> str | None:
    """The name of the group that the pod's labels put it in, if any."""
    labels = pod.labels
    return labels.get(NAME_LABEL) or labels.get(CUSTOM_LABEL) or None


def min_available(pod: Pod) -> int | None:
    """How many pods of its group must run together, by the pod's labels; None if only its PodGroup says it."""
    if not pod.labels.get(NAME_LABEL):
        return None
    text = pod.labels.get(MIN_AVAILABLE_LABEL, "")
    return max(int(text), 1) if text.isdecimal() else 1


class GroupPreemptor(msgspec.Struct, frozen=True):
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
