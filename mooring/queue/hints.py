"""QueueingHints: which events are worth a new attempt of which pods.

Mirrors isPodWorthRequeuing and isEventOfInterest of pkg/scheduler/backend/queue/scheduling_queue.go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from ..api.pod import Pod
from ..framework.events import ClusterEvent, Hint, HintFunction, NarrowHint
from .queued_pod import QueuedPodInfo, Rejection

log = logging.getLogger(__name__)

Registration: TypeAlias = tuple[ClusterEvent, str, HintFunction | None]
"""A pattern for events, the plugin that asks for them, and its hint; without one every such event is worth it."""

HintMap: TypeAlias = Mapping[str, Iterable[Registration]]
"""The registrations of each profile."""


class Strategy(Enum):
    """What becomes of a waiting pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


SKIP, AFTER_BACKOFF, IMMEDIATELY = Strategy.SKIP, Strategy.AFTER_BACKOFF, Strategy.IMMEDIATELY

Calls: TypeAlias = Sequence[tuple[HintFunction | None, Strategy]]
"""The hints to ask, the strongest outcome first, and what it means when one says Queue."""

ALWAYS: Calls = ((None, AFTER_BACKOFF),)


class QueueingHints:
    """The registrations of all profiles, each event matched with them once."""

    def __init__(self, registrations: HintMap) -> None:
        self._by_profile = {name: tuple(listed) for name, listed in registrations.items()}
        self._plans: dict[ClusterEvent, Plan] = {}

    def plan(self, event: ClusterEvent) -> Plan:
        """What there is to ask about an event."""
        plan = self._plans.get(event)
        if plan is None:
            plan = self._plans[event] = Plan(event, self._by_profile)
        return plan


class Plan:
    """What there is to ask about one kind of event, for pods with some rejectors."""

    def __init__(
        self, event: ClusterEvent, by_profile: Mapping[str, Iterable[Registration]]
    ) -> None:
        self._is_wildcard = event.is_wildcard
        self._matching = {
            profile: [(plugin, hint) for pattern, plugin, hint in listed if pattern.matches(event)]
            for profile, listed in by_profile.items()
        }
        self._plugins = {plugin for found in self._matching.values() for plugin, _ in found}
        self._calls: dict[Rejection, Calls] = {}
        self.label = str(event)
        self.is_of_interest = self._is_wildcard or bool(self._plugins)

    def can_open(self, gating_plugin: str) -> bool:
        """Whether pods that the plugin holds back are to be looked at; "" stands for pods nobody holds back."""
        # Upstream asks whether the gating plugin registered the event in any profile, not in the pod's.
        return not gating_plugin or self._is_wildcard or gating_plugin in self._plugins

    def concerned(
        self, rejection: Rejection, waiting: Mapping[str, QueuedPodInfo], old: Any, new: Any
    ) -> Iterable[QueuedPodInfo]:
        """Those of `waiting`, pods with this rejection by key, that may be worth a new attempt at all."""
        keys: dict[str, None] = {}
        for hint, _ in self._calls_for(rejection):
            concerned = hint.concerns(old, new) if isinstance(hint, NarrowHint) else None
            if concerned is None:
                return waiting.values()
            keys.update(dict.fromkeys(concerned))
        return [waiting[key] for key in keys if key in waiting]

    def worth(
        self, rejection: Rejection, infos: Iterable[QueuedPodInfo], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, Strategy]]:
        """Which of `infos`, pods with this rejection, the event is worth a new attempt of, and how urgent it is."""
        if self._is_wildcard and new is not None and rejection.plugins:
            # A call for one particular pod.
            target = new.uid if isinstance(new, Pod) else None
            return [(info, AFTER_BACKOFF) for info in infos if info.pod.uid == target]
        calls = self._calls_for(rejection)
        return ask(calls, infos, old, new) if calls else []

    def strategy(self, info: QueuedPodInfo, rejection: Rejection, old: Any, new: Any) -> Strategy:
        """What becomes of one pod."""
        worth = self.worth(rejection, (info,), old, new)
        return worth[0][1] if worth else SKIP

    def _calls_for(self, rejection: Rejection) -> Calls:
        calls = self._calls.get(rejection)
        if calls is None:
            calls = self._calls[rejection] = self._find_calls(rejection)
        return calls

    def _find_calls(self, rejection: Rejection) -> Calls:
        if not rejection.plugins or self._is_wildcard or rejection.profile not in self._matching:
            return ALWAYS
        matching = self._matching[rejection.profile]
        # A plugin that is pending has the last word, also when it is among the unschedulable ones.
        urgent = [(hint, IMMEDIATELY) for name, hint in matching if name in rejection.pending]
        patient = [
            (hint, AFTER_BACKOFF)
            for name, hint in matching
            if name in rejection.unschedulable and name not in rejection.pending
        ]
        return (*urgent, *patient)


def ask(
    calls: Calls, infos: Iterable[QueuedPodInfo], old: Any, new: Any
) -> list[tuple[QueuedPodInfo, Strategy]]:
    """The pods that are worth a new attempt, and how urgently; a hint that raises counts as Queue."""
    worth = []
    skip = Hint.SKIP
    for info in infos:
        for hint, strategy in calls:
            try:
                if hint is not None and hint(info.pod, old, new) is skip:
                    continue
            except Exception:
                log.exception(
                    "the hint %r failed for pod %s; it is tried again", hint, info.pod.key
                )
            worth.append((info, strategy))
            break
    return worth
