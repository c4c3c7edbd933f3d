"""UnschedulablePods: rejected or gated pods that wait for an event.

Corresponds to pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from ..api.pod import EMPTY_STATUS, Pod
from .heap import KeyedHeap
from .queued_pod import QueuedPodInfo, Rejection
from .queueing_hints import QueueingStrategy

Group = dict[str, QueuedPodInfo]


class UnschedulableEntry(NamedTuple):
    """A stored pod and its group."""

    info: QueuedPodInfo
    rejection: Rejection
    kind: Hashable
    turn: int
    """Position in the order of insertion among pods of the same rejection."""


class UnschedulablePods:
    """Pods by key, grouped by rejectors, and within that by equal pods.

    Whether an event affects a pod depends only on its rejectors, and their hints mostly on its
    spec. There are few combinations of these for any number of pods, so an event is matched with
    each group once, and unaffected pods are not visited.
    """

    def __init__(self) -> None:
        self._pods: dict[str, UnschedulableEntry] = {}
        self._groups: dict[Rejection, dict[Hashable, Group]] = {}
        self._oldest: KeyedHeap[QueuedPodInfo] = KeyedHeap(lambda info: info.waiting_since)
        self._turns = 0

    def put(self, info: QueuedPodInfo) -> None:
        """Add the pod, or update it and its rejectors."""
        key, rejection, kind = info.pod.key, info.rejection, kind_of(info.pod)
        known = self._pods.get(key)
        if known is not None and known.rejection == rejection:
            turn = known.turn
        else:
            self._turns = turn = self._turns + 1
        self._pods[key] = UnschedulableEntry(info, rejection, kind, turn)
        self._groups.setdefault(rejection, {}).setdefault(kind, {})[key] = info
        if known is not None and (turn != known.turn or known.kind != kind):
            self._leave_group(key, known)
        self._oldest.put(key, info)

    def regroup(self, info: QueuedPodInfo) -> None:
        """Update a stored pod, which may change its group."""
        if self._pods[info.pod.key].kind != kind_of(info.pod):
            self.put(info)

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod with this key."""
        found = self._pods.get(key)
        return None if found is None else found.info

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove the pod, if present."""
        found = self._pods.pop(key, None)
        if found is None:
            return None
        self._leave_group(key, found)
        self._oldest.delete(key)
        return found.info

    def kinds(self) -> Iterator[tuple[Rejection, Collection[Group]]]:
        """The stored pods by rejection and group."""
        return ((rejection, kinds.values()) for rejection, kinds in self._groups.items())

    def groups(self) -> Iterator[tuple[Rejection, list[QueuedPodInfo]]]:
        """The stored pods by rejection, in order of insertion."""
        for rejection, kinds in self._groups.items():
            entries = [self._pods[key] for group in kinds.values() for key in group]
            yield rejection, [entry.info for entry in sorted(entries, key=itemgetter(3))]

    def turn(self, moving: tuple[QueuedPodInfo, QueueingStrategy]) -> int:
        """Sort the pods of one rejection by insertion."""
        return self._pods[moving[0].pod.key].turn

    def rejected(self, rejection: Rejection, keys: Iterable[str]) -> list[QueuedPodInfo]:
        """The stored pods among these keys with this rejection."""
        found = [self._pods.get(key) for key in keys]
        return [entry.info for entry in found if entry is not None and entry.rejection == rejection]

    def oldest(self) -> QueuedPodInfo | None:
        """The pod that has waited longest."""
        return self._oldest.peek()

    def gated(self) -> list[QueuedPodInfo]:
        """The gated pods."""
        return [entry.info for entry in self._pods.values() if entry.info.is_gated]

    @property
    def gated_count(self) -> int:
        gated = (kinds for by, kinds in self._groups.items() if by.gating_plugin)
        return sum(len(group) for kinds in gated for group in kinds.values())

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (entry.info for entry in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def _leave_group(self, key: str, entry: UnschedulableEntry) -> None:
        kinds = self._groups[entry.rejection]
        group = kinds[entry.kind]
        del group[key]
        if not group:
            del kinds[entry.kind]
            if not kinds:
                del self._groups[entry.rejection]


def kind_of(pod: Pod) -> Hashable:
    """Group key: pods of one group are equal to hints that depend on the spec only; a pod with
    distinguishing state has its own group."""
    status = pod.status
    if status is not EMPTY_STATUS and (status.nominated_node_name or status.has_resources):
        return pod.key
    return pod.spec
