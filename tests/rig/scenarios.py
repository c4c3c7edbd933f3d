"""Scenarios: a whole scheduler on a cluster in memory, in virtual time, and plugins with given results.

For tests that follow pods: add objects to `Scenario`, advance the clock, check where the pods are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.config.types import SchedulerConfiguration
from bayplan.framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    CycleState,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Status,
)
from bayplan.framework.handle import PodEvent
from bayplan.scheduler import Attempt, FirstByName, Scheduler, build_scheduler
from tests.rig.objects import stored

P = TypeVar("P", bound=Plugin)
MAX_STEPS = 1_000_000


def attempts_of(scheduler: Scheduler) -> list[Attempt]:
    """Try pods until none is ready; time does not advance."""
    attempts: list[Attempt] = []
    while (attempt := scheduler.schedule_one()) is not None:
        attempts.append(attempt)
        assert len(attempts) < MAX_STEPS, "pods are retried without end"
    return attempts


class Scenario:
    """A scheduler, its cluster and its clock. Nothing happens before `run`, `advance` or `settle`.

    `profile` is one profile of a KubeSchedulerConfiguration in Kubernetes' own form, and so are
    `extenders`. Ties go to the smallest name.
    """

    def __init__(
        self,
        *objects: Any,
        profile: dict[str, Any] | None = None,
        plugins: Iterable[type[Plugin]] = (),
        cluster: Any = None,
        extenders: Iterable[dict[str, Any]] = (),
        **options: Any,
    ) -> None:
        self.clock = ManualClock()
        self.cluster: Any = MemoryCluster() if cluster is None else cluster
        for obj in objects:
            self.cluster.add(obj)
        self.ended: list[Attempt] = []
        self.seen: list[tuple[str, str]] = []
        """The observer's events: the word and the pod's name."""
        options.setdefault("ties", FirstByName())
        self.scheduler: Scheduler = build_scheduler(
            make_config(profile, extenders),
            self.cluster,
            clock=self.clock,
            plugins=plugins,
            ended=self.ended.append,
            observer=lambda what, pod, details: self.seen.append((what, pod.name)),
            **options,
        )
        self.cluster.watch(self.scheduler)

    def add(self, *objects: Any) -> None:
        """Add objects to the cluster."""
        for obj in objects:
            self.cluster.add(obj)

    def run(self) -> list[Attempt]:
        """Try pods until none is ready; time does not advance."""
        return attempts_of(self.scheduler)

    def advance(self, seconds: float = 0) -> list[Attempt]:
        """Advance the clock, firing timers at their time and trying pods as they become ready."""
        until = self.clock.monotonic() + seconds
        attempts = self.run()
        while (due := self.scheduler.next_timer()) is not None and due <= until:
            attempts += self._jump(due)
        return attempts + self._jump(until)

    def settle(self, limit_s: float = 3600) -> list[Attempt]:
        """Advance the clock until no timer can change anything, at most `limit_s`."""
        until = self.clock.monotonic() + limit_s
        attempts = self.run()
        while not self.scheduler.is_settled:
            due = self.scheduler.next_timer()
            assert due is not None, "an operation is running that no timer ends"
            assert due <= until, f"not settled after {limit_s} s"
            attempts += self._jump(due)
        return attempts

    def _jump(self, moment: float) -> list[Attempt]:
        self.clock.advance(max(moment - self.clock.monotonic(), 0))
        self.scheduler.run_timers()
        return self.run()

    def pod(self, name: str, namespace: str = "default") -> Pod:
        """The stored pod."""
        return stored(self.cluster, Pod, name, namespace)

    def change(self, name: str, **changes: Any) -> Pod:
        """Change fields of a stored pod."""
        changed: Pod = self.cluster.update(self.pod(name).replace(**changes))
        return changed

    def plugin(self, kind: type[P]) -> P:
        """The plugin of this class in the first profile."""
        profile = next(iter(self.scheduler.profiles.values()))
        plugin = profile.plugins[kind.name]
        assert isinstance(plugin, kind), f"{kind.name} is another class"
        return plugin

    def part_of(self, name: str) -> str:
        """State of the pod: a part of the queue, `in flight`, `waiting`, `assumed`, `bound` or `gone`.

        A pod in several places at once, or in none, is an error.
        """
        places = places_of(self.scheduler, self.pod(name))
        assert len(places) == 1, f"pod {name} is in {places}"
        return places[0]

    def events_of(self, name: str) -> list[PodEvent]:
        """The events about the pod."""
        return [event for event in self.cluster.events if event.regarding.name == name]


def make_config(
    profile: dict[str, Any] | None = None, extenders: Iterable[dict[str, Any]] = ()
) -> SchedulerConfiguration:
    """A configuration with one profile, and optionally extenders."""
    listed = list(extenders)
    if profile is None and not listed:
        return default_config()
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile or {}],
        "extenders": listed,
    }
    return parse_config(tree, "scenario")


def places_of(scheduler: Scheduler, pod: Pod) -> list[str]:
    """Every place in which the scheduler has the pod; there should be one."""
    queue, cache = scheduler.queue, scheduler.cache
    places = []
    if pod.key in queue.active.heap:
        places.append("active")
    if pod.key in queue.backoff:
        places.append("backoff")
    info = queue.unschedulable.get(pod.key)
    if info is not None:
        places.append("gated" if info.is_gated else "unschedulable")
    is_waiting = scheduler.waiting_pods.get(pod.uid) is not None
    if pod.uid in queue.in_flight and not is_waiting:
        places.append("in flight")
    if cache.has_pod(pod):
        held = "waiting" if is_waiting else "assumed"
        places.append(held if cache.is_assumed(pod) else "bound")
    elif is_waiting:
        places.append("waiting but not assumed")
    return places


@dataclass(frozen=True, slots=True)
class DelayedResult:
    """A delayed result: `answer` after `seconds`."""

    seconds: float
    answer: Any = SUCCESS


Journal = list[tuple[str, str, str]]
"""Plugin, extension point, pod name; in the order of the calls."""


class Scripted(ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin):
    """Returns given results, and records its calls.

    `answers` holds, by extension point, a Status, an exception to raise, or `DelayedResult`, for every pod;
    or a function of the pod that returns one of these. For Permit, a pair is a status and the
    seconds to wait.
    """

    name = "Scripted"

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.journal: Journal = []

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return self._now("reserve", pod)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._now("unreserve", pod)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        answer = self._answer("permit", pod)
        return answer if isinstance(answer, tuple) else (_given(answer), 0)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return self._now("pre_bind_pre_flight", pod)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        return _given_now_or_later(self._answer("pre_bind", pod))

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        """Without a result, Bind is skipped for the next Bind plugin."""
        return _given_now_or_later(self._answer("bind", pod, SKIP))

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._now("post_bind", pod)

    def _now(self, point: str, pod: Pod) -> Status:
        return _given(self._answer(point, pod))

    def _answer(self, point: str, pod: Pod, otherwise: Any = SUCCESS) -> Any:
        self.journal.append((self.name, point, pod.name))
        answer = self.answers.get(point, otherwise)
        return answer(pod) if callable(answer) else answer


def _given(answer: Any) -> Status:
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, Status), f"expected a Status; got {answer!r}"
    return answer


def _given_now_or_later(answer: Any) -> Status | Awaitable[Status]:
    return _given_later(answer) if isinstance(answer, DelayedResult) else _given(answer)


async def _given_later(later: DelayedResult) -> Status:
    await asyncio.sleep(later.seconds)
    return _given(later.answer)
