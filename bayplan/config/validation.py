"""Validation: the rules of a configuration; violations are collected, not raised.

Mirrors pkg/scheduler/apis/config/validation/validation.go, and its field paths, so that a message
can be compared with that of kube-scheduler.
"""

import difflib
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..api.resources import is_extended
from ..api.text.name_faults import is_qualified_name
from ..releases.feature_gates import DEFAULT_GATES, FeatureGates
from .args_validation import seconds, validate_args
from .expand import Implements
from .gates import TOPOLOGY_AWARE_WORKLOAD_SCHEDULING
from .plugin_args import ARGS_TYPES, Args
from .problems import Literally, Problems, show
from .types import (
    PLACEMENT_POINTS,
    POINT_NAMES,
    Extender,
    LeaderElection,
    Profile,
    SchedulerConfiguration,
)

# Paths of the arguments of plugins in the file, by the path of the profile and the plugin's name.
ArgsPaths = dict[tuple[str, str], str]

# Plugins of earlier versions. They are rejected by name at single extension points; under
# multiPoint and at the placement points they are unknown plugins like any other.
REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
MULTI_POINT = "multi_point"
SIMILAR = 0.85
"""Likeness of misspelt names; many plugins of other projects are called Node or Scheduling, too."""
_POINTS_WITHOUT_REMOVED = frozenset(POINT_NAMES).difference(PLACEMENT_POINTS)


class _Rules(NamedTuple):
    """The plugins that a version rejects, and the feature gates."""

    plugins: frozenset[str]
    gates: FeatureGates


def validate_config(
    config: SchedulerConfiguration,
    args_paths: Mapping[tuple[str, str], str] | None = None,
    removed: frozenset[str] = REMOVED_PLUGINS,
    gates: FeatureGates = DEFAULT_GATES,
) -> Problems:
    """Return all faults of `config`, empty if it is valid.

    `args_paths` has the places of the arguments of plugins in the file; without it they are counted in
    the order of `plugin_config`. `removed` are the plugins that the version of the file rejects.
    """
    problems = Problems()
    burst = config.client_connection.burst
    if burst < 0:
        problems.add("clientConnection.burst", "a number not below 0", burst)
    _leader_election(config.leader_election, problems)
    if config.parallelism <= 0:
        problems.add("parallelism", "a number above 0", config.parallelism)
    _profiles(config.profiles, args_paths or {}, _Rules(removed, gates), problems)
    _percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore", problems)
    initial, longest = config.pod_initial_backoff_s, config.pod_max_backoff_s
    if initial <= 0:
        problems.add("podInitialBackoffSeconds", "a number above 0", initial)
    if longest < initial:
        expected = f"a number not below podInitialBackoffSeconds, which is {initial}"
        problems.add("podMaxBackoffSeconds", expected, longest)
    _extenders(config.extenders, problems)
    return problems


def _percentage(percentage: int | None, path: str, problems: Problems) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        problems.add(path, "a percentage from 0 to 100", percentage)


def _leader_election(election: LeaderElection, problems: Problems) -> None:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration_s,
        "renewDeadline": election.renew_deadline_s,
        "retryPeriod": election.retry_period_s,
    }
    for name, duration in durations.items():
        if duration <= 0:
            problems.add(f"leaderElection.{name}", "a duration above 0s", seconds(duration))
    lease, renew = seconds(election.lease_duration_s), seconds(election.renew_deadline_s)
    if election.lease_duration_s <= election.renew_deadline_s:
        expected = f"a duration above renewDeadline, which is {renew}"
        problems.add("leaderElection.leaseDuration", expected, lease)
    if election.resource_lock != "leases":
        problems.add("leaderElection.resourceLock", "leases", election.resource_lock)
    names = {
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }
    for name, value in names.items():
        if not value:
            problems.add(f"leaderElection.{name}", "a name", value)


def _profiles(
    profiles: tuple[Profile, ...],
    args_paths: Mapping[tuple[str, str], str],
    rules: _Rules,
    problems: Problems,
) -> None:
    if not profiles:
        problems.add("profiles", "at least one profile", profiles)
        return
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        path, name = f"profiles[{i}]", profile.scheduler_name
        if not name:
            problems.add(f"{path}.schedulerName", "a name", name)
        _percentage(
            profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore", problems
        )
        _removed_plugins(profile, path, rules, problems)
        _plugin_config(profile, path, args_paths, rules, problems)
        if name in seen:
            expected = "a name no other profile has"
            problems.add(f"{path}.schedulerName", expected, name)
        seen.add(name)
    _common_queue_sort(profiles, problems)


def _removed_plugins(profile: Profile, path: str, rules: _Rules, problems: Problems) -> None:
    for point, name in POINT_NAMES.items():
        if point in _POINTS_WITHOUT_REMOVED:
            for i, ref in enumerate(profile.plugins.at(point).enabled):
                if ref.name in rules.plugins:
                    where = f"{path}.plugins.{name}.enabled[{i}]"
                    problems.add(where, "a plugin that still exists", ref.name)


def _plugin_config(
    profile: Profile,
    path: str,
    args_paths: Mapping[tuple[str, str], str],
    rules: _Rules,
    problems: Problems,
) -> None:
    enabled = profile.plugins.names()
    for i, (name, args) in enumerate(profile.plugin_config.items()):
        where = args_paths.get((path, name), f"{path}.pluginConfig[{i}]")
        if name in rules.plugins:
            problems.add(where, "a plugin that still exists", name)
            continue
        args_type = ARGS_TYPES.get(name)
        if args_type is None:
            if isinstance(args, Args):
                validate_args(args, f"{where}.args", problems, rules.gates)
            continue
        if not isinstance(args, args_type):
            problems.add(f"{where}.args", args_type.__name__, Literally(type(args).__name__))
        # kube-scheduler checks these arguments only when it creates the plugin.
        elif name != "NodeResourcesFit" or name in enabled:
            validate_args(args, f"{where}.args", problems, rules.gates)


def _common_queue_sort(profiles: tuple[Profile, ...], problems: Problems) -> None:
    """Record profiles that sort the queue differently from the first; there is only one queue."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        problems.add(path, "one queue sort plugin", len(first.enabled))
    name = first.enabled[0].name if first.enabled else ""
    args = profiles[0].plugin_config.get(name)
    for i, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first:
            got = Literally("something else")
            path, expected = f"profiles[{i}].plugins.queueSort", "the same as in profiles[0]"
            problems.add(path, expected, got)
        if name in profile.plugin_config and profile.plugin_config[name] != args:
            expected = f"the same args for {name} as in profiles[0]"
            got = Literally("something else")
            problems.add(f"profiles[{i}].pluginConfig.args", expected, got)


def _extenders(extenders: tuple[Extender, ...], problems: Problems) -> None:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            expected = "a weight above 0, since prioritizeVerb is set"
            problems.add(f"{path}.weight", expected, extender.weight)
        for j, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{j}].name"
            if not is_qualified_name(resource.name) or not is_extended(resource.name):
                expected = "an extended resource such as example.com/gpu"
                problems.add(where, expected, resource.name)
            if resource.name in managed:
                problems.add(where, "a resource no extender manages already", resource.name)
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        got = Literally(f"{binders} of them")
        expected = "at most one extender with a bindVerb"
        problems.add("extenders", expected, got)


OF_SCHEDULER_PLUGINS = frozenset(
    {
        *("CapacityScheduling", "CrossNodePreemption", "LoadVariationRiskBalancing"),
        *("LowRiskOverCommitment", "NetworkOverhead", "NodeMetadata", "NodeResourcesAllocatable"),
        *("NodeResourceTopologyMatch", "Peaks", "PodState", "PreemptionToleration", "QOSSort"),
        *("SySched", "TargetLoadPacking", "TopologicalSort"),
    }
)
"""Plugins of kubernetes-sigs/scheduler-plugins that are not here."""


def find_plugin_problems(
    profile: Profile, path: str, registered: Collection[str], implements: Implements
) -> Problems:
    """Returns the mistakes in the plugin lists of the profile at `path` of the file."""
    problems = Problems()
    named = {
        ref.name
        for point in (*POINT_NAMES, MULTI_POINT)
        for ref in profile.plugins.at(point).enabled
    }
    absent = sorted(named & OF_SCHEDULER_PLUGINS - {*registered})
    if absent:
        got = Literally(f"{', '.join(absent)} of scheduler-plugins")
        problems.add(f"{path}.plugins", "plugins that Bayplan has, or --plugins with those", got)
    for point in (*POINT_NAMES, MULTI_POINT):
        written = POINT_NAMES.get(point, "multiPoint")
        seen: set[str] = set()
        for ref in profile.plugins.at(point).enabled:
            where, name = f"{path}.plugins.{written}.enabled", ref.name
            if name not in registered:
                if name not in absent:
                    problems.add(where, suggest(name, registered), name)
            elif point != MULTI_POINT and not implements(name, point):
                expected, got = f"plugins that implement {written}", Literally(show(name))
                problems.add(where, expected, got)
            elif name in seen:
                problems.add(where, "each plugin once", name)
            seen.add(name)
    return problems


def plugin_notes(
    profile: Profile,
    path: str,
    registered: Collection[str],
    implements: Implements,
    gates: FeatureGates,
) -> list[str]:
    """Returns notes on settings about plugins that are read and have no effect."""
    notes = []
    named = profile.plugins.names()
    for name in profile.plugin_config:
        if name not in registered and name not in named:
            hint = f" (expected {suggest(name, registered)})"
            notes.append(f"{path}.pluginConfig: {name}: no such plugin; no effect{hint}")
    if gates.enabled(TOPOLOGY_AWARE_WORKLOAD_SCHEDULING):
        return notes
    for name in sorted(named & {*registered} - {"NodeResourcesFit"}):
        points = [POINT_NAMES[point] for point in PLACEMENT_POINTS if implements(name, point)]
        if points:
            points_text = " and ".join(points)
            notes.append(
                f"{path}.plugins: {name}: {points_text} is not run without the feature gate "
                f"{TOPOLOGY_AWARE_WORKLOAD_SCHEDULING}"
            )
    return notes


def suggest(name: str, registered: Collection[str]) -> str:
    """Returns the names that were expected in place of an unknown plugin `name`."""
    similar = difflib.get_close_matches(name, registered, n=1, cutoff=SIMILAR)
    return similar[0] if similar else "the name of a plugin"
