"""PodGroups: the members of each pod group, and which of them are placed.

Mirrors pkg/scheduler/backend/podgroupmanager, for groups by `spec.schedulingGroup` and by label.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..api.pod import Pod
from ..api.pod_groups import NAME_LABEL, labelled_group_of, pod_group_of

GroupKey = tuple[str, str, str]
"""`PodGroup` or `label`, namespace, name."""


class PodGroupIndex:
    """Members by group; a pod with a node, assumed or bound, is placed."""

    def __init__(self) -> None:
        self._members: dict[GroupKey, dict[str, Pod]] = {}
        self._placed: dict[GroupKey, set[str]] = {}

    def set_pod(self, pod: Pod) -> None:
        """Add or update a pod."""
        if pod.spec.scheduling_group is None and NAME_LABEL not in pod.labels:
            return  # true for most pods
        for key in group_keys(pod):
            self._members.setdefault(key, {})[pod.uid] = pod
            placed = self._placed.setdefault(key, set())
            (placed.add if pod.node_name else placed.discard)(pod.uid)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        for key in group_keys(pod):
            members = self._members.get(key, {})
            members.pop(pod.uid, None)
            self._placed.get(key, set()).discard(pod.uid)
            if not members:
                self._members.pop(key, None)
                self._placed.pop(key, None)

    def members(self, key: GroupKey) -> list[Pod]:
        """The pods of the group, in order of appearance."""
        return list(self._members.get(key, {}).values())

    def placed_count(self, key: GroupKey) -> int:
        """The number of members with a node, assumed or bound."""
        return len(self._placed.get(key, ()))


def group_keys(pod: Pod) -> Iterator[GroupKey]:
    """The groups the pod belongs to."""
    name = pod_group_of(pod)
    if name is not None:
        yield "PodGroup", pod.namespace, name
    label = labelled_group_of(pod)
    if label is not None:
        yield "label", pod.namespace, label
