"""PodGroups: the members of each pod group, and which of them are placed.

Mirrors pkg/scheduler/backend/podgroupmanager, for groups by `spec.schedulingGroup` and by label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..api.pod import Pod
from ..api.pod_groups import CUSTOM_LABEL, NAME_LABEL, labelled_group_of, pod_group_of

GroupKey = tuple[str, str, str]
"""`PodGroup` or `label`, namespace, name."""


class PodGroupIndex:
    """Members by group; a pod with a node, assumed or bound, is placed."""

    def __init__(self) -> None:
        self._members: dict[GroupKey, dict[str, Pod]] = {}
        self._placed: dict[GroupKey, set[str]] = {}
        self._waiting: dict[GroupKey, dict[str, Pod]] = {}
        self.on_trial: set[str] = set()
        """The uids of pods that have a node for the time of a scheduling cycle only."""

    def set_pod(self, pod: Pod) -> None:
        """Add or update a pod."""
        labels = pod.labels
        is_labelled = NAME_LABEL in labels or CUSTOM_LABEL in labels
        if pod.spec.scheduling_group is None and not is_labelled:
            return  # true for most pods
        for key in group_keys(pod):
            if key not in self._members:
                self._members[key], self._placed[key], self._waiting[key] = {}, set(), {}
            self._members[key][pod.uid] = pod
            if pod.node_name:
                self._placed[key].add(pod.uid)
                self._waiting[key].pop(pod.uid, None)
            else:
                self._placed[key].discard(pod.uid)
                self._waiting[key][pod.uid] = pod

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        for key in group_keys(pod):
            members = self._members.get(key)
            if members is None:
                continue
            members.pop(pod.uid, None)
            self._placed[key].discard(pod.uid)
            self._waiting[key].pop(pod.uid, None)
            if not members:
                del self._members[key], self._placed[key], self._waiting[key]

    def members(self, key: GroupKey) -> list[Pod]:
        """The pods of the group, in order of appearance."""
        return list(self._members.get(key, {}).values())

    def waiting(self, key: GroupKey) -> Mapping[str, Pod]:
        """The members without a node, by uid."""
        return self._waiting.get(key, {})

    def placed_count(self, key: GroupKey) -> int:
        """The number of members with a node, assumed or bound."""
        return len(self._placed.get(key, ()))

    def kept_count(self, key: GroupKey) -> int:
        """The same without the members that are on trial."""
        return len(self._placed.get(key, frozenset()) - self.on_trial)


def group_keys(pod: Pod) -> Iterator[GroupKey]:
    """The groups the pod belongs to."""
    name = pod_group_of(pod)
    if name is not None:
        yield "PodGroup", pod.namespace, name
    label = labelled_group_of(pod)
    if label is not None:
        yield "label", pod.namespace, label
