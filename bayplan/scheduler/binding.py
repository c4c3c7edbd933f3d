"""Binding: the second half of a pod's path, which runs while the next pods are scheduled.

Mirrors bindingCycle and handleBindingCycleError of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

import msgspec
from msgspec import Struct

from ..api.pod import Pod
from ..errors import ApiError
from ..framework import SKIP, SUCCESS, Code, CycleState, Status
from ..observe.times import BINDING, ENDED
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from ..runtime.commit_plugins import Answer, CommitPlan, then
from ..runtime.waiting_pods import HeldPod
from .attempt import Attempt
from .extenders import Extenders
from .parts import Parts
from .steps import log_pre_bind

log = logging.getLogger(__name__)


class BindingTools(msgspec.Struct):
    """Parts that the binding cycles of all pods share."""

    parts: Parts
    bound: Callable[[Binding], None]
    failed: Callable[[Binding, Status], None]

    announces: bool
    """Whether the node is written to the status of a pod before a binding that takes time (`nominatedNodeName`)."""


class Binding(Struct, eq=False):
    """The binding cycle of one assumed pod."""

    _tools: BindingTools
    profile: ProfileRuntime
    state: CycleState
    queued: QueuedPodInfo
    assumed: Pod
    attempt: Attempt
    plan: CommitPlan
    """The plugins with work for the pod."""
    is_permitted: bool = False
    is_concurrent: bool = False
    """Whether the cycle continues while other pods are scheduled."""
    _is_held: bool = False
    """Whether Permit holds the pod."""
    _permit: Status = SUCCESS
    """Result of Permit."""
    _has_begun: bool = False
    _has_pre_bind: bool = False
    _skipped: set[str] = set()
    _waiting_since: float = 0.0
    _pre_bind_began: float = 0.0

    def run_reserve(self) -> Status:
        """Run Reserve; a plugin that raises gives an error status."""
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        try:
            status = profile.committing.run_reserve(
                self.state, assumed, assumed.node_name, self.plan
            )
        except PluginRunError as failed:
            status = failed.status
        profile.note_point("Reserve", status, perf_counter() - started)
        return status

    def run_permit(self) -> tuple[Status, dict[str, float]]:
        """Run Permit; returns its status, and how long each plugin may hold the pod."""
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        timeouts_s: dict[str, float] = {}
        try:
            status, timeouts_s = profile.committing.run_permit(
                self.state, assumed, assumed.node_name, self.plan
            )
        except PluginRunError as failed:
            status = failed.status
        profile.note_point("Permit", status, perf_counter() - started)
        return status, timeouts_s

    def undo_if_refused(self, status: Status) -> bool:
        """Undo the steps and end the attempt if Reserve or Permit refused the pod; returns whether they did."""
        if status.is_success or status.code is Code.Wait:
            return False
        self.undo()
        self.attempt.reject(status)
        return True

    def prepare(self, timeouts_s: Mapping[str, float]) -> bool:
        """Run PreBindPreFlight, and hold the pod for the `timeouts_s` of Permit; False if the binding cycle failed."""
        parts = self._tools.parts
        if not self._tools.announces:
            self._has_pre_bind = bool(self.plan.pre_binds)
        elif self.plan.pre_binds:
            status, skipped = self._pre_flight()
            if status.code is Code.Error:
                self._fail(status)
                return False
            self._has_pre_bind, self._skipped = status.is_success, skipped
        if timeouts_s:
            self._waiting_since = parts.clock.monotonic()
            self._is_held = True
            parts.waiting_pods.add(HeldPod(self.assumed, timeouts_s, parts.timers, self._permitted))
        return True

    def _pre_flight(self) -> tuple[Status, set[str]]:
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        status, skipped = profile.committing.run_pre_flight(
            self.state, assumed, assumed.node_name, self.plan
        )
        profile.note_point("PreBindPreFlight", status, perf_counter() - started)
        if status.code is Code.Skip:
            profile.metrics.point("PreBind").success.observe(0.0)  # it has nothing to do
        return status, skipped

    def begin(self) -> None:
        """Announce the node, and start PreBind and Bind unless Permit holds the pod."""
        self._has_begun = True
        if (self._is_held or self._has_pre_bind) and self._tools.announces:
            self._announce()
        if not self._is_held:
            self._after_permit()

    def _announce(self) -> None:
        """Write the node to the status of the pod; a failed write is logged, and the binding goes on."""
        pod = self.assumed
        try:
            self._tools.parts.cluster.patch_status(pod, None, pod.node_name)
        except ApiError as error:
            log.warning("pod %s: cannot announce node %s: %s", pod.key, pod.node_name, error)

    def _permitted(self, status: Status) -> None:
        """Continue after the decision of Permit about a pod that it held."""
        parts = self._tools.parts
        parts.waiting_pods.remove(self.assumed.uid)
        waited_s = parts.clock.monotonic() - self._waiting_since
        parts.metrics.permit_wait.labels(status.code.name).observe(waited_s)
        self._is_held, self._permit = False, status
        if self._has_begun:
            self._after_permit()

    def _after_permit(self) -> None:
        """Start the work if Permit let the pod go on; else the binding cycle failed."""
        status = self._permit
        if not status.is_success:
            if not status.is_rejected:
                text = f"waiting on permit for pod: {status.message}"
                status = Status(status.code, (text,), status.plugin)
            self._fail(status)
            return
        self.start_work()

    def start_work(self) -> None:
        """Hand PreBind and Bind to the executor."""
        parts = self._tools.parts
        self.is_permitted = True
        parts.queue.done(self.assumed.uid)  # its events need not be recorded any more
        if self._has_pre_bind:
            self.state.cancellation = parts.pre_binding.begin(self.assumed.uid)
            parts.executor.run(self._pre_bind_and_bind, self._finished)
        else:
            parts.executor.run(self._bind, self._finished)

    def _pre_bind_and_bind(self) -> Answer:
        """Run PreBind, then Bind: the steps that may take time. The executor decides where this runs."""
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
            self._tools.parts.pre_binding.finish(self.assumed.uid)
            if self.state.cancellation.is_set:
                return Status(Code.Error, (self.state.cancellation.reason,))
        extenders = self._tools.parts.extenders
        if extenders is not None and extenders.binds(self.assumed):  # before the Bind plugins
            return self._bind_by_extender(extenders, self.assumed)
        return self._bind_by_plugins()

    def _bind_by_extender(self, extenders: Extenders, pod: Pod) -> Answer:
        answer = self._tools.parts.settings.run_blocking(
            lambda: extenders.bind(pod, pod.node_name) or SKIP
        )
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
        """Confirm the binding to the cache, or undo everything after a failure. Called by the executor."""
        self.state.times[ENDED] = perf_counter()
        if self._has_pre_bind:
            self._tools.parts.pre_binding.finish(self.assumed.uid)
        if status is not SUCCESS and not status.is_success:
            self._note_error(status)
            self._fail(status)
            return
        self._tools.parts.cache.finish_binding(self.assumed)
        self._tools.bound(self)

    def _note_error(self, status: Status) -> None:
        """Log that PreBind or Bind failed, and how long it took."""
        times = self.state.times
        if self._pre_bind_began:
            self._pre_bind_ended(status)
        elif not math.isnan(times[BINDING]):
            seconds = times[ENDED] - times[BINDING]
            self.profile.note_point("Bind", status, seconds)

    def _pre_bind_ended(self, status: Status) -> None:
        seconds, self._pre_bind_began = perf_counter() - self._pre_bind_began, 0.0
        self.profile.note_point("PreBind", status, seconds)

    def _fail(self, status: Status) -> None:
        """Undo everything in reverse."""
        self.undo()
        self._tools.failed(self, status)

    def undo(self) -> None:
        """Unreserve, and forget the pod."""
        profile, assumed, started = self.profile, self.assumed, perf_counter()
        profile.committing.run_unreserve(self.state, assumed, assumed.node_name)
        profile.metrics.point("Unreserve").success.observe(perf_counter() - started)
        if self._tools.parts.cache.is_assumed(self.assumed):
            self._tools.parts.cache.forget_pod(self.assumed)
