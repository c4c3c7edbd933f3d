"""Build: puts a scheduler together from a configuration and a cluster."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping
from functools import cache as cached
from functools import partial
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from ..api.pod import Pod
from ..cache import Cache
from ..clock import SystemClock, Timers
from ..config.extender_order import with_ignored_resources
from ..config.internal_form import gate_notes
from ..config.types import PluginRef, PluginSet, Profile, SchedulerConfiguration
from ..errors import BayplanError
from ..framework import SUCCESS, Handle, Plugin, Status
from ..framework.answer_checks import WrongAnswerError
from ..framework.events import EXTENDER, EventWithHint, default_events
from ..framework.faults import FAULT, PluginFaults
from ..framework.registration import check_events, declared_resources, registered_events
from ..observe.scheduler_metrics import SchedulerMetrics, follow_release
from ..queue.backoff import QueueSettings
from ..queue.group_queue import GroupQueue
from ..queue.nominator import PodNominator
from ..queue.queueing_hints import Registration
from ..queue.scheduling_queue import SchedulingQueue
from ..releases.feature_gates import FeatureGates
from ..runtime import ProfileRuntime, Registry
from ..runtime.executor import HoldingExecutor, InlineExecutor
from ..runtime.plugin_failures import AFTER_FAULTS, guarded_hint, guarded_sort_key
from ..runtime.profile import initialization_error
from ..runtime.waiting_pods import HeldPods
from .binding import BindingTools
from .catalog import expand_profiles, plugin_notes_of, register_plugins, used_plugins
from .cycle import Scheduler
from .deciding import Decider
from .event_handlers import PodReader
from .extenders import Extenders
from .gated_pods import GatedCluster, pod_reader
from .group_algorithm import GroupConditions, GroupTools
from .group_cycle import GroupCycle
from .group_entry_cycle import GroupEntryCycle
from .parts import DEFAULT_SETTINGS, Parts, PreBindingPods, SchedulerCluster, SchedulerSettings
from .placement_search import PlacementSearch
from .select_host import RandomTies

log = logging.getLogger(__name__)


def build_scheduler(
    config: SchedulerConfiguration,
    cluster: SchedulerCluster,
    settings: SchedulerSettings = DEFAULT_SETTINGS,
    **changes: Any,
) -> Scheduler:
    """A scheduler with one runtime per profile, all sharing one cache and one queue.

    `changes` replace fields of `settings`: `build_scheduler(config, cluster, plugins=[Mine])` is short for
    `build_scheduler(config, cluster, SchedulerSettings(plugins=[Mine]))`. TypeError when one is not a field.
    """
    settings = replace(settings, **changes)
    config = with_ignored_resources(config)
    gates = FeatureGates.of(settings.feature_gates)
    read_pod = pod_reader(gates)
    if read_pod is not None:
        cluster = cast("SchedulerCluster", GatedCluster(cluster, read_pod))
    parts = PartsBuilder(config, cluster, settings, gates).parts()
    _connect_metrics(parts)
    return _make_scheduler(parts, Decider(parts, settings.explain), read_pod)


class PartsBuilder:
    """Makes the parts of one scheduler, in the order in which they need each other."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        cluster: SchedulerCluster,
        settings: SchedulerSettings,
        gates: FeatureGates,
    ) -> None:
        self._cluster, self._settings, self._gates = cluster, settings, gates
        self._clock = settings.clock or SystemClock()
        self._timers = settings.timers or Timers(self._clock)
        self._cache = settings.cache or Cache(self._clock, settings.assume_ttl_s)
        self._waiting_pods, self._pre_binding = HeldPods(), PreBindingPods()
        self._metrics = settings.metrics or SchedulerMetrics()
        self._executor = settings.executor or InlineExecutor(self._clock, self._timers)
        self._plugin_executor = HoldingExecutor(self._executor)
        self._nominator = PodNominator(
            lambda namespace, name: cluster.get("Pod", namespace, name),
            self._cache.nominations_changed,
        )
        self._extenders = _make_extenders(config, settings, self._cache)
        self._faults = PluginFaults(settings.faults_are_fatal)
        shared = self._make_handle()
        self._profiles = _make_profiles(config, settings, shared)
        _note_whole_objects(self._profiles)
        self._queue = _make_queue(config, self._profiles, shared, self._nominator)

    def _make_handle(self) -> Handle:
        """The services that the plugins of all profiles share; the queue does not exist yet."""
        cache = self._cache
        return Handle(
            cache.table,
            clock=self._clock,
            lister=self._cluster,
            client=self._cluster,
            nominator=self._nominator,
            feature_gates=self._gates,
            pod_groups=cache.pod_groups,
            waiting_pods=self._waiting_pods,
            pre_binding=self._pre_binding,
            executor=self._plugin_executor,
            run_blocking=self._settings.run_blocking,
            activate=lambda pods: self._queue.activate(pods),
            activate_members=lambda pods: self._queue.activate_members(pods),
            extenders=self._extenders,
            node_order=lambda: cache.snapshot.order,
            metrics=self._metrics,
            faults=self._faults,
        )

    def parts(self) -> Parts:
        """The parts, to be put together."""
        return Parts(
            cache=self._cache,
            queue=self._queue,
            profiles=self._profiles,
            cluster=self._cluster,
            clock=self._clock,
            timers=self._timers,
            executor=self._executor,
            plugin_executor=self._plugin_executor,
            waiting_pods=self._waiting_pods,
            pre_binding=self._pre_binding,
            ties=self._settings.ties or RandomTies(self._settings.seed or 0),
            settings=self._settings,
            extenders=self._extenders,
            metrics=self._metrics,
            faults=self._faults,
        )


def _connect_metrics(parts: Parts) -> None:
    """Let the metrics read the counters of cache and queue when they are shown, and the gates and the release now."""
    metrics, cache, queue, gates = parts.metrics, parts.cache, parts.queue, parts.feature_gates
    metrics.pending_pods.source = lambda: {(part,): n for part, n in queue.pending().items()}
    metrics.incoming_pods.source = lambda: queue.counters.incoming
    metrics.queued_entities, metrics.incoming_entities = queue.entities, queue.counters.entities
    metrics.unschedulable_pods.source = lambda: queue.counters.rejected_by
    metrics.inflight_events.source = lambda: {
        (label,): count for label, count in queue.in_flight.counts().items()
    }
    metrics.cache_size.source = lambda: {(what,): size for what, size in cache.sizes().items()}
    metrics.follow_gates(gates.enabled)
    follow_release(metrics, gates.release.missing_metrics)


def _make_scheduler(parts: Parts, decider: Decider, read_pod: PodReader | None) -> Scheduler:
    """Make the scheduler, with its binding tools and, if groups are scheduled as a whole, its group cycle."""
    scheduler = Scheduler(parts, decider)
    scheduler.read_pod = read_pod
    announces = parts.feature_gates.enabled("NominatedNodeNameForExpectation")
    scheduler.binding_tools = BindingTools(
        parts, scheduler.bound, scheduler.failure.binding_failed, announces
    )
    if parts.has_groups:
        has_placements = parts.feature_gates.enabled("TopologyAwareWorkloadScheduling")
        parts.metrics.add_pod_groups(has_placements)
        kind = parts.feature_gates.release.group_condition
        conditions = GroupConditions(parts.cluster, parts.executor, parts.clock, kind)
        search = PlacementSearch(parts.cache, decider, parts.ties)
        has_entries = parts.feature_gates.release.groups_are_entries
        make_cycle = GroupEntryCycle if has_entries else GroupCycle
        scheduler.groups = make_cycle(GroupTools(parts, scheduler, conditions, search))
    for profile in parts.profiles.values():
        profile.handle.forget_answers = partial(decider.forget, profile)
    return scheduler


@cached
def _warn_once(note: str) -> None:
    """Log the settings without effect; a question may build many schedulers."""
    log.warning("%s", note)


def _make_extenders(
    config: SchedulerConfiguration, settings: SchedulerSettings, cache: Cache
) -> Extenders | None:
    """The extenders of the configuration; None when it has none."""
    if not config.extenders:
        return None
    transport, bound = settings.extender_transport, settings.bound_by_extender
    return Extenders(config.extenders, transport, cache.table, bound)


def _make_profiles(
    config: SchedulerConfiguration, settings: SchedulerSettings, shared: Handle
) -> dict[str, ProfileRuntime]:
    """The runtime of each profile, by its name."""
    release = shared.feature_gates.release
    registry, given = register_plugins(settings.plugins, config, release)
    config = msgspec.structs.replace(config, profiles=tuple(_with_plugins(config.profiles, given)))
    used = used_plugins(expand_profiles(config, registry), registry)
    shared.custom_resources = declared_resources(used)
    gates = shared.feature_gates
    for note in (*gate_notes(gates), *plugin_notes_of(config, registry, gates)):
        _warn_once(note)
    return {
        profile.scheduler_name: _make_profile(config, profile, registry, shared, settings.seed)
        for profile in config.profiles
    }


def _note_whole_objects(profiles: Mapping[str, ProfileRuntime]) -> None:
    """Tell the plugins' handles whether pods and nodes are stored with all of their fields."""
    handles = [profile.handle for profile in profiles.values()]
    plugins = [plugin for profile in profiles.values() for plugin in profile.plugins.values()]
    is_needed = any(handle.extenders is not None for handle in handles)
    is_needed = is_needed or any(plugin.reads_whole_objects for plugin in plugins)
    for handle in handles:
        handle.keeps_whole_objects = is_needed


def _make_profile(
    config: SchedulerConfiguration,
    profile: Profile,
    registry: Registry,
    shared: Handle,
    seed: int | None,
) -> ProfileRuntime:
    own = {"profile_name": profile.scheduler_name, "random": random.Random(seed or 0)}
    handle = Handle(**{**vars(shared), **own})
    percentage, check_all = config.percentage_for(profile), config.always_check_all_predicates
    return ProfileRuntime(profile, registry, handle, percentage, check_all)


def _make_queue(
    config: SchedulerConfiguration,
    profiles: Mapping[str, ProfileRuntime],
    shared: Handle,
    nominator: PodNominator,
) -> SchedulingQueue:
    def pre_enqueue(pod: Pod) -> Status:
        profile = profiles.get(pod.scheduler_name)
        return profile.run_pre_enqueue(pod) if profile else SUCCESS

    first, gates = next(iter(profiles.values())), shared.feature_gates
    sort_key = guarded_sort_key(first.queue_sort, shared.faults)
    times_s = (
        config.pod_initial_backoff_s,
        config.pod_max_backoff_s,
        config.pod_max_in_unschedulable_pods_s,
    )
    settings = QueueSettings(*times_s, gates)
    hints = {name: _registrations(profile) for name, profile in profiles.items()}
    has_entries = gates.enabled("GenericWorkload") and gates.release.groups_are_entries
    return (GroupQueue if has_entries else SchedulingQueue)(
        shared.clock,
        sort_key,
        pre_enqueue,
        hints=hints,
        settings=settings,
        nominator=nominator,
        metrics=shared.metrics,
    )


def _registrations(profile: ProfileRuntime) -> list[Registration]:
    """The events that each plugin waits for; extenders declare none, so they wait for every event."""
    registrations: list[Registration] = []
    if profile.handle.extenders is not None:
        events = default_events(profile.handle.feature_gates)
        registrations += [(wanted.event, EXTENDER, wanted.hint) for wanted in events]
    for plugin in profile.plugins.values():
        for wanted in _events_of(plugin):
            hint = guarded_hint(plugin, wanted.hint, profile.handle.faults)
            registrations.append((wanted.event, plugin.name, hint))
    registrations.append((AFTER_FAULTS.event, FAULT, AFTER_FAULTS.hint))
    return registrations


def _events_of(plugin: Plugin) -> tuple[EventWithHint, ...]:
    try:
        check_events(plugin)
        return registered_events(plugin)
    except Exception as error:  # a plugin may raise anything
        if isinstance(error, BayplanError) and not isinstance(error, WrongAnswerError):
            raise
        raise initialization_error(type(plugin), "events_to_register", error) from error


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
