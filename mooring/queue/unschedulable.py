"""UnschedulablePods: pods that were rejected or are held back, and wait for something to happen.

Plays the part of pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .heap import KeyedHeap
from .queued_pod import QueuedPodInfo, Rejection

Group = dict[str, QueuedPodInfo]


class UnschedulablePods:
    """Pods by key, grouped by who rejected them.

    Whether an event concerns a pod depends on its rejectors alone. There are few combinations of these however many
    pods wait, so an event is matched with each group once, and pods it does not concern are not looked at.
    """

    def __init__(self) -> None:
        self._pods: dict[str, tuple[QueuedPodInfo, Rejection]] = {}
        self._groups: dict[Rejection, Group] = {}
        self._oldest: KeyedHeap[QueuedPodInfo] = KeyedHeap(lambda info: info.waiting_since)

    def put(self, info: QueuedPodInfo) -> None:
        """Add the pod, or note that its rejectors changed."""
        key, rejection = info.pod.key, info.rejection
        known = self._pods.get(key)
        if known is not None and known[1] != rejection:
            self._leave_group(key, known[1])
        self._pods[key] = (info, rejection)
        self._groups.setdefault(rejection, {})[key] = info
        self._oldest.put(key, info)

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod with this key."""
        found = self._pods.get(key)
        return None if found is None else found[0]

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove the pod, if it is here."""
        found = self._pods.pop(key, None)
        if found is None:
            return None
        self._leave_group(key, found[1])
        self._oldest.delete(key)
        return found[0]

    def groups(self) -> Iterator[tuple[Rejection, Mapping[str, QueuedPodInfo]]]:
        """The pods that are here by key, by what they have in common."""
        return iter(self._groups.items())

    def oldest(self) -> QueuedPodInfo | None:
        """The pod that waits longest."""
        return self._oldest.peek()

    def gated(self) -> list[QueuedPodInfo]:
        """The pods that a PreEnqueue plugin holds back."""
        return [info for info, _ in self._pods.values() if info.is_gated]

    @property
    def gated_count(self) -> int:
        return sum(len(group) for by, group in self._groups.items() if by.gating_plugin)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (info for info, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def _leave_group(self, key: str, rejection: Rejection) -> None:
        group = self._groups[rejection]
        del group[key]
        if not group:
            del self._groups[rejection]
