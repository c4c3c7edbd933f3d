"""Group members: the members of each pod group, and which of them are placed.

Mirrors pkg/scheduler/backend/podgroupmanager, for groups by `spec.schedulingGroup` and by label.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..api.pod import Pod
from ..api.pod_groups import labelled_group_of, pod_group_of

GroupKey = tuple[str, str, str]
"""`PodGroup` or `label`, namespace, name."""


class GroupMembers:
    """The pods of one group, and those of them that have no node, by uid in order of appearance."""

    __slots__ = ("pods", "waiting")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.waiting: dict[str, Pod] = {}


NO_MEMBERS = GroupMembers()


class PodGroupIndex:
    """Members by group; a pod with a node, assumed or bound, is placed."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, GroupMembers] = {}
        self.on_trial: set[str] = set()
        """The uids of pods that have a node for the time of a scheduling cycle only."""

    def set_pod(self, pod: Pod) -> None:
        """Add or update a pod."""
        if pod.pod_class.groups == ():  # true of most pods
            return
        for key in group_keys(pod):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = GroupMembers()
            group.pods[pod.uid] = pod
            if pod.node_name:
                group.waiting.pop(pod.uid, None)
            else:
                group.waiting[pod.uid] = pod

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        for key in group_keys(pod):
            group = self._groups.get(key)
            if group is not None:
                group.pods.pop(pod.uid, None)
                group.waiting.pop(pod.uid, None)
                if not group.pods:
                    del self._groups[key]

    def members(self, key: GroupKey) -> list[Pod]:
        """The pods of the group, in order of appearance."""
        return list(self._groups.get(key, NO_MEMBERS).pods.values())

    def member_count(self, key: GroupKey) -> int:
        """The number of pods of the group."""
        return len(self._groups.get(key, NO_MEMBERS).pods)

    def waiting(self, key: GroupKey) -> Mapping[str, Pod]:
        """The members without a node, by uid."""
        return self._groups.get(key, NO_MEMBERS).waiting

    def placed_count(self, key: GroupKey) -> int:
        """The number of members with a node, assumed or bound."""
        group = self._groups.get(key, NO_MEMBERS)
        return len(group.pods) - len(group.waiting)

    def has_placed(self) -> bool:
        """Whether a member of a PodGroup has a node."""
        return any(
            key[0] == "PodGroup" and len(group.pods) > len(group.waiting)
            for key, group in self._groups.items()
        )

    def kept_count(self, key: GroupKey) -> int:
        """The number of members with a node, without members that are on trial."""
        group = self._groups.get(key, NO_MEMBERS)
        return self.placed_count(key) - len(self.on_trial & group.pods.keys())


def group_keys(pod: Pod) -> tuple[GroupKey, ...]:
    """The groups the pod belongs to; all pods of its class do."""
    known = pod.pod_class
    if known.groups is None:
        name, label = pod_group_of(pod), labelled_group_of(pod)
        groups = [] if name is None else [("PodGroup", pod.namespace, name)]
        groups += [] if label is None else [("label", pod.namespace, label)]
        known.groups = tuple(groups)
    return known.groups
