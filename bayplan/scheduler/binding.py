"""Binding: the second half of a pod's path, beside the scheduling of the next pods.

Mirrors bindingCycle and handleBindingCycleError of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

import msgspec
from msgspec import Struct

from ..api.pod import Pod
from ..cache import Cache
from ..clock import Clock, Timers
from ..framework import SKIP, SUCCESS, Code, CycleState, Executor, Status
from ..framework.cancellation import Cancellation
from ..framework.handle import RunBlocking, run_here
from ..observe import SchedulerMetrics
from ..observe.times import BINDING, ENDED
from ..queue import QueuedPodInfo
from ..runtime import ProfileRuntime
from ..runtime.commit_plugins import Answer, CommitPlan, then
from ..runtime.waiting_pods import HeldPod, HeldPods
from .attempt import Attempt
from .extenders import Extenders
from .steps import log_pre_bind


class PreBindingPods:
    """The pods whose PreBind is under way; those can still be stopped."""

    def __init__(self) -> None:
        self._pods: dict[str, Cancellation] = {}

    def begin(self, uid: str) -> Cancellation:
        """PreBind begins; what is returned tells its plugins when the pod is stopped."""
        cancellation = self._pods[uid] = Cancellation()
        return cancellation

    def cancel(self, uid: str, reason: str) -> bool:
        """Stop a pod before it is bound; False when it is not in PreBind, or past it."""
        cancellation = self._pods.get(uid)
        if cancellation is None:
            return False
        cancellation.set(reason)
        return True

    def finish(self, uid: str) -> None:
        """PreBind is over: the pod can no longer be stopped."""
        self._pods.pop(uid, None)


class BindingTools(msgspec.Struct):
    """What the binding cycles of all pods share."""

    cache: Cache
    timers: Timers
    executor: Executor
    waiting_pods: HeldPods
    pre_binding: PreBindingPods
    expect_node: Callable[[Pod, str], None] | None
    """Say in the pod's status where it will go, when that takes time; None: not announced."""
    leave_queue: Callable[[str], None]
    """The pod (by uid) no longer counts as being scheduled: events need not be kept for it."""
    bound: Callable[[Binding], None]
    failed: Callable[[Binding, Status], None]
    clock: Clock
    metrics: SchedulerMetrics
    run_blocking: RunBlocking = run_here
    extenders: Extenders | None = None
    """Those that bind pods come before the Bind plugins."""


class Binding(Struct, eq=False):
    """The binding cycle of one assumed pod."""

    _tools: BindingTools
    profile: ProfileRuntime
    state: CycleState
    queued: QueuedPodInfo
    assumed: Pod
    attempt: Attempt
    plan: CommitPlan
    """Who has something to do for the pod."""
    is_permitted: bool = False
    is_beside: bool = False
    """It did not end at once: it goes on beside the scheduling of other pods."""
    _is_held: bool = False
    """Permit holds the pod."""
    _permit: Status = SUCCESS
    """What Permit decided."""
    _has_begun: bool = False
    _has_pre_bind: bool = False
    _skipped: set[str] = set()
    _waiting_since: float = 0.0
    _pre_bind_began: float = 0.0

    def prepare(self, timeouts_s: Mapping[str, float]) -> bool:
        """Begin to wait on Permit when plugins asked for it (`timeouts_s`); False: the binding cycle failed."""
        tools = self._tools
        if tools.expect_node is None:
            self._has_pre_bind = bool(self.plan.pre_binds)
        elif self.plan.pre_binds:
            status, skipped = self._pre_flight()
            if status.code is Code.Error:
                self._fail(status)
                return False
            self._has_pre_bind, self._skipped = status.is_success, skipped
        if timeouts_s:
            self._waiting_since = tools.clock.monotonic()
            self._is_held = True
            tools.waiting_pods.add(HeldPod(self.assumed, timeouts_s, tools.timers, self._permitted))
        return True

    def begin(self) -> None:
        """Go on, unless Permit still holds the pod: then later."""
        tools, assumed, self._has_begun = self._tools, self.assumed, True
        if tools.expect_node is not None and (self._is_held or self._has_pre_bind):
            tools.expect_node(assumed, assumed.node_name)
        if not self._is_held:
            self._after_permit()

    def _pre_flight(self) -> tuple[Status, set[str]]:
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        status, skipped = profile.committing.run_pre_flight(
            self.state, assumed, assumed.node_name, self.plan
        )
        profile.note_point("PreBindPreFlight", status, perf_counter() - started)
        if status.code is Code.Skip:
            profile.metrics.point("PreBind").success.observe(0.0)  # it has nothing to do
        return status, skipped

    def _permitted(self, status: Status) -> None:
        """Permit has decided about a pod that it held."""
        tools = self._tools
        tools.waiting_pods.remove(self.assumed.uid)
        waited_s = tools.clock.monotonic() - self._waiting_since
        tools.metrics.permit_wait.labels(status.code.name).observe(waited_s)
        self._is_held, self._permit = False, status
        if self._has_begun:
            self._after_permit()

    def _after_permit(self) -> None:
        status = self._permit
        if not status.is_success:
            if not status.is_rejected:
                text = f"waiting on permit for pod: {status.message}"
                status = Status(status.code, (text,), status.plugin)
            self._fail(status)
            return
        self.go_on()

    def go_on(self) -> None:
        """Nothing holds the pod back any more: bind it."""
        tools = self._tools
        self.is_permitted = True
        tools.leave_queue(self.assumed.uid)
        if self._has_pre_bind:
            self.state.cancellation = tools.pre_binding.begin(self.assumed.uid)
            tools.executor.run(self._work, self._finished)
        else:
            tools.executor.run(self._bind, self._finished)

    def _work(self) -> Answer:
        """PreBind, then Bind: all that may take time. Runs where the executor runs it."""
        committing, assumed = self.profile.committing, self.assumed
        log_pre_bind(assumed)
        self._pre_bind_began = perf_counter()
        pre_bound = committing.run_pre_bind(
            self.state, assumed, assumed.node_name, self._skipped, self.plan
        )
        return then(pre_bound, self._bind)

    def _bind(self) -> Answer:
        if self._has_pre_bind:
            self._pre_bind_ended(SUCCESS)
            self._tools.pre_binding.finish(self.assumed.uid)
            if self.state.cancellation.is_set:
                return Status(Code.Error, (self.state.cancellation.reason,))
        if self._tools.extenders is not None and self._tools.extenders.binds(self.assumed):
            return self._bind_by_extender(self._tools.extenders, self.assumed)
        return self._bind_by_plugins()

    def _bind_by_extender(self, extenders: Extenders, pod: Pod) -> Answer:
        answer = self._tools.run_blocking(lambda: extenders.bind(pod, pod.node_name) or SKIP)
        if not isinstance(answer, Status):
            return self._unless_skipped(answer)
        return self._bind_by_plugins() if answer.code is Code.Skip else answer

    async def _unless_skipped(self, by_extender: Awaitable[Status]) -> Status:
        status = await by_extender
        if status.code is not Code.Skip:
            return status
        answer = self._bind_by_plugins()
        return answer if isinstance(answer, Status) else await answer

    def _bind_by_plugins(self) -> Answer:
        self.state.times[BINDING] = perf_counter()
        return self.profile.committing.run_bind(self.state, self.assumed, self.assumed.node_name)

    def _finished(self, status: Status) -> None:
        self.state.times[ENDED] = perf_counter()
        if self._has_pre_bind:
            self._tools.pre_binding.finish(self.assumed.uid)
        if status is not SUCCESS and not status.is_success:
            self._note_error(status)
            self._fail(status)
            return
        self._tools.cache.finish_binding(self.assumed)
        self._tools.bound(self)

    def _pre_bind_ended(self, status: Status) -> None:
        seconds, self._pre_bind_began = perf_counter() - self._pre_bind_began, 0.0
        self.profile.note_point("PreBind", status, seconds)

    def _note_error(self, status: Status) -> None:
        """PreBind or Bind failed: say which, and how long it took."""
        times = self.state.times
        if self._pre_bind_began:
            self._pre_bind_ended(status)
        elif not math.isnan(times[BINDING]):
            seconds = times[ENDED] - times[BINDING]
            self.profile.metrics.point("Bind").ended(status.code.name, seconds)

    def _fail(self, status: Status) -> None:
        """Undo everything in reverse."""
        self.undo()
        self._tools.failed(self, status)

    def undo(self) -> None:
        """Unreserve, and forget the pod."""
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        profile.committing.run_unreserve(self.state, assumed, assumed.node_name)
        profile.metrics.point("Unreserve").success.observe(perf_counter() - started)
        if self._tools.cache.is_assumed(self.assumed):
            self._tools.cache.forget_pod(self.assumed)
