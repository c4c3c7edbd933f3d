"""Parts: the parts of a scheduler. `build.py` puts them together; a driver may bring its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from ..api.pod import Pod
from ..cache import Cache
from ..clock import Clock, Timers
from ..framework import Plugin
from ..framework.cancellation import Cancellation
from ..framework.faults import PluginFaults
from ..framework.handle import Client, Executor, RunBlocking, run_here
from ..framework.lister import Lister
from ..observe.scheduler_metrics import SchedulerMetrics
from ..queue.scheduling_queue import SchedulingQueue
from ..releases.feature_gates import FeatureGates
from ..runtime import ProfileRuntime
from ..runtime.executor import HoldingExecutor
from ..runtime.waiting_pods import HeldPods
from .attempt import Attempt
from .extender import MakeTransport, make_http_transport
from .extenders import Extenders
from .select_host import TieBreak


class SchedulerCluster(Lister, Client, Protocol):
    """The cluster that a scheduler reads from and writes to."""


Observer = Callable[[str, Pod, str], None]
"""Called for each step of a pod with its name, the pod and details: `bound`, the pod, `to node-1`."""


def unobserved(what: str, pod: Pod, details: str) -> None:
    """An observer that does nothing."""


def ignore_attempt(attempt: Attempt) -> None:
    """A default for `SchedulerSettings.ended`, which does nothing."""


class Parts(msgspec.Struct):
    """The parts that all profiles of a scheduler share."""

    cache: Cache
    queue: SchedulingQueue
    profiles: Mapping[str, ProfileRuntime]
    cluster: SchedulerCluster
    clock: Clock
    timers: Timers
    executor: Executor
    plugin_executor: HoldingExecutor
    """Runs work that plugins hand over, such as evictions, on `executor`."""
    waiting_pods: HeldPods
    pre_binding: PreBindingPods
    ties: TieBreak
    settings: SchedulerSettings
    extenders: Extenders | None = None
    """None when the configuration names none."""
    metrics: SchedulerMetrics = msgspec.field(default_factory=SchedulerMetrics)
    """Shared with the profiles."""
    faults: PluginFaults = msgspec.field(default_factory=PluginFaults)
    """Shared with the profiles."""

    @property
    def is_observed(self) -> bool:
        """Whether there is an observer."""
        return self.settings.observer is not unobserved

    @property
    def feature_gates(self) -> FeatureGates:
        """The feature gates, which all profiles share."""
        return next(iter(self.profiles.values())).handle.feature_gates

    @property
    def has_groups(self) -> bool:
        """Whether members of pod groups are scheduled with their group."""
        return self.feature_gates.enabled("GenericWorkload")


PluginSource: TypeAlias = str | type[Plugin]
"""A plugin class, or a Python file with plugins."""


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a scheduler. None stands for a new object of the usual class."""

    plugins: Iterable[PluginSource] = ()
    """Classes or files; they run in every profile, unless the configuration names them somewhere."""
    feature_gates: Mapping[str, bool] | None = None
    seed: int | None = None
    """For breaking ties, and for the random numbers of plugins."""
    ties: TieBreak | None = None
    """Chooses between nodes with equal scores; None means at random, by `seed`."""
    faults_are_fatal: bool = False
    """Whether an error in the code of a plugin ends the run (`PluginFaults.check`), or is logged and fails the pod."""
    explain: bool = False
    """Whether each attempt has an `explanation`: the results of every plugin for every node."""
    observer: Observer = unobserved
    ended: Callable[[Attempt], None] = ignore_attempt
    """Called once for every attempt, when it has ended: bound, refused or failed."""
    notes_decisions: bool = False
    """Whether each attempt has `notes`: the runner-up, refusals by plugin, victims."""
    metrics: SchedulerMetrics | None = None
    cache: Cache | None = None
    """An existing state of the cluster, such as the cache of a scheduler that was stopped."""
    clock: Clock | None = None
    timers: Timers | None = None
    executor: Executor | None = None
    """Runs PreBind, Bind and evictions; None means in place, on the time of `clock`."""
    run_blocking: RunBlocking = run_here
    """Runs work of plugins that may block."""
    assume_ttl_s: float = 0
    """Seconds that a pod stays assumed without confirmation of its binding; 0 for ever."""
    extender_transport: MakeTransport = make_http_transport
    bound_by_extender: Callable[[Pod, str], None] | None = None
    """Called for pods that an extender has bound, for a cluster in memory, to which extenders cannot write."""


DEFAULT_SETTINGS = SchedulerSettings()


class PreBindingPods:
    """The pods whose PreBind is under way; those can still be stopped."""

    def __init__(self) -> None:
        self._pods: dict[str, Cancellation] = {}

    def begin(self, uid: str) -> Cancellation:
        """Note that PreBind begins; the result is set when the pod is stopped, and cancels the plugins."""
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
        """Note that PreBind is over: the pod can no longer be stopped."""
        self._pods.pop(uid, None)
