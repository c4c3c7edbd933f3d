"""Kube driver: the scheduler on a real cluster: reflectors deliver its input, a sender writes its output.

Everything here runs on the event loop that talks to the API server; the scheduler has a thread of its own, so that
neither a slow plugin nor a long search keeps a watch waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..api.custom import CustomResource
from ..api.pod_groups import PodGroup
from ..clock import Clock, SystemClock
from ..config.types import SchedulerConfiguration
from ..errors import ApiError
from ..framework.handle import PodEvent
from ..kube.connection import Connection
from ..kube.custom_reflector import CustomReflector
from ..kube.discovery import find_served
from ..kube.event_recorder import EventRecorder
from ..kube.kube_cluster import KubeCluster
from ..kube.post_pipeline import EVENT_CHANNELS
from ..kube.reflector import Reflector
from ..kube.retry_backoff import Backoff
from ..kube.sender import Order, PostOrder, Sender, TokenBucket
from ..kube.watched_kinds import RESOURCES, Resource
from ..observe.scheduler_metrics import SchedulerMetrics
from ..releases.feature_gates import FeatureGates
from ..scheduler.attempt import Attempt, Outcome
from ..scheduler.build import build_scheduler
from ..scheduler.cycle import Scheduler
from ..scheduler.parts import PluginSource, SchedulerSettings
from .core_thread import Core, CoreThread, PatientCrossing
from .decision_log import DecisionLog

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 300.0
"""Interval of the checks whether the server has begun to serve a kind that it did not."""
REFUSED_LIMIT_S = 5.0
"""The longest step between retries of refused requests, such as those without permission."""
MANY = frozenset({"Pod", "Node"})
"""Kinds of which there are many objects, and which every server has; they are requested first."""
NOT_SYNCED = "handlers are not fully synchronized"
DRAIN_S = 10.0
"""Seconds that writes under way may take at the end."""
EVENTS_S = 1.0
"""Seconds that the last events may take."""

Result = TypeVar("Result")


class DriverOptions(msgspec.Struct):
    """Options of a driver that differ from its defaults."""

    plugins: Sequence[PluginSource] = ()
    feature_gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    seed: int | None = None
    clock: Clock = msgspec.field(default_factory=SystemClock)
    metrics: SchedulerMetrics = msgspec.field(default_factory=SchedulerMetrics)
    decisions: DecisionLog | None = None
    """Gets a line for each attempt."""
    is_leading: Callable[[], bool] = lambda: True
    """Called before each write: True if the lease is certainly still held."""
    make_core: Callable[[Clock, Callable[[BaseException], None]], Core] = CoreThread
    """Makes the cluster that the scheduler runs on."""


class KubeDriver:
    """Schedules the pods of the cluster behind `connection`, while `lead` was called last and not `follow`."""

    def __init__(
        self,
        connection: Connection,
        config: SchedulerConfiguration,
        options: DriverOptions | None = None,
    ) -> None:
        self.connection = connection
        self.config = config
        self.options = options or DriverOptions()
        self.metrics = self.options.metrics
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[None] = self._loop.create_future()
        """Ends, with an exception, when the driver cannot go on."""
        self.core = self.options.make_core(self.options.clock, self._fail_from_elsewhere)
        client = config.client_connection
        answered = self.core.inbox.put
        self._sender = Sender(
            connection,
            TokenBucket(client.qps, client.burst, self._loop.time),
            answered,
            self._may_send,
            FeatureGates.of(self.options.feature_gates).release.retries_bindings,
        )
        self._event_sender = Sender(
            connection,
            TokenBucket(client.qps, client.burst, self._loop.time),
            answered,
            channels=EVENT_CHANNELS,
        )
        self._events = EventRecorder(self._event_sender, self.options.clock)
        self._outbox: PatientCrossing[Order | PostOrder] = PatientCrossing(
            self.core.loop, self._loop, self._sender.take
        )
        self._event_outbox: PatientCrossing[PodEvent] = PatientCrossing(
            self.core.loop, self._loop, self._events.take
        )
        self.cluster = KubeCluster(
            self.core.loop, self.options.clock, self._outbox.put, self._event_outbox.put
        )
        served = FeatureGates.of(self.options.feature_gates).release.api_versions
        self.cluster.group_version = served.get(PodGroup.kind, self.cluster.group_version)
        self.scheduler: Scheduler | None = None
        """The driven scheduler, once it was started; for its own thread only."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_for: set[str] = set()
        self._reflectors: list[Reflector | CustomReflector] = []
        self._problem = ""
        """Reason why it is not known yet which kinds the server has."""
        self._synced = asyncio.Event()
        self._built = asyncio.Event()
        self._keeps_sources = False
        """Whether pods and nodes are kept with all of their fields."""
        self.options.metrics.unreadable_objects.source = self._count_unreadable
        self._leads = False
        self._is_running = False
        self._is_stopped = False

    # Calls of others

    def is_ready(self) -> bool:
        """Whether the cluster is known, so that pods can be scheduled."""
        return self._is_running

    def problem(self) -> str | None:
        """Reason why the driver is not ready; None when it is."""
        if self._is_running:
            return None
        waiting = [one for one in self._reflectors if not one.is_synced and one.problem]
        problems = [f"{one.resource.plural}: {one.problem}" for one in waiting]
        return "; ".join(filter(None, [NOT_SYNCED, self._problem, *problems]))

    def is_leader(self) -> bool:
        """Whether this scheduler is the one that schedules."""
        return self._may_send()

    async def call(self, work: Callable[[], Result]) -> Result:
        """Run a function on the scheduler's thread, as reading its metrics, and return its result."""
        return await self.core.call(work)

    def lead(self) -> None:
        """The lease is held, or not needed: schedule."""
        self._leads = True
        self.core.allow(True)

    def follow(self) -> None:
        """Another candidate may hold the lease from now on: stop sending."""
        self._leads = False
        self.core.allow(False)
        self._sender.refuse_waiting()

    def _may_send(self) -> bool:
        return self._leads and self.options.is_leading()

    # From begin to end

    async def start(self) -> None:
        """Begin to follow the cluster; returns when all of it is known and the scheduler runs.

        Errors of the server are retried; `problem` names them. Raises ConfigError or PluginError for a configuration
        that does not hold.
        """
        self.core.start(self.cluster.apply, self.cluster.answer)
        self._waiting_for = {resource.kind.name for resource in self._resources()}
        self._begin(self._follow_others())  # discovery goes on while the scheduler is built
        scheduler = self.scheduler = await self.core.call(self._build)
        handles = [profile.handle for profile in scheduler.profiles.values()]
        self._keeps_sources = any(handle.keeps_whole_objects for handle in handles)
        for kind in sorted(MANY):
            self._follow(RESOURCES[kind])
        self._built.set()
        self._sender.connect()
        await self.unless_it_fails(self._synced.wait())

        def run() -> None:
            self.cluster.watch(scheduler)
            self.core.drive(scheduler)

        await self.core.call(run)
        self._is_running = True
        count = self.cluster.count
        log.info("the cluster is known: %d nodes, %d pods", count("Node"), count("Pod"))

    async def unless_it_fails(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Result of `work`; raises the error of the driver if that occurs earlier."""
        task = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {task, self.failure}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self.failure.done():
                self.failure.result()
            return task.result()
        finally:
            task.cancel()

    async def stop(self) -> None:
        """Stop scheduling, finish the work under way, and end; a second call does nothing."""
        if self._is_stopped:
            return
        self._is_stopped, self._is_running = True, False
        self.core.allow(False)
        responds = await self.core.catch_up()  # all decisions were delivered
        self._sender.end()
        await self._sender.finish(DRAIN_S)
        if responds:
            await self.core.catch_up()  # the result is logged
        await self._events.finish(EVENTS_S)
        await self.core.stop(DRAIN_S if responds else 0.0)
        self._sender.close()
        self._event_sender.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _build(self) -> Scheduler:
        options = self.options
        if FeatureGates.of(options.feature_gates).enabled("SchedulerAsyncAPICalls"):
            for family in self.cluster.count_calls().families:
                options.metrics.add(family)
        return build_scheduler(
            self.config,
            self.cluster,
            SchedulerSettings(
                clock=options.clock,
                executor=self.core.executor,
                seed=options.seed,
                plugins=options.plugins,
                feature_gates=options.feature_gates,
                metrics=options.metrics,
                run_blocking=self.core.run_blocking,
                ended=self._note,
                notes_decisions=options.decisions is not None,
            ),
        )

    def _note(self, attempt: Attempt) -> None:
        """Log an attempt, if that is wanted, and warn of one that failed.

        That the API server is unreachable is logged once, by the watches, not for each pod.
        """
        if self.options.decisions is not None:
            self.options.decisions.note(attempt)
        if attempt.outcome is Outcome.ERROR and not self.connection.is_away:
            log.warning("pod %s: %s", attempt.pod.key, attempt.message)

    async def _follow_others(self) -> None:
        """Follow all other kinds that the server serves."""
        served = await self._discover()
        await self._built.wait()
        assert self.scheduler is not None, "what is followed depends on its plugins"
        handle = next(iter(self.scheduler.profiles.values())).handle
        custom = handle.custom_resources or {}
        self._waiting_for |= set(custom)
        for resource in served:
            if resource.kind.name not in MANY:
                self._follow(resource)
        for declared in custom.values():
            self._follow_custom(declared)
        self._begin(self._events.run())
        known = MANY | {resource.kind.name for resource in served}
        missing = [resource for resource in self._resources() if resource.kind.name not in known]
        for resource in missing:
            self._kind_synced(resource.kind.name)
        if missing:
            log.info("not served: %s", ", ".join(resource.plural for resource in missing))
            self._begin(self._look_for(missing))

    def _follow(self, resource: Resource) -> None:
        name = resource.kind.name
        reflector = Reflector(
            resource,
            self.connection,
            self.core.inbox.put,
            lambda: self._kind_synced(name),
            keep_sources=self._keeps_sources,
            from_cache=True,
        )
        self._reflectors.append(reflector)
        self._begin(self._reflect(reflector))

    def _follow_custom(self, declared: CustomResource) -> None:
        reflector = CustomReflector(
            declared,
            self.connection,
            self.core.inbox.put,
            lambda: self._kind_synced(declared.name),
        )
        self._reflectors.append(reflector)
        self._begin(reflector.run())

    def _count_unreadable(self) -> dict[tuple[str], int]:
        """Fields that could not be read, by kind; called on the scheduler's thread."""
        return {
            (one.resource.kind.name,): one.unreadable
            for one in [*self._reflectors]
            if one.unreadable
        }

    def _resources(self) -> list[Resource]:
        """The kinds to follow: all but those whose feature gate is off."""
        gates = FeatureGates.of(self.options.feature_gates)
        return [one for one in RESOURCES.values() if not one.gate or gates.enabled(one.gate)]

    async def _discover(self) -> list[Resource]:
        """The kinds that are served, as soon as the server has listed all API groups."""
        groups: dict[str, list[Resource]] = {}
        for resource in self._resources():
            groups.setdefault(resource.group_path, []).append(resource)
        found = await asyncio.gather(*map(self._discover_group, groups.values()))
        self._problem = ""
        return [resource for served in found for resource in served]

    async def _discover_group(self, resources: list[Resource]) -> list[Resource]:
        """Those of one API group; repeats the request while the server fails."""
        backoff = Backoff()
        while True:
            try:
                served = await find_served(self.connection, resources)
            except ApiError as error:
                self._problem = str(error)
                wait_s = backoff.next_s()
                log.warning("discovery: %s; next try in %.1f s", error, wait_s)
                await self.connection.pause(wait_s)
            else:
                return served

    async def _reflect(self, reflector: Reflector) -> None:
        """Run a reflector; a refused request may be allowed later."""
        backoff = Backoff(limit_s=REFUSED_LIMIT_S)
        while True:
            try:
                await reflector.run()
            except ApiError as error:
                wait_s = backoff.next_s()
                log.error("%s: %s; next try in %.1f s", reflector.resource.plural, error, wait_s)
                await self.connection.pause(wait_s)

    def _kind_synced(self, name: str) -> None:
        self._waiting_for.discard(name)
        if not self._waiting_for:
            self._synced.set()

    async def _look_for(self, missing: list[Resource]) -> None:
        """Follow kinds, too, that the server serves later."""
        while missing:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                served = await find_served(self.connection, missing)
            except ApiError as error:
                log.debug("cannot see what is served: %s", error)
                continue
            for resource in served:
                log.info("%s are served now", resource.plural)
                missing[:] = [one for one in missing if one.plural != resource.plural]
                self._follow(resource)

    def _begin(self, work: Any) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._fail(task.exception())

    def _fail_from_elsewhere(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: BaseException | None) -> None:
        self.follow()
        if not self.failure.done() and error is not None:
            self.failure.set_exception(error)
