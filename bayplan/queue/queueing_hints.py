"""QueueingHints: which events requeue which pods.

Mirrors isPodWorthRequeuing and isEventOfInterest of
pkg/scheduler/backend/queue/scheduling_queue.go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import wraps
from time import perf_counter
from typing import Any, TypeAlias

from ..api.pod import Pod
from ..framework.events import (
    EACH_SPEC,
    Affected,
    CalledFor,
    ClusterEvent,
    Hint,
    HintFunction,
    targets_of,
)
from ..observe.scheduler_metrics import SchedulerMetrics
from ..releases.release import GatedPods
from .queued_pod import QueuedPodInfo, Rejection

log = logging.getLogger(__name__)

Registration: TypeAlias = tuple[ClusterEvent, str, HintFunction | None]
"""An event pattern, the plugin that registered it, and its hint; without a hint every such event
requeues."""

HintMap: TypeAlias = Mapping[str, Iterable[Registration]]
"""The registrations of each profile."""


class QueueingStrategy(Enum):
    """Destination of a pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


SKIP, AFTER_BACKOFF, IMMEDIATELY = (
    QueueingStrategy.SKIP,
    QueueingStrategy.AFTER_BACKOFF,
    QueueingStrategy.IMMEDIATELY,
)

Calls: TypeAlias = Sequence[tuple[HintFunction | None, QueueingStrategy]]
"""The hints to call, the most urgent strategy first, and the strategy of each if it returns Queue."""

Kind: TypeAlias = Mapping[str, QueuedPodInfo]
"""Groups of pods, by key, that are equal to hints that depend on the spec only."""

ALWAYS: Calls = ((None, AFTER_BACKOFF),)
SCHEDULING_GATES = "SchedulingGates"


class QueueingHints:
    """The registrations of all profiles, each event matched with them once."""

    def __init__(
        self,
        registrations: HintMap,
        metrics: SchedulerMetrics | None = None,
        gated_pods: GatedPods = GatedPods.FLUSH,
    ) -> None:
        self._gated_pods = gated_pods
        self._metrics = metrics or SchedulerMetrics()
        self._by_profile = {name: tuple(listed) for name, listed in registrations.items()}
        self._plans: dict[ClusterEvent, HintPlan] = {}

    def plan(self, event: ClusterEvent) -> HintPlan:
        """The registrations that match an event."""
        plan = self._plans.get(event)
        if plan is None:
            plan = self._plans[event] = HintPlan(
                event, self._by_profile, self._metrics, self._gated_pods
            )
        return plan


class HintPlan:
    """The hints for one kind of event, for pods with certain rejectors."""

    def __init__(
        self,
        event: ClusterEvent,
        by_profile: Mapping[str, Iterable[Registration]],
        metrics: SchedulerMetrics,
        gated_pods: GatedPods = GatedPods.FLUSH,
    ) -> None:
        self._is_wildcard = event.is_wildcard
        self._gated_pods = gated_pods
        self._matching = {
            profile: [(plugin, hint) for pattern, plugin, hint in listed if pattern.matches(event)]
            for profile, listed in by_profile.items()
        }
        self._plugins = {plugin for found in self._matching.values() for plugin, _ in found}
        self._calls: dict[Rejection, Calls] = {}
        self._affected: dict[Rejection, Sequence[Affected] | None] = {}
        self._timed_calls: dict[Rejection, Calls] = {}
        self._metrics = metrics
        self.label = str(event)
        self.is_of_interest = self._is_wildcard or bool(self._plugins)
        self.handling = metrics.event_handling.labels(self.label)
        """Seconds spent on such events."""
        self.ignored = metrics.event_handling.together([(self.label,)])
        """Events of that kind that no pod waited for."""

    def can_open(self, gating_plugin: str) -> bool:
        """Whether pods gated by the plugin must be checked; "" stands for pods that are not gated."""
        # Upstream checks whether the gating plugin registered the event in any profile, not in the
        # pod's.
        if not gating_plugin:
            return True
        if self._gated_pods is GatedPods.ALL_EVENTS:
            return gating_plugin != SCHEDULING_GATES
        is_for_all = self._is_wildcard and self._gated_pods is not GatedPods.OWN_EVENTS
        return is_for_all or gating_plugin in self._plugins

    def worth(
        self, rejection: Rejection, infos: Iterable[QueuedPodInfo], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
        """The pods of `infos`, all with this rejection, that the event requeues, with their strategies."""
        if self._is_wildcard and new is not None and rejection.plugins:
            # An event about one particular pod.
            target = new.uid if isinstance(new, Pod) else None
            return [(info, AFTER_BACKOFF) for info in infos if info.pod.uid == target]
        calls = self._calls_for(rejection)
        return ask(calls, infos, old, new) if calls else []

    def worth_of_kinds(
        self, rejection: Rejection, kinds: Iterable[Kind], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
        """The pods of `kinds` that the event requeues; hints that depend on the spec only are called once per group."""
        if self._is_wildcard:
            infos = (info for kind in kinds for info in kind.values())
            return self.worth(rejection, infos, old, new)
        calls = self._calls_for(rejection)
        if not calls:
            return []
        about = [obj for obj in (old, new) if isinstance(obj, Pod)]
        worth = []
        for kind in kinds:
            worth += ask_kind(calls, kind, old, new, about)
        return worth

    def _calls_for(self, rejection: Rejection) -> Calls:
        is_timed = self._metrics.is_sampled()
        known = self._timed_calls if is_timed else self._calls
        calls = known.get(rejection)
        if calls is None:
            calls = known[rejection] = self._find_calls(rejection, is_timed)
        return calls

    def strategy(
        self, info: QueuedPodInfo, rejection: Rejection, old: Any, new: Any
    ) -> QueueingStrategy:
        """The strategy for one pod."""
        if self._is_wildcard:
            worth = self.worth(rejection, (info,), old, new)
            return worth[0][1] if worth else SKIP
        calls = self._calls_for(rejection)
        return ask_for(calls, info.pod, old, new) if calls else SKIP

    def affected(self, rejection: Rejection, old: Any, new: Any) -> Iterable[str] | None:
        """The keys of the pods with this rejection that the event may affect; None if it may affect any of them."""
        if self._is_wildcard:
            return None
        if rejection not in self._affected:
            self._affected[rejection] = self._targets(rejection)
        targets = self._affected[rejection]
        if targets is None:
            return None
        keys: dict[str, None] = {}
        for ask_for_keys in targets:
            found = ask_for_keys(old, new)
            if found is None:
                return None
            keys.update(dict.fromkeys(found))
        return keys

    def _targets(self, rejection: Rejection) -> Sequence[Affected] | None:
        """Functions by which the hints name the pods that an event may affect; None if a hint has none."""
        targets: list[Affected] = []
        for hint, _ in self._find_calls(rejection, is_timed=False):
            target = None if hint is None else targets_of(hint)
            if target is None or isinstance(target, CalledFor):
                return None
            targets.append(target)
        return targets

    def _find_calls(self, rejection: Rejection, is_timed: bool) -> Calls:
        if not rejection.plugins or self._is_wildcard or rejection.profile not in self._matching:
            return ALWAYS
        matching = self._matching[rejection.profile]
        if is_timed:
            matching = [(name, hint and self._timed(name, hint)) for name, hint in matching]
        # A pending plugin takes precedence, even if it is also among the unschedulable plugins.
        urgent = [(hint, IMMEDIATELY) for name, hint in matching if name in rejection.pending]
        patient = [
            (hint, AFTER_BACKOFF)
            for name, hint in matching
            if name in rejection.unschedulable and name not in rejection.pending
        ]
        return (*urgent, *patient)

    def _timed(self, plugin: str, hint: HintFunction) -> HintFunction:
        """The hint, with its duration recorded."""

        @wraps(hint)  # copies the attribute of `called_for`, too
        def timed(pod: Pod, old: Any, new: Any) -> Hint:
            outcome, started = "Error", perf_counter()
            try:
                answer = hint(pod, old, new)
                outcome = (Hint.SKIP if answer is Hint.SKIP else Hint.QUEUE).value
            finally:
                seconds = perf_counter() - started
                self._metrics.hint_duration.labels(plugin, self.label, outcome).observe(seconds)
            return answer

        return timed


def is_flushed(gating_plugin: str, gated_pods: GatedPods) -> bool:
    """Whether the flush includes a pod that the plugin holds."""
    if gated_pods is GatedPods.ALL_EVENTS:
        return gating_plugin != SCHEDULING_GATES
    return gated_pods is not GatedPods.OWN_EVENTS


def ask(
    calls: Calls, infos: Iterable[QueuedPodInfo], old: Any, new: Any
) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
    """The pods to requeue, with their strategies."""
    return [
        (info, strategy)
        for info in infos
        if (strategy := ask_for(calls, info.pod, old, new)) is not SKIP
    ]


def ask_kind(
    calls: Calls, kind: Kind, old: Any, new: Any, about: Collection[Pod]
) -> list[tuple[QueuedPodInfo, QueueingStrategy]]:
    """The pods to requeue of a group of equal pods: hints are called once, and singly for pods the event is `about`."""
    special = [info for pod in about if (info := kind.get(pod.key)) is not None]
    if len(kind) - len(special) < 2 or not all(
        h is None or targets_of(h) is EACH_SPEC for h, _ in calls
    ):
        return ask(calls, kind.values(), old, new)
    sample = next(info for info in kind.values() if info not in special)
    strategy = ask_for(calls, sample.pod, old, new)
    if special:
        return [
            (info, found)
            for info in kind.values()
            if (found := ask_for(calls, info.pod, old, new) if info in special else strategy)
            is not SKIP
        ]
    return [] if strategy is SKIP else [(info, strategy) for info in kind.values()]


def ask_for(calls: Calls, pod: Pod, old: Any, new: Any) -> QueueingStrategy:
    """The strategy for one pod; a hint that raises counts as Queue."""
    for hint, strategy in calls:
        try:
            if hint is not None and hint(pod, old, new) is Hint.SKIP:
                continue
        except Exception:  # a plugin may raise anything
            log.exception("the hint %r failed for pod %s; it is tried again", hint, pod.key)
        return strategy
    return SKIP
