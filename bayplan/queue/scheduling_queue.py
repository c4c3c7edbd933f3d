"""SchedulingQueue: the pending pods, from creation to binding.

Mirrors pkg/scheduler/backend/queue/scheduling_queue.go, with queueing hints on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from time import perf_counter
from typing import Any

from ..api.pod import Pod
from ..clock import Clock
from ..framework import Status
from ..framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from ..framework.faults import FAULT
from ..framework.update_events import pod_update_events
from ..observe.logs import step, v
from ..observe.scheduler_metrics import SchedulerMetrics
from ..releases.release import GatedPods
from .active import ACTIVE, BACKOFF, GATED, POD_ENTRY, UNSCHEDULABLE, ActiveQueue, QueueCounters
from .backoff import LEFTOVER_TICK_S, QueueSettings, last_tick, make_backoff_queue, micros
from .nominator import PodNominator
from .queued_pod import QueuedPodInfo, Rejection
from .queueing_hints import (
    AFTER_BACKOFF,
    IMMEDIATELY,
    SKIP,
    HintMap,
    HintPlan,
    QueueingHints,
    QueueingStrategy,
    is_flushed,
)
from .unschedulable import Group, UnschedulablePods

log = logging.getLogger(__name__)

FAILURES = v(3)
"""Log level of moves after a failed attempt; moves by other events are logged at level 4."""


class SchedulingQueue:
    """A pod is in one of four places: active (ready), backoff, unschedulable (rejected or gated), in flight.

    Pods are keyed by namespace and name in the first three, and by uid in flight: a pod may be
    recreated under its name while the attempt of the old one is running. There is no background
    work: `next_timer` is the time for the next call of `flush_due`. Times are seconds since 1970 by the clock's
    time of day, as backoff ends with whole seconds.
    """

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPodInfo], Any],
        pre_enqueue: Callable[[Pod], Status],
        *,
        hints: HintMap | None = None,
        settings: QueueSettings | None = None,
        nominator: PodNominator | None = None,
        metrics: SchedulerMetrics | None = None,
    ) -> None:
        settings = settings or QueueSettings()
        release = settings.gates.release
        self._clock = clock
        self._pre_enqueue = pre_enqueue
        self._hints = QueueingHints(hints or {}, metrics, release.gated_pods)
        self._gated_pods = release.gated_pods
        self._activates_by_gates = release.activation_runs_pre_enqueue
        self._max_waiting_s = settings.pod_max_in_unschedulable_pods_s
        self._has_groups = settings.gates.enabled("GenericWorkload")
        self._nominates_gated = release.gated_nominations
        self._names_targets = release.names_target_pods
        self._labels = settings.labels
        self._nominating_labels = () if self._nominates_gated else self._labels
        self._turn = 0
        self._started = self._last_tick = clock.timestamp()
        self.counters = QueueCounters()
        self.backoff = make_backoff_queue(settings, sort_key, self._started)
        self.active = ActiveQueue(sort_key, self.backoff, self.counters)
        self.in_flight = self.active.in_flight
        self.pop = self.active.pop
        """Return the next pod to schedule, None when none is ready. End the attempt with `done`, or
        by requeueing the pod."""
        self.done = self.in_flight.done
        """End the attempt of a pod (by uid) that is not requeued."""
        self.unschedulable = UnschedulablePods()
        self.nominator = PodNominator() if nominator is None else nominator

    # Adding, updating and deleting pods.

    def add(self, pod: Pod) -> None:
        """Add a new pod."""
        now = self._now()
        self._turn += 1
        if self._nominates_gated:
            self.nominator.add(pod)
        self._to_active(QueuedPodInfo(pod, now), self._labels[0], now)

    def update(self, old: Pod, new: Pod) -> None:
        """Update a pending pod; a rejected or gated one moves when one of its rejectors' hints returns Queue."""
        if new.uid in self.in_flight:
            for event in pod_update_events(old, new, self._names_targets):
                self.in_flight.record(event, old, new)
            return
        key = old.key
        info = self.active.heap.get(key)
        if info is not None:
            info.pod = new
            self.active.heap.put(key, info)
        else:
            info = self.backoff.replace_pod(key, new)
        if info is not None:
            self.nominator.update(old, new)
            return
        self._turn += 1
        info = self.unschedulable.get(new.key)
        if info is not None:
            info.pod = new
            self.nominator.update(old, new)
            self._on_own_update(info, old)
            return
        now = self._now()
        if self._nominates_gated:
            self.nominator.add(new)
        self._to_active(QueuedPodInfo(new, now), self._labels[1], now)

    def delete(self, pod: Pod) -> None:
        """Remove a deleted or assigned pod; a running attempt continues until `done`."""
        self.nominator.delete(pod)
        key = pod.key
        if self.active.heap.delete(key) is None and self.backoff.delete(key) is None:
            info = self.unschedulable.delete(key)
            if info is not None:
                self.counters.count_rejectors(info, -1)

    # Attempts.

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """Activate a pod, and pop it as `pop` would; None when it is not in the queue, or gated."""
        self._activate(pod.key)
        return self.active.pop_specific(pod.key)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> str | None:
        """Requeue a popped pod whose attempt failed; an attempt without rejectors failed with an error.

        Returns the part of the queue it is in now; None when a pod of its name was added meanwhile,
        and this one is dropped.
        """
        pod = info.pod
        try:
            if self.part_of(pod.key) is not None:
                log.debug("pod %s is in the queue already; the failed attempt is dropped", pod.key)
                return None
            now = self._now()
            self._note_failure(info, now)
            return self._requeue(info, self._missed(info), SCHEDULE_ATTEMPT_FAILURE, now)
        finally:
            self.in_flight.done(pod.uid)

    # Events.

    def count_ignored(self, event: ClusterEvent, number: int) -> bool:
        """Count `number` events that no pod waits for; False, without effect, if a pod may wait for one, or is being
        tried.
        """
        if self.unschedulable or self.backoff.members or self.in_flight.infos():
            return False
        self._hints.plan(event).ignored.count += number
        return True

    def move_all_to_active_or_backoff(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> int:
        """Move the unschedulable pods that the event requeues; return how many moved.

        An event that no plugin registered costs one look-up; pods whose rejectors did not register it are not visited.
        """
        if self.backoff.members:
            self.backoff.changed()
        plan = self._hints.plan(event)
        if not plan.is_of_interest:
            plan.ignored.count += 1
            return 0
        if not self.unschedulable:
            plan.ignored.count += 1
            self.in_flight.record(event, old, new)
            return 0
        started = perf_counter()
        moving: list[tuple[QueuedPodInfo, QueueingStrategy]] = []
        for rejection, kinds in self.unschedulable.kinds():
            if not plan.can_open(rejection.gating_plugin):
                continue
            worth = self._worth(plan, rejection, kinds, old, new)
            if pre_check is not None:
                worth = [(info, strategy) for info, strategy in worth if pre_check(info.pod)]
            moving.extend(worth)
        moved = self._move(moving, event, old, new)
        plan.handling.observe(perf_counter() - started)
        return moved

    def _worth(
        self, plan: HintPlan, rejection: Rejection, kinds: Collection[Group], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
        """The pods with this rejection, in `kinds`, that the event requeues, with their strategies."""
        keys = plan.affected(rejection, old, new)
        if keys is None:
            worth = plan.worth_of_kinds(rejection, kinds, old, new)
            if len(kinds) > 1:
                worth.sort(key=self.unschedulable.turn)
            return worth
        infos = self.unschedulable.rejected(rejection, keys)
        return plan.worth(rejection, infos, old, new) if infos else []

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make pods active at once, ignoring backoff; one in flight is retried when it returns."""
        for pod in pods:
            if not self._activate(pod.key) and pod.uid in self.in_flight:
                self.in_flight.record(FORCE_ACTIVATE, None, pod)

    def activate_members(self, pods: Mapping[str, Pod]) -> None:
        """Make members of a pod group active at once, by uid; those in flight are left out."""
        if not self._has_groups:
            self.activate(pods.values())
            return
        in_flight = self.in_flight.uids
        if not pods.keys() <= in_flight:
            self.activate([pod for uid, pod in pods.items() if uid not in in_flight])

    # Time.

    def flush_backoff_completed(self) -> int:
        """Make the pods active whose backoff is over; return how many."""
        now = self._now()
        completed = self.backoff.pop_completed(now)
        for info in completed:
            self._leave_backoff(info, BACKOFF_COMPLETE, now)
        return len(completed)

    def flush_unschedulable_leftover(self, tick: float) -> int:
        """Retry the pods that exceeded the unschedulable limit at `tick`; return how many moved."""
        now = self._now()
        limit, leftover = micros(self._max_waiting_s), []
        while (info := self.unschedulable.oldest()) is not None:
            if micros(tick) - micros(info.waiting_since) <= limit:
                break
            is_left = not info.is_gated or is_flushed(info.gating_plugin, self._gated_pods)
            info.was_flushed_from_unschedulable = is_left
            info.flush_timestamp = now
            self.unschedulable.put(info)  # restarts its limit if it stays
            if is_left:
                leftover.append((info, AFTER_BACKOFF))
        moved = self._move(leftover, UNSCHEDULABLE_TIMEOUT, None, None) if leftover else 0
        if self._gated_pods in (GatedPods.ALL_EVENTS, GatedPods.EVERY_FLUSH):
            for info in (info for info, _ in leftover if info.is_gated):
                info.flush_timestamp = 0.0
                self.unschedulable.put(info)
        return moved

    def flush_due(self) -> int:
        """Run the periodic flushes due by now, every second and every 30 seconds; return how many
        pods moved."""
        moved = self.flush_backoff_completed()
        tick = last_tick(self._started, self._now(), LEFTOVER_TICK_S)
        if tick > self._last_tick:
            self._last_tick = tick
            moved += self.flush_unschedulable_leftover(tick)
        return moved

    def next_timer(self) -> float | None:
        """Time when `flush_due` can next move a pod, by the clock's `monotonic`; None when no timer is needed."""
        times = [self.backoff.next_completion()]
        oldest = self.unschedulable.oldest()
        if oldest is not None:
            overdue = oldest.waiting_since + self._max_waiting_s
            passed = max(last_tick(self._started, overdue, LEFTOVER_TICK_S), self._last_tick)
            times.append(passed + LEFTOVER_TICK_S)
        known = [time for time in times if time is not None]
        if not known:
            return None
        return self._clock.monotonic() + min(known) - self._now()

    # Contents.

    def get(self, pod: Pod) -> QueuedPodInfo | None:
        """The entry of a pending pod, by its name; None for one in flight."""
        key = pod.key
        return self.active.heap.get(key) or self.unschedulable.get(key) or self.backoff.get(key)

    def part_of(self, key: str) -> str | None:
        """The part of the queue that has a pod of this name."""
        if key in self.unschedulable:
            return UNSCHEDULABLE
        if key in self.active.heap:
            return ACTIVE
        return BACKOFF if key in self.backoff else None

    def gated(self) -> list[QueuedPodInfo]:
        """The gated pods."""
        return self.unschedulable.gated()

    def pending(self) -> dict[str, int]:
        """Number of pending pods per part of the queue; gated ones are separate."""
        gated = self.unschedulable.gated_count
        ready, backing_off = len(self.active.heap), len(self.backoff)
        rest = {UNSCHEDULABLE: len(self.unschedulable) - gated, GATED: gated}
        return {ACTIVE: ready, BACKOFF: backing_off, **rest}

    def entities(self) -> dict[tuple[str, ...], int]:
        """Number of entries per part of the queue and type."""
        return {(part, POD_ENTRY): number for part, number in self.pending().items()}

    @property
    def waits_for_events(self) -> bool:
        """Whether no pod is ready or backs off."""
        return not self.active.heap and not self.backoff

    def __len__(self) -> int:
        """Number of pending pods, without those in flight."""
        return len(self.active.heap) + len(self.backoff) + len(self.unschedulable)

    # Moving pods.

    def _now(self) -> float:
        return self._clock.timestamp()

    def _note_failure(self, info: QueuedPodInfo, now: float) -> None:
        """Count a failed attempt, and set the backoff."""
        if info.has_rejectors:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp = now
        info.backoff_expiration = self.backoff.expiration(info)
        info.was_flushed_from_unschedulable = False
        info.flush_timestamp = 0.0
        self.counters.count_rejectors(info, +1)

    def _missed(self, info: QueuedPodInfo) -> QueueingStrategy:
        """The strategy from the events since the pop; after an error, or for a pod not in flight,
        Queue. A pod that failed by a fault of a plugin always waits."""
        if FAULT in info.unschedulable_plugins:
            return SKIP
        if not info.has_rejectors or info.pod.uid not in self.in_flight:
            return AFTER_BACKOFF
        if self._has_groups and info.pod.spec.scheduling_group is not None:
            return AFTER_BACKOFF  # events are ignored for members of a pod group
        if not self.in_flight.event_count:
            return SKIP
        rejection, strategy = info.rejection, SKIP
        for event, old, new in self.in_flight.events_since(info.pod.uid):
            found = self._hints.plan(event).strategy(info, rejection, old, new)
            if found is IMMEDIATELY:
                return found
            if found is AFTER_BACKOFF:
                strategy = found
                if not info.pending_plugins:  # only a pending plugin can requeue it more urgently
                    break
        return strategy

    def _on_own_update(self, info: QueuedPodInfo, old: Pod) -> None:
        """Update an unschedulable pod; the first change that moves it is enough."""
        rejection = info.rejection
        for event in pod_update_events(old, info.pod, self._names_targets):
            plan = self._hints.plan(event)
            strategy = plan.strategy(info, rejection, old, info.pod)
            if strategy is not SKIP:
                if self._requeue(info, strategy, plan.label, self._now()) != UNSCHEDULABLE:
                    return
                rejection = info.rejection
        self.unschedulable.regroup(info)

    def _move(
        self,
        moving: list[tuple[QueuedPodInfo, QueueingStrategy]],
        event: ClusterEvent,
        old: Any,
        new: Any,
    ) -> int:
        label, moved = self._hints.plan(event).label, 0
        now = self._now() if moving else 0.0
        self._turn += 1
        for info, strategy in moving:
            self.unschedulable.delete(info.pod.key)
            moved += self._requeue(info, strategy, label, now) != UNSCHEDULABLE
        self.in_flight.record(event, old, new)
        return moved

    def _requeue(
        self, info: QueuedPodInfo, strategy: QueueingStrategy, label: str, now: float
    ) -> str:
        """Put the pod into a part of the queue and return the part."""
        if strategy is SKIP:
            self._to_unschedulable(info, label)
            return UNSCHEDULABLE
        if strategy is AFTER_BACKOFF and self.backoff.is_backing_off(info, now):
            return BACKOFF if self._to_backoff(info, label) else UNSCHEDULABLE
        return ACTIVE if self._to_active(info, label, now) else UNSCHEDULABLE

    def _activate(self, key: str) -> bool:
        """Make an unschedulable or backing-off pod active; False when it is neither, or stays gated."""
        info, label = self.unschedulable.get(key), FORCE_ACTIVATE.label
        if info is not None:
            return self._to_active(info, label, self._now())
        info = self.backoff.delete(key)
        if info is not None and self._activates_by_gates:
            return self._to_active(info, label, self._now())
        return info is not None and self._leave_backoff(info, label, self._now())

    def _to_active(self, info: QueuedPodInfo, label: str, now: float) -> bool:
        """Make the pod active unless a PreEnqueue plugin gates it."""
        if self._gate(info):
            key = info.pod.key
            if key not in self.active.heap and key not in self.backoff:
                self._hold(info, label)
            return False
        self._enter_active(info, label, now)
        return True

    def _to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        """Put the pod into backoff unless a PreEnqueue plugin gates it."""
        # Pods leave the backoff queue without PreEnqueue, so the plugins run when a pod enters it.
        if not self.backoff.is_exact and self._gate(info):
            self._hold(info, label)
            return False
        self.unschedulable.delete(info.pod.key)
        self.backoff.add(info)
        self.counters.incoming[BACKOFF, label] += 1
        self._log_move(BACKOFF, info, label)
        return True

    def _leave_backoff(self, info: QueuedPodInfo, label: str, now: float) -> bool:
        """Make a pod active that was in backoff; False when a PreEnqueue plugin gates it."""
        if self.backoff.is_exact:  # the plugins did not run when it entered
            return self._to_active(info, label, now)
        self._enter_active(info, label, now)
        return True

    def _enter_active(self, info: QueuedPodInfo, label: str, now: float) -> None:
        key = info.pod.key
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp, info.turn = now, self._turn
        self.unschedulable.delete(key)
        self.backoff.delete(key)
        self.active.heap.put(key, info)
        self.counters.incoming[ACTIVE, label] += 1
        if log.isEnabledFor(FAILURES):
            self._log_move(ACTIVE, info, label)
        if label in self._nominating_labels:  # restore the nomination in its status
            self.nominator.add(info.pod)

    def _hold(self, info: QueuedPodInfo, label: str) -> None:
        # Usually the next failure clears the mark; a gated pod has no next attempt.
        info.was_flushed_from_unschedulable = False
        self._to_unschedulable(info, label)

    def _to_unschedulable(self, info: QueuedPodInfo, label: str) -> None:
        if info.pod.key not in self.unschedulable:
            self.counters.incoming[UNSCHEDULABLE, label] += 1
            self._log_move(UNSCHEDULABLE, info, label)
        self.unschedulable.put(info)

    def _log_move(self, part: str, info: QueuedPodInfo, label: str) -> None:
        """The pod entered a part of the queue because of an event."""
        if log.isEnabledFor(FAILURES):
            number = 3 if label == SCHEDULE_ATTEMPT_FAILURE else 4
            keys = {"pod": info.pod.key, "event": label, "queue": part.capitalize()}
            step(log, number, "The pod entered a part of the queue", **keys)

    def _gate(self, info: QueuedPodInfo) -> bool:
        """Run the PreEnqueue plugins; True when one gates the pod, which then counts as a rejector."""
        status = self._pre_enqueue(info.pod)
        if status.is_success:
            info.gated_by = None
            return False
        info.gated_by = status
        if log.isEnabledFor(FAILURES):
            keys = {"pod": info.pod.key, "plugin": status.plugin, "status": status.message}
            step(log, 4, "PreEnqueue holds the pod", **keys)
        if status.plugin not in info.unschedulable_plugins | info.pending_plugins:
            self.counters.rejected_by[status.plugin, info.pod.scheduler_name] += 1
        info.unschedulable_plugins |= {status.plugin}
        return True
