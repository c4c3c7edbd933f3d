"""Scheduler settings: what a scheduler has besides its configuration and its cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from ..api.pod import Pod
from ..cache import Cache
from ..clock import Clock, Timers
from ..framework import Executor, Plugin
from ..framework.handle import RunBlocking, run_here
from ..observe import SchedulerMetrics
from .attempt import Attempt
from .extender import MakeTransport, make_http_transport
from .parts import Observer, unheard, unobserved
from .select_host import TieBreak

PluginSource: TypeAlias = str | type[Plugin]
"""A plugin, or a Python file with some."""


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a scheduler is run. None stands for a new object of the usual class."""

    plugins: Iterable[PluginSource] = ()
    """Classes or files; they run in every profile, unless the configuration names them somewhere."""
    feature_gates: Mapping[str, bool] | None = None
    seed: int | None = None
    """For breaking ties, and for the random numbers of plugins."""
    ties: TieBreak | None = None
    """Chooses between nodes with equal scores; None: at random, by `seed`."""
    faults_are_fatal: bool = False
    """Whether an error in the code of a plugin ends the run (`PluginFaults.check`), or is logged and fails the pod."""
    explain: bool = False
    """Whether each attempt has an `explanation`: what every plugin said about every node."""
    observer: Observer = unobserved
    ended: Callable[[Attempt], None] = unheard
    """Called once for every attempt, when it has ended: bound, refused or failed."""
    metrics: SchedulerMetrics | None = None
    cache: Cache | None = None
    """With what is known of the cluster, such as that of another scheduler, which does not run any more."""
    clock: Clock | None = None
    timers: Timers | None = None
    executor: Executor | None = None
    """Runs PreBind, Bind and evictions; None: in place, on the time of `clock`."""
    run_blocking: RunBlocking = run_here
    """Runs work of plugins that may block."""
    assume_ttl_s: float = 0
    """How long a pod stays assumed when its binding is not confirmed; 0: forever."""
    extender_transport: MakeTransport = make_http_transport
    bound_by_extender: Callable[[Pod, str], None] | None = None
    """Called for pods that an extender has bound: a cluster that no extender can write to needs it."""


DEFAULT_SETTINGS = SchedulerSettings()
