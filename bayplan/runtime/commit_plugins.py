"""Commit plugins: Reserve, Permit, PreBind, Bind and PostBind of one profile.

Mirrors the corresponding Run*Plugins of pkg/scheduler/framework/runtime/framework.go. PreBind and Bind may be
asynchronous: their runners return a Status, or an awaitable of one.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Generator, Hashable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from ..api.pod import Pod, PodSpec
from ..framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    Code,
    CycleState,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Status,
    failure,
)
from ..framework.answer_checks import (
    WrongAnswerError,
    check_nothing,
    check_pair,
    check_status,
)
from ..framework.cancellation import CANCELLED, Cancellation, cancelled_error
from ..framework.handle import run_here
from ..observe.series import Tally
from ..stamped_cache import StampedCache
from ..table import NodeTable
from .plugin_calls import ask_keys, has_own
from .plugin_failures import PluginRunError, failed, is_in_tree
from .plugin_times import timed
from .spec_answers import SpecAnswers

MAX_PERMIT_WAIT_S = 15 * 60
WAITING = "one or more plugins asked to wait and no plugin rejected pod"
PRE_BINDING = "running PreBind plugin {}"
BINDING = "running Bind plugin {}"
METHODS = {PRE_BINDING: "pre_bind", BINDING: "bind"}
PERMIT_ANSWER = "a tuple of a Status and a number of seconds"


Answer = Status | Awaitable[Status]


class CommitPlan:
    """The plugins in `commits`, which have work for some pods after their node is chosen, by extension point."""

    __slots__ = ("groups", "idle_points", "is_idle", "permits", "pre_binds", "reserves")

    def __init__(
        self,
        reserves: Sequence[ReservePlugin],
        permits: Sequence[PermitPlugin],
        pre_binds: Sequence[PreBindPlugin],
        commits: Collection[Plugin],
        together: bool = True,
    ) -> None:
        self.reserves = [plugin for plugin in reserves if plugin in commits]
        self.permits = [plugin for plugin in permits if plugin in commits]
        self.pre_binds = [plugin for plugin in pre_binds if plugin in commits]
        self.groups = pre_bind_groups(pre_binds, commits, together)
        """The PreBind plugins, group by group."""
        self.is_idle = not (self.reserves or self.permits or self.pre_binds)
        """No plugin has work: the pod can be bound at once."""
        self.idle_points = Tally()
        """Counts pods for the metrics of extension points without work."""


def pre_bind_groups(
    pre_binds: Sequence[PreBindPlugin], wanted: Collection[Plugin], together: bool = True
) -> list[list[PreBindPlugin]]:
    """Group the `wanted` plugins: neighbours that `allow_parallel` run together, others alone, one after the other. A
    plugin that does not allow it separates its neighbours even if it is not wanted.

    Without `together`, a fact of the release, each runs alone.
    """
    groups: list[list[PreBindPlugin]] = [[]]
    for plugin in pre_binds:
        found = [plugin] if plugin in wanted else []
        if together and plugin.allow_parallel:
            groups[-1].extend(found)
        else:
            groups.extend((found, []))
    return [group for group in groups if group]


class Committing:
    """The steps of a pod after its node is chosen."""

    def __init__(
        self,
        reserves: Sequence[ReservePlugin],
        permits: Sequence[PermitPlugin],
        pre_binds: Sequence[PreBindPlugin],
        binds: Sequence[BindPlugin],
        post_binds: Sequence[PostBindPlugin],
        handle: Handle | None = None,
    ) -> None:
        self.reserves = tuple(reserves)
        self.permits = tuple(permits)
        self.pre_binds = tuple(pre_binds)
        self.binds = tuple(binds)
        self.post_binds = tuple(post_binds)
        self._plans: StampedCache[Hashable, CommitPlan] = StampedCache("commit plans", 8192)
        """By spec, and by which plugins have work: most specs share one."""
        self._handle = handle or Handle(NodeTable())
        self._metrics = self._handle.metrics.profile(self._handle.profile_name)
        every: dict[Plugin, None] = dict.fromkeys((*reserves, *permits, *pre_binds))
        self._plugins = tuple(every)
        hooks = [(plugin, plugin.settled) for plugin in every]
        self._commits = SpecAnswers(hooks, attrgetter("commits"))
        self._clustered = [(p, p.cluster_key) for p in every if has_own(p, Plugin, "cluster_key")]
        self._version = -1
        self._stamp: Hashable = None
        self._run_blocking = self._handle.run_blocking
        self._blocking: set[Plugin] = set()
        if self._run_blocking is not run_here:
            self._blocking.update(p for p in pre_binds if _may_block(p, p.pre_bind))
            self._blocking.update(p for p in binds if _may_block(p, p.bind))

    def plan(self, spec: PodSpec) -> CommitPlan:
        """The plugins with work for pods of `spec`, in the present cluster."""
        if self._version != self._handle.lister.version:
            self._follow_cluster()
        spec = spec.template or spec
        plan = self._plans.get(spec, self._stamp)
        return self._plans.put(spec, self._plan_of(spec)) if plan is None else plan

    def _plan_of(self, spec: PodSpec) -> CommitPlan:
        commits = self._commits.about(spec, self._stamp)
        plan = self._plans.get(commits, self._stamp)
        return self._plans.put(commits, self._plan_for(commits)) if plan is None else plan

    def _plan_for(self, commits: Sequence[bool]) -> CommitPlan:
        busy = {p for p, has_work in zip(self._plugins, commits, strict=True) if has_work}
        together = self._handle.release.pre_binds_together
        plan = CommitPlan(self.reserves, self.permits, self.pre_binds, busy, together)
        plan.idle_points = self._metrics.idle(self._idle_points(plan))
        return plan

    def _follow_cluster(self) -> None:
        """Read the stamp of the plans, which changes with all that they depend on."""
        version = self._handle.lister.version
        self._stamp = ask_keys(self._clustered, self._handle.table)
        self._version = version

    def _idle_points(self, plan: CommitPlan) -> tuple[str, ...]:
        busy = {
            "Reserve": plan.reserves,
            "Permit": plan.permits,
            "PreBindPreFlight": plan.pre_binds,
            "PreBind": plan.pre_binds,
            "PostBind": self.post_binds,
        }
        return tuple([point for point, plugins in busy.items() if not plugins])

    def run_reserve(
        self, state: CycleState, pod: Pod, node_name: str, plan: CommitPlan | None = None
    ) -> Status:
        """Run Reserve in order; the first that does not succeed ends it."""
        for plugin in (plan or self.plan(pod.spec)).reserves:
            try:
                ask = plugin.reserve
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "Reserve", plugin, ask)
                status = check_status(ask(state, pod, node_name))
            except Exception as error:  # a plugin may raise anything
                raise failed("running Reserve plugin {}", plugin, error, "reserve") from error
            if not status.is_success:
                return _rejection("running Reserve plugin {}", plugin, status, "reserve")
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginRunError]:
        """Run Unreserve of every Reserve plugin in reverse order, also of those that never reserved.

        If one raises, the others still run; its error is returned.
        """
        failures = []
        for plugin in reversed(self.reserves):
            try:
                check_nothing(plugin.unreserve(state, pod, node_name))
            except Exception as error:  # a plugin may raise anything
                failures.append(self._noted("running Unreserve plugin {}", plugin, error))
        return failures

    def run_permit(
        self, state: CycleState, pod: Pod, node_name: str, plan: CommitPlan | None = None
    ) -> tuple[Status, dict[str, float]]:
        """Run Permit in order; with Wait come the seconds each plugin is ready to wait."""
        timeouts: dict[str, float] = {}
        reasons: list[str] = []
        for plugin in (plan or self.plan(pod.spec)).permits:
            try:
                ask = plugin.permit
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "Permit", plugin, ask)
                answer = ask(state, pod, node_name)
                status, timeout_s = check_pair(answer, Status, (int, float), PERMIT_ANSWER)
            except Exception as error:  # a plugin may raise anything
                raise failed("running Permit plugin {}", plugin, error, "permit") from error
            if status.code is Code.Wait:
                timeouts[plugin.name] = min(timeout_s, MAX_PERMIT_WAIT_S)
                reasons.extend(status.reasons)
            elif not status.is_success:
                return _rejection("running Permit plugin {}", plugin, status, "permit"), {}
        if timeouts:
            return Status(Code.Wait, (*reasons, WAITING)), timeouts
        return SUCCESS, {}

    def run_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str, plan: CommitPlan | None = None
    ) -> tuple[Status, set[str]]:
        """Find the PreBind plugins that have work: SUCCESS, or SKIP if none has; and those that have none."""
        skipped: set[str] = set()
        pre_binds = (plan or self.plan(pod.spec)).pre_binds
        for plugin in pre_binds:
            doing = "running PreBindPreFlight {}"
            try:
                status = check_status(plugin.pre_bind_pre_flight(state, pod, node_name))
            except Exception as error:  # a plugin may raise anything
                return failed(doing, plugin, error, "pre_bind_pre_flight").status, skipped
            if status.code is Code.Skip:
                skipped.add(plugin.name)
            elif status.code is Code.Error:
                return failed(doing, plugin, status).status, skipped
            elif not status.is_success:
                text = f'PreBindPreFlight {plugin.name} returned "{status.code.name}", which is unsupported. '
                text += "It is supposed to return Success, Skip, or Error status"
                answer = failed("{}", plugin, WrongAnswerError(text), "pre_bind_pre_flight").status
                is_fault = answer.error is not None
                return answer if is_fault else Status(Code.Error, (text,), plugin.name), skipped
        return (SKIP if len(skipped) == len(pre_binds) else SUCCESS), skipped

    def run_pre_bind(
        self,
        state: CycleState,
        pod: Pod,
        node_name: str,
        skipped: set[str],
        plan: CommitPlan | None = None,
    ) -> Answer:
        """Run PreBind group by group; plugins of one group run at the same time."""
        plan = plan or self.plan(pod.spec)
        groups = plan.groups
        if skipped:
            left = [plugin for plugin in plan.pre_binds if plugin.name not in skipped]
            groups = pre_bind_groups(self.pre_binds, left)
        return self._run_groups(groups, state, pod, node_name)

    def _run_groups(
        self,
        groups: Sequence[Sequence[PreBindPlugin]],
        state: CycleState,
        pod: Pod,
        node_name: str,
    ) -> Answer:
        for place, group in enumerate(groups, 1):
            answer = self._run_group(group, state, pod, node_name)
            if not isinstance(answer, Status):
                rest = partial(self._run_groups, groups[place:], state, pod, node_name)
                return _then_later(answer, rest)
            if not answer.is_success:
                return answer
        return SUCCESS

    def _run_group(
        self, group: Sequence[PreBindPlugin], state: CycleState, pod: Pod, node_name: str
    ) -> Answer:
        if state.cancellation.is_set:  # while the group before this one ran
            return Status(Code.Error, (state.cancellation.reason,))
        waiting: list[Awaited] = []
        for plugin in group:
            call = partial(plugin.pre_bind, state, pod, node_name)
            if plugin in self._blocking:
                # It ends when it reads the cancellation: Unreserve must not run beside it.
                answer = _ask(PRE_BINDING, plugin, partial(self._run_blocking, call))
            else:
                answer = _ask(PRE_BINDING, plugin, call, state.cancellation)
            if isinstance(answer, Awaited):
                waiting.append(answer)
            elif not answer.is_success:
                for other in waiting:
                    other.abandon()
                return answer
        return _together(waiting) if waiting else SUCCESS

    def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Answer:
        """Run Bind in order until one does not skip."""
        return self._run_binds(self.binds, state, pod, node_name)

    def _run_binds(
        self, binds: Sequence[BindPlugin], state: CycleState, pod: Pod, node_name: str
    ) -> Answer:
        answer: Any
        for plugin in binds:
            try:
                ask = plugin.bind
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "Bind", plugin, ask)
                if plugin in self._blocking:
                    answer = self._run_blocking(partial(ask, state, pod, node_name))
                else:
                    answer = ask(state, pod, node_name)
            except Exception as error:  # a plugin may raise anything
                return failed(BINDING, plugin, error, "bind").status
            if answer is SUCCESS:
                return answer
            if inspect.isawaitable(answer):
                others = binds[binds.index(plugin) + 1 :]
                awaited = Awaited(BINDING, plugin, answer)
                return self._bind_later(awaited, others, state, pod, node_name)
            if not isinstance(answer, Status) or answer.code is not Code.Skip:
                return _judged(BINDING, plugin, answer)
        return SKIP

    async def _bind_later(
        self,
        answer: Awaitable[Status],
        others: Sequence[BindPlugin],
        state: CycleState,
        pod: Pod,
        node_name: str,
    ) -> Status:
        status = await answer
        if status.code is not Code.Skip:
            return status
        following = self._run_binds(others, state, pod, node_name)
        return following if isinstance(following, Status) else await following

    def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginRunError]:
        """Call every PostBind plugin; the pod is bound, so their errors change nothing and are returned."""
        failures = []
        for plugin in self.post_binds:
            try:
                check_nothing(plugin.post_bind(state, pod, node_name))
            except Exception as error:  # a plugin may raise anything
                failures.append(self._noted("running PostBind plugin {}", plugin, error))
        return failures

    def _noted(self, doing: str, plugin: Plugin, error: Exception) -> PluginRunError:
        """The failure of a step that fails no pod."""
        method = "unreserve" if "Unreserve" in doing else "post_bind"
        failure = failed(doing, plugin, error, method)
        self._handle.faults.note(failure.status.error)
        return failure


def _may_block(plugin: PreBindPlugin | BindPlugin, method: Callable[..., Answer]) -> bool:
    return not is_in_tree(plugin) and not inspect.iscoroutinefunction(method)


def then(answer: Answer, following: Callable[[], Answer]) -> Answer:
    """Continue with `following` after a success, else return the answer."""
    if isinstance(answer, Status):
        return following() if answer.is_success else answer
    return _then_later(answer, following)


async def _then_later(answer: Awaitable[Status], following: Callable[[], Answer]) -> Status:
    status = await answer
    if not status.is_success:
        return status
    rest = following()
    return rest if isinstance(rest, Status) else await rest


async def _together(waiting: Sequence[Awaitable[Status]]) -> Status:
    """Await all of them at the same time; the first that fails cancels the others."""
    import asyncio

    tasks = [asyncio.ensure_future(answer) for answer in waiting]
    try:
        for finished in asyncio.as_completed(tasks):
            status = await finished
            if not status.is_success:
                return status
        return SUCCESS
    finally:
        for task in tasks:  # also when this very work is abandoned
            task.cancel()


class Awaited:
    """A pending answer of a plugin, with errors and odd statuses reported in its name."""

    def __init__(
        self,
        doing: str,
        plugin: Plugin,
        answer: Awaitable[Status],
        cancellation: Cancellation | None = None,
    ) -> None:
        self._doing = doing
        self._plugin = plugin
        self._answer = answer
        self._cancellation = cancellation

    def __await__(self) -> Generator[Any, Any, Status]:
        return self._wait().__await__()

    async def _wait(self) -> Status:
        cancellation, answer = self._cancellation, self._answer
        try:
            status = await (answer if cancellation is None else cancellation.stops(answer))
        except cancelled_error():
            if cancellation is None or not cancellation.is_set:
                raise
            status = failure(CANCELLED)
        except Exception as error:  # a plugin may raise anything
            return failed(self._doing, self._plugin, error, METHODS[self._doing]).status
        return _judged(self._doing, self._plugin, status)

    def abandon(self) -> None:
        """Close an answer that is not wanted any more and was never awaited."""
        if inspect.iscoroutine(self._answer):
            self._answer.close()


def _ask(
    doing: str,
    plugin: Plugin,
    call: Callable[[], Answer],
    cancellation: Cancellation | None = None,
) -> Status | Awaited:
    """The plugin's answer, with errors and odd statuses reported in its name."""
    try:
        answer = call()
    except Exception as error:  # a plugin may raise anything
        return failed(doing, plugin, error, METHODS[doing]).status
    if answer is SUCCESS:
        return SUCCESS
    if inspect.isawaitable(answer):
        return Awaited(doing, plugin, answer, cancellation)
    return _judged(doing, plugin, answer)


def _judged(doing: str, plugin: Plugin, answer: Any) -> Status:
    """The status that PreBind or Bind returned."""
    try:
        status = check_status(answer)
    except WrongAnswerError as error:
        return failed(doing, plugin, error, METHODS[doing]).status
    if status.is_success or status.code is Code.Skip:
        return status
    return _rejection(doing, plugin, status, METHODS[doing])


def _rejection(doing: str, plugin: Plugin, status: Status, method: str) -> Status:
    """A rejection as it is; anything else is an error of the plugin."""
    if status.is_rejected:
        return status.by(plugin.name)
    return failed(doing, plugin, status, method).status
