"""GroupQueue: the scheduling queue in which a pod group is one entry, with all of its members that wait.

Mirrors the pod groups of pkg/scheduler/backend/queue/scheduling_queue.go of v1.37. A group that does not fit is retried
after its backoff; only a group with members held by PreEnqueue waits for events.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import field

from ..api.pod import Pod, PodSpec
from ..api.pod_groups import PodGroup
from ..framework import Status
from ..framework.events import POP_FROM_BACKOFF_Q, SCHEDULE_ATTEMPT_FAILURE
from ..framework.update_events import pod_update_events
from .active import ACTIVE, BACKOFF, GATED, GROUP_ENTRY, POD_ENTRY, UNSCHEDULABLE
from .queued_pod import QueuedPodInfo, Rejection
from .queueing_hints import AFTER_BACKOFF, IMMEDIATELY, SKIP, HintPlan, QueueingStrategy
from .scheduling_queue import SchedulingQueue
from .unschedulable import Group

GroupName = tuple[str, str]
"""Namespace and name."""
INCOMPLETE = "incomplete"
PENDING = "pending"
_STAND_IN = "podgroup:"
"""Prefix that makes the name of a group one that no pod can have."""


class QueuedGroupInfo(QueuedPodInfo):
    """A pod group in the queue. `pod` stands for it, and has the priority of the group."""

    members: list[QueuedPodInfo] = field(default_factory=list)
    """In the order in which they are tried."""
    rejections: frozenset[Rejection] = frozenset()
    """The rejections of its members, while the group is gated."""

    @property
    def name(self) -> GroupName:
        return self.pod.namespace, self.pod.name.removeprefix(_STAND_IN)

    def add(self, info: QueuedPodInfo) -> None:
        """Add a member in its place."""
        insort(self.members, info, key=member_order)

    def find(self, key: str) -> QueuedPodInfo | None:
        """The member with this key."""
        return next((info for info in self.members if info.pod.key == key), None)


def member_order(info: QueuedPodInfo) -> tuple[int, int, float, int]:
    """Members by priority, the highest first, then by attempts, the most first, then in order of arrival."""
    return -info.pod.priority, -info.attempts, info.timestamp, info.turn


def group_name(pod: Pod) -> GroupName | None:
    """The group that the pod is queued with; None if it is queued alone."""
    reference = pod.spec.scheduling_group
    return None if reference is None else (pod.namespace, reference.pod_group_name or "")


class GroupQueue(SchedulingQueue):
    """The queue, with an entry for each group that has waiting members. The entry holds the members, except in two
    cases.

    Members of a group that does not exist yet are `incomplete`. Members that are added or return while their group is
    being tried are `pending`, and form its next entry when the attempt is over.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.pop = self._pop
        self._known: dict[GroupName, PodGroup] = {}
        self._entries: dict[GroupName, QueuedGroupInfo] = {}
        self._entry_of: dict[str, QueuedGroupInfo] = {}
        """By key of a member."""
        self._incomplete: dict[GroupName, dict[str, QueuedPodInfo]] = {}
        self._pending: dict[GroupName, dict[str, QueuedPodInfo]] = {}
        self._popped: GroupName | None = None
        """The group that is being tried."""
        self._left = ""
        """The part of the queue from which an entry was removed; the entry is requeued."""

    # Groups.

    def add_group(self, group: PodGroup) -> None:
        """Queue the members that waited for the group to exist."""
        name = group.namespace, group.name
        self._known[name] = group
        for info in self._incomplete.pop(name, {}).values():
            self._add_member(info, name)

    def update_group(self, group: PodGroup) -> None:
        """Update the entry of a changed group."""
        name = group.namespace, group.name
        self._known[name] = group
        entry = self._entries.get(name)
        if entry is not None:
            entry.pod = stand_in(group, entry.members[0].pod)

    def delete_group(self, group: PodGroup) -> None:
        """Drop the entry of a deleted group; its members wait for a group of that name."""
        name = group.namespace, group.name
        self._known.pop(name, None)
        entry = self._entries.get(name)
        members = self._pending.pop(name, {})
        if entry is not None:
            self._take(entry)
            self._left = ""
            members = {info.pod.key: info for info in entry.members}
            self._forget(entry)
        if members:
            self._incomplete.setdefault(name, {}).update(members)

    # Pods.

    def add(self, pod: Pod) -> None:
        name = group_name(pod)
        if name is None:
            super().add(pod)
            return
        self._turn += 1
        self.nominator.add(pod)
        self._add_member(QueuedPodInfo(pod, self._now()), name)

    def update(self, old: Pod, new: Pod) -> None:
        name = group_name(old)
        if name is None or new.uid in self.in_flight:
            super().update(old, new)
            return
        self._turn += 1
        key, entry = old.key, self._entries.get(name)
        info = entry.find(key) if entry is not None else None
        info = info or self._waiting(self._incomplete, name, key)
        info = info or self._waiting(self._pending, name, key)
        if info is None:
            if name in self._known:
                self.nominator.add(new)
                self._add_member(QueuedPodInfo(new, self._now()), name)
            return
        info.pod = new
        self.nominator.update(old, new)
        if entry is not None and entry.pod.key in self.unschedulable:
            self._on_member_update(entry, old, new)

    def delete(self, pod: Pod) -> None:
        name = group_name(pod)
        if name is None:
            super().delete(pod)
            return
        self.nominator.delete(pod)
        entry = self._entries.get(name)
        if entry is None:
            gone = self._incomplete.get(name, {}).pop(pod.key, None)
            gone = gone or self._pending.get(name, {}).pop(pod.key, None)
        else:
            strategy, gone = self._take(entry), entry.find(pod.key)
            if gone is not None:
                entry.members.remove(gone)
                del self._entry_of[pod.key]
            if entry.members:
                self._requeue(entry, strategy, self._labels[0], self._now())
            else:
                self._left = ""
                self._forget(entry)
        if gone is not None:
            self.counters.count_rejectors(gone, -1)

    # Attempts.

    def _pop(self) -> QueuedPodInfo | None:
        early, counters = (ACTIVE, POP_FROM_BACKOFF_Q), self.counters
        before = counters.incoming.get(early, 0)
        info = self.active.pop()
        if counters.incoming.get(early, 0) > before and info is not None:
            self._count_group(ACTIVE, info, POP_FROM_BACKOFF_Q)
        if isinstance(info, QueuedGroupInfo):
            self._start(info)
        elif info is not None:
            self._popped = None
        return info

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        entry = self._entry_of.get(pod.key)
        if entry is None:
            return super().pop_specific(pod) if group_name(pod) is None else None
        info = super().pop_specific(entry.pod)
        if info is not None:
            self._start(entry)
        return info

    def _start(self, entry: QueuedGroupInfo) -> None:
        """Mark a group and its members as being tried."""
        self._forget(entry)
        self._popped = entry.name
        for info in entry.members:
            info.attempts += 1
            self.in_flight.start(info)
            self.counters.count_rejectors(info, -1)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> str | None:
        name = group_name(info.pod)
        if name is None:
            return super().add_unschedulable_if_not_present(info)
        self.in_flight.done(info.pod.uid)
        self._note_failure(info, self._now())
        self._add_member(info, name)
        return self.part_of(info.pod.key)

    def end_group(self, entry: QueuedGroupInfo, status: Status) -> str | None:
        """End the attempt of a group; returns the part of the queue that has the members without a node, if any.

        After a success they are tried again at once, and otherwise after the backoff of the group.
        """
        self.in_flight.done(entry.pod.uid)
        name, self._popped = entry.name, None
        members = self._pending.pop(name, {})
        group = self._known.get(name)
        if not members or group is None:
            if members:
                self._incomplete.setdefault(name, {}).update(members)
            return None
        tried = {info.pod.uid for info in entry.members}
        had_failures = any(info.pod.uid in tried for info in members.values())
        entry.members = sorted(members.values(), key=member_order)
        entry.pod = stand_in(group, entry.members[0].pod)
        now = self._now()
        if status.is_success:
            entry.consecutive_errors_count = entry.unschedulable_count = 0
        elif status.is_rejected:
            entry.unschedulable_count += 1
            entry.consecutive_errors_count = 0
        else:
            entry.consecutive_errors_count += 1
        if not (status.is_success and had_failures):
            entry.timestamp = now
        if not status.is_success:
            entry.backoff_expiration = self.backoff.expiration(entry, len(entry.members))
        entry.was_flushed_from_unschedulable = False
        entry.flush_timestamp = 0.0
        self._remember(entry)
        strategy = IMMEDIATELY if status.is_success else AFTER_BACKOFF
        return self._requeue(entry, strategy, SCHEDULE_ATTEMPT_FAILURE, now)

    # Contents.

    def get(self, pod: Pod) -> QueuedPodInfo | None:
        name, key = group_name(pod), pod.key
        if name is None:
            return super().get(pod)
        entry = self._entry_of.get(key)
        found = entry.find(key) if entry is not None else self._waiting(self._pending, name, key)
        return found or self._waiting(self._incomplete, name, key)

    def part_of(self, key: str) -> str | None:
        entry = self._entry_of.get(key)
        if entry is not None:
            return super().part_of(entry.pod.key)
        for part, waiting in ((PENDING, self._pending), (INCOMPLETE, self._incomplete)):
            if any(key in members for members in waiting.values()):
                return part
        return super().part_of(key)

    def gated(self) -> list[QueuedPodInfo]:
        found: list[QueuedPodInfo] = []
        for info in super().gated():
            if isinstance(info, QueuedGroupInfo):
                found += [member for member in info.members if member.is_gated]
            else:
                found.append(info)
        return found

    def pending(self) -> dict[str, int]:
        counts = super().pending()
        for entry in self._entries.values():
            part = super().part_of(entry.pod.key)
            part = GATED if part == UNSCHEDULABLE and entry.is_gated else part
            counts[part or ACTIVE] += len(entry.members) - 1
        for part, waiting in ((INCOMPLETE, self._incomplete), (PENDING, self._pending)):
            counts[part] = sum(map(len, waiting.values()))
        return counts

    def entities(self) -> dict[tuple[str, ...], int]:
        counts: dict[tuple[str, ...], int]
        counts = {(part, POD_ENTRY): number for part, number in super().pending().items()}
        counts |= {(part, GROUP_ENTRY): 0 for part, _ in counts}
        for entry in self._entries.values():
            part = super().part_of(entry.pod.key)
            part = (GATED if part == UNSCHEDULABLE and entry.is_gated else part) or ACTIVE
            counts[part, POD_ENTRY] -= 1
            counts[part, GROUP_ENTRY] += 1
        return counts

    def __len__(self) -> int:
        return sum(self.pending().values())

    # Moving entries.

    def _add_member(self, info: QueuedPodInfo, name: GroupName) -> None:
        """Put a member into the entry of its group, wherever that is."""
        group, entry = self._known.get(name), self._entries.get(name)
        now, label = self._now(), self._labels[0]
        self._turn += 1
        info.turn = self._turn
        if group is None:
            self._incomplete.setdefault(name, {})[info.pod.key] = info
        elif entry is not None:
            strategy = self._take(entry)
            entry.add(info)
            self._entry_of[info.pod.key] = entry
            self._requeue(entry, strategy, label, now)
        elif self._popped == name:
            self._pending.setdefault(name, {})[info.pod.key] = info
        else:
            entry = QueuedGroupInfo(
                stand_in(group, info.pod),
                info.timestamp,
                initial_attempt_timestamp=info.initial_attempt_timestamp,
                members=[info],
            )
            self._remember(entry)
            self._to_active(entry, label, now)

    def _remember(self, entry: QueuedGroupInfo) -> None:
        self._entries[entry.name] = entry
        self._entry_of.update((info.pod.key, entry) for info in entry.members)

    def _forget(self, entry: QueuedGroupInfo) -> None:
        self._entries.pop(entry.name, None)
        for info in entry.members:
            self._entry_of.pop(info.pod.key, None)

    def _take(self, entry: QueuedGroupInfo) -> QueueingStrategy:
        """Take an entry out of the queue; returns the strategy that puts it back into the same part."""
        key = entry.pod.key
        if self.active.heap.delete(key) is not None:
            self._left = ACTIVE
            return IMMEDIATELY
        if self.backoff.delete(key) is not None:
            self._left = BACKOFF
            return AFTER_BACKOFF
        self._left = UNSCHEDULABLE
        self.unschedulable.delete(key)
        return SKIP

    def _requeue(
        self, info: QueuedPodInfo, strategy: QueueingStrategy, label: str, now: float
    ) -> str:
        part = super()._requeue(info, strategy, label, now)
        self._left = ""
        return part

    def _count_group(self, part: str, info: QueuedPodInfo, label: str) -> None:
        """Count the members of a group that entered a part of the queue, and the group unless it was there before.

        The entry itself is counted as a pod already.
        """
        if isinstance(info, QueuedGroupInfo):
            self.counters.incoming[part, label] += len(info.members) - 1
            self.counters.incoming_members[part, label] += len(info.members)
            self.counters.incoming_groups[part, label] += part != self._left

    def _to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        has_entered = super()._to_backoff(info, label)
        if has_entered:
            self._count_group(BACKOFF, info, label)
        return has_entered

    def _to_unschedulable(self, info: QueuedPodInfo, label: str) -> None:
        if info.pod.key not in self.unschedulable:
            self._count_group(UNSCHEDULABLE, info, label)
        super()._to_unschedulable(info, label)

    @staticmethod
    def _waiting(
        waiting: dict[GroupName, dict[str, QueuedPodInfo]], name: GroupName, key: str
    ) -> QueuedPodInfo | None:
        return waiting[name].get(key) if name in waiting else None

    def _activate(self, key: str) -> bool:
        entry = self._entry_of.get(key)
        return super()._activate(key if entry is None else entry.pod.key)

    def _enter_active(self, info: QueuedPodInfo, label: str, now: float) -> None:
        super()._enter_active(info, label, now)
        self._count_group(ACTIVE, info, label)
        if isinstance(info, QueuedGroupInfo):
            for member in info.members:
                if member.initial_attempt_timestamp is None:
                    member.initial_attempt_timestamp = now

    def _gate(self, info: QueuedPodInfo) -> bool:
        """Gate a group if a member is gated; the plugin that gates the last such member counts."""
        if not isinstance(info, QueuedGroupInfo):
            return super()._gate(info)
        held = [member for member in info.members if super(GroupQueue, self)._gate(member)]
        info.gated_by = held[-1].gated_by if held else None
        rejections = (member.rejection for member in info.members) if held else ()
        info.rejections = frozenset(rejections)
        return bool(held)

    # Events.

    def _on_member_update(self, entry: QueuedGroupInfo, old: Pod, new: Pod) -> None:
        """Requeue a gated group after a change of a member; the first change that moves it is enough."""
        for event in pod_update_events(old, new, self._names_targets):
            plan = self._hints.plan(event)
            strategy = _best(plan, entry, old, new)
            if strategy is SKIP:
                continue
            if self._requeue(entry, strategy, plan.label, self._now()) in (ACTIVE, BACKOFF):
                return

    def _worth(
        self, plan: HintPlan, rejection: Rejection, kinds: Collection[Group], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
        """The entries that the event requeues. Groups have no rejectors of their own: hints are called for their
        members.
        """
        if rejection.plugins:
            return super()._worth(plan, rejection, kinds, old, new)
        found: list[tuple[QueuedPodInfo, QueueingStrategy]] = []
        affected: dict[Rejection, Iterable[str] | None] = {}
        for info in (info for kind in kinds for info in kind.values()):
            if not isinstance(info, QueuedGroupInfo):
                found += plan.worth(rejection, (info,), old, new)
                continue
            if len(info.rejections) == 1:
                (own,) = info.rejections
                if own not in affected:
                    affected[own] = plan.affected(own, old, new)
                keys = affected[own]
                if keys is not None and not any(self._entry_of.get(k) is info for k in keys):
                    continue
            strategy = _best(plan, info, old, new)
            if strategy is not SKIP:
                found.append((info, strategy))
        return found


def _best(plan: HintPlan, entry: QueuedGroupInfo, old: Any, new: Any) -> QueueingStrategy:
    """The most urgent strategy for a member of the group."""
    best = SKIP
    for info in entry.members:
        strategy = plan.strategy(info, info.rejection, old, new)
        if strategy is IMMEDIATELY:
            return strategy
        if strategy is AFTER_BACKOFF:
            best = strategy
    return best


def stand_in(group: PodGroup, member: Pod) -> Pod:
    """A pod that stands for a group in the queue, with the scheduler of `member`."""
    spec = PodSpec(
        priority=group.spec.priority or 0,
        scheduler_name=member.scheduler_name,
        scheduling_group=member.spec.scheduling_group,
    )
    return Pod(f"{_STAND_IN}{group.name}", group.namespace, f"{_STAND_IN}{group.key}", spec=spec)
