"""Build: puts a scheduler together from a configuration and a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from ..api.pod import Pod
from ..cache import Cache
from ..clock import Clock, SystemClock
from ..config.expand import check_same_queue_sort
from ..config.types import PluginRef, PluginSet, Profile, SchedulerConfiguration
from ..framework import SUCCESS, Client, Handle, Lister, Plugin, Status
from ..plugins.registry import IN_TREE
from ..queue import QueuedPodInfo, SchedulingQueue
from ..runtime import ProfileRuntime, Registry
from .cycle import Scheduler
from .select_host import RandomTies, TieBreak


class Cluster(Lister, Client, Protocol):
    """What a scheduler reads from and writes to."""


def build_scheduler(
    config: SchedulerConfiguration,
    cluster: Cluster,
    *,
    clock: Clock | None = None,
    seed: int | None = None,
    ties: TieBreak | None = None,
    plugins: Iterable[type[Plugin]] = (),
    plugin_files: Iterable[str] = (),
    feature_gates: Mapping[str, bool] | None = None,
    explain: bool = False,
) -> Scheduler:
    """A scheduler with one runtime per profile, all sharing one cache and one queue.

    Plugins handed over as classes or files run in every profile, unless the configuration names them somewhere.
    """
    clock = clock or SystemClock()
    cache = Cache(clock)
    registry = Registry(IN_TREE)
    registry.load_entry_points()
    given = [name for path in plugin_files for name in registry.load_file(path)]
    for plugin in plugins:
        registry.register(plugin)
        given.append(plugin.name)
    profiles: dict[str, ProfileRuntime] = {}

    def pre_enqueue(pod: Pod) -> Status:
        profile = profiles.get(pod.scheduler_name)
        return profile.run_pre_enqueue(pod) if profile else SUCCESS

    def sort_key(queued: QueuedPodInfo) -> object:
        return first.queue_sort.sort_key(queued)

    queue = SchedulingQueue(clock, sort_key, pre_enqueue)
    for profile in _with_plugins(config.profiles, given):
        handle = Handle(
            cache.table,
            profile_name=profile.scheduler_name,
            clock=clock,
            lister=cluster,
            client=cluster,
            nominator=queue.nominator,
            random=random.Random(seed or 0),
            feature_gates=feature_gates or {},
        )
        percentage = config.percentage_for(profile)
        profiles[profile.scheduler_name] = ProfileRuntime(profile, registry, handle, percentage)
    points = {name: runtime.points for name, runtime in profiles.items()}
    check_same_queue_sort(config.profiles, points)
    first = next(iter(profiles.values()))
    return Scheduler(cache, queue, profiles, ties or RandomTies(seed or 0), explain)


def _with_plugins(profiles: Iterable[Profile], given: Iterable[str]) -> list[Profile]:
    """The profiles, with the `given` plugins that none of them names enabled everywhere."""
    profiles = list(profiles)
    named = {name for profile in profiles for name in profile.plugins.names()}
    extra = tuple(PluginRef(name) for name in given if name not in named)
    if not extra:
        return profiles
    return [_enable(profile, extra) for profile in profiles]


def _enable(profile: Profile, extra: tuple[PluginRef, ...]) -> Profile:
    everywhere = profile.plugins.multi_point
    widened = PluginSet((*everywhere.enabled, *extra), everywhere.disabled)
    plugins = msgspec.structs.replace(profile.plugins, multi_point=widened)
    return msgspec.structs.replace(profile, plugins=plugins)
