"""Internal form: a KubeSchedulerConfiguration of any version to the internal types.

Mirrors pkg/scheduler/apis/config/v1/{defaults,conversion}.go and the scheme beside it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from ..releases.feature_gates import FeatureGates
from ..releases.gate_effects import EFFECTS
from .args_validation import validate_args
from .decode import decode, plain_numbers
from .defaults import default_plugin_config, merge_plugins
from .files import ConfigurationFile, PluginConfigFile, PluginSetFile, ProfileFile
from .gates import DEFAULT_POD_TOPOLOGY_SPREAD, apply_gates, forbid_gated_fields, refuse_field
from .generations import V1, Generation
from .plugin_args import LIST_DEFAULTING, Args, PodTopologySpreadArgs, fill_in
from .problems import Problems
from .types import (
    DEFAULT_SCHEDULER_NAME,
    PLACEMENT_POINTS,
    POINT_NAMES,
    ClientConnection,
    LeaderElection,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from .validation import ArgsPaths, validate_config

PlainArgs = Args | dict[str, Any] | None
Entries = tuple[tuple[str, PlainArgs], ...]

_ADDRESSES = {
    "healthz_bind_address": "healthzBindAddress",
    "metrics_bind_address": "metricsBindAddress",
}


class Reading(msgspec.Struct, frozen=True):
    """A configuration, and details about its file.

    `api_version` is that of the file. `entries` has pluginConfig per profile as a list, in which a
    name can occur twice. `notes` list settings that were read and have no effect.
    """

    config: SchedulerConfiguration
    api_version: str
    entries: tuple[Entries, ...] = ()
    notes: tuple[str, ...] = ()


def read_component(
    data: dict[str, Any],
    problems: Problems,
    generation: Generation = V1,
    gates: FeatureGates | None = None,
) -> Reading:
    """Return the configuration in `data`, validated, with all defaults filled in."""
    file = decode(generation.file, data, "", problems)
    profiles = file.profiles or (ProfileFile(),)
    # Only a single profile has a default name; several must all be named.
    only_name = DEFAULT_SCHEDULER_NAME if len(profiles) == 1 else ""
    gates = FeatureGates.of(gates)
    reader = _ProfileReader(generation, gates, problems)
    config = SchedulerConfiguration(
        parallelism=file.parallelism,
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        pod_initial_backoff_s=file.pod_initial_backoff_seconds,
        pod_max_backoff_s=file.pod_max_backoff_seconds,
        profiles=tuple(
            reader.read(profile, only_name, f"profiles[{i}]") for i, profile in enumerate(profiles)
        ),
        extenders=file.extenders,
        leader_election=_without_zeros(file.leader_election),
        client_connection=_without_zeros(file.client_connection),
        enable_profiling=file.enable_profiling,
        enable_contention_profiling=(
            file.enable_profiling
            if file.enable_contention_profiling is None
            else file.enable_contention_profiling
        ),
        delay_cache_until_active=getattr(file, "delay_cache_until_active", False),
    )
    # An unreadable field has its default now; problems about that default are not useful.
    unreadable = Problems(problems)
    found = validate_config(config, reader.args_paths, generation.removed, gates)
    found += reader.found_in_repeated
    problems.extend(problem for problem in found if not unreadable.cover(problem.path))
    notes = (*_notes(file), *gate_notes(gates))
    return Reading(config, generation.api_version, tuple(reader.entries), notes)


class _ProfileReader:
    """Reads the profiles of one file."""

    def __init__(self, generation: Generation, gates: FeatureGates, problems: Problems) -> None:
        self._generation = generation
        self._gates = gates
        self._problems = problems
        self.args_paths: ArgsPaths = {}
        self.entries: list[Entries] = []
        self.found_in_repeated = Problems()

    def read(self, file: ProfileFile, default_name: str, path: str) -> Profile:
        """Returns the profile at `path` with the default plugins and arguments merged in."""
        for point in PLACEMENT_POINTS:
            name = POINT_NAMES[point]
            is_set = getattr(file.plugins, point, PluginSetFile()) != PluginSetFile()
            if is_set and name in self._gates.release.missing_config_fields:
                refuse_field(f"{path}.plugins.{name}", self._gates, self._problems)
        defaults = self._generation.default_plugins(self._gates)
        plugins = merge_plugins(defaults, _plugins(file), replaces=self._generation.replaces)
        listed: list[tuple[str, PlainArgs]] = []
        given: dict[str, PlainArgs] = {}
        for i, entry in enumerate(file.plugin_config):
            where = f"{path}.pluginConfig[{i}]"
            args = self._args(entry, f"{where}.args")
            listed.append((entry.name, args))
            if entry.name in given:
                found = self.found_in_repeated
                found.add(where, "each plugin once", entry.name)
                if isinstance(args, Args) and entry.name != "NodeResourcesFit":
                    validate_args(args, f"{where}.args", found, self._gates)
                continue
            given[entry.name] = args
            self.args_paths[path, entry.name] = where
        complete = default_plugin_config(plugins, given, self._generation.args_types, self._gates)
        if "PodTopologySpread" not in given and "PodTopologySpread" in complete:
            complete["PodTopologySpread"] = self._spread({}, PodTopologySpreadArgs())
        added = tuple((name, complete[name]) for name in complete if name not in given)
        self.entries.append((*listed, *added))
        return Profile(
            scheduler_name=default_name if file.scheduler_name is None else file.scheduler_name,
            percentage_of_nodes_to_score=getattr(file, "percentage_of_nodes_to_score", None),
            plugins=plugins,
            plugin_config=complete,
        )

    def _args(self, entry: PluginConfigFile, path: str) -> PlainArgs:
        """Return the arguments of a plugin: typed if it is known, else as written."""
        args_type = self._generation.args_types.get(entry.name)
        if args_type is None:
            return plain_numbers(entry.args)  # type: ignore[no-any-return]  # plain data of the file
        data = {} if entry.args is None else entry.args
        if not isinstance(data, dict):
            self._problems.add(path, "a mapping", data)
            return args_type()
        expected = {"apiVersion": self._generation.api_version, "kind": f"{entry.name}Args"}
        for name, value in expected.items():
            if data.get(name) not in (None, "", value):
                self._problems.add(f"{path}.{name}", value, data[name])
        data = {name: value for name, value in data.items() if name not in expected}
        args = fill_in(decode(args_type, data, path, self._problems))
        forbid_gated_fields(args, data, path, self._problems, self._gates)
        args = apply_gates(args, self._gates)
        return self._spread(data, args) if isinstance(args, PodTopologySpreadArgs) else args

    def _spread(self, data: Mapping[str, Any], args: PodTopologySpreadArgs) -> Args:
        """Returns the arguments of PodTopologySpread with the defaulting of the generation."""
        if data.get("defaultingType"):
            return args
        guesses = self._generation.guesses_defaulting and args.default_constraints
        old = self._generation.api_version != V1.api_version
        if guesses or (old and not self._gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD)):
            return structs.replace(args, defaulting_type=LIST_DEFAULTING)
        return args


def _plugins(file: ProfileFile) -> Plugins:
    """Return the plugin sets with disabled plugins as bare names."""
    sets = {}
    for point in (*POINT_NAMES, "multi_point"):
        plugin_set: PluginSetFile = getattr(file.plugins, point, PluginSetFile())
        disabled = tuple(ref.name for ref in plugin_set.disabled)
        sets[point] = PluginSet(plugin_set.enabled, disabled)
    return Plugins(**sets)


def _without_zeros(section: LeaderElection | ClientConnection) -> Any:
    """Returns `section` with its defaults in place of zeros and empty texts."""
    defaults = type(section)()
    empty = {
        name: getattr(defaults, name)
        for name in section.__struct_fields__
        if getattr(section, name) in ("", 0) and not isinstance(getattr(section, name), bool)
    }
    return structs.replace(section, **empty)


def gate_notes(gates: FeatureGates) -> tuple[str, ...]:
    """Return notes on gates that were set and concern other components, or that a whole stage cannot set."""
    notes = []
    if gates.without_effect():
        notes.append(f"feature gates without effect here: {', '.join(gates.without_effect())}")
    for name in gates.left_out:
        effect = EFFECTS[name]
        value = "on" if effect.missing else "off"
        notes.append(f"{name} is not {value}: {effect.describe(effect.missing)}")
    return tuple(notes)


def _notes(file: ConfigurationFile) -> list[str]:
    """Return notes on settings that no longer exist."""
    return [
        f"{name}: left out; there is no insecure port any more, and the secure one is not set here"
        for field, name in _ADDRESSES.items()
        if getattr(file, field, None)
    ]
