"""V1: KubeSchedulerConfiguration as written in files of kubescheduler.config.k8s.io/v1.

Mirrors staging/src/k8s.io/kube-scheduler/config/v1/types.go. These types have the shape of the
file; `read_v1` turns them into those of `types.py`. Another version of the format is another
module beside this one, with its own line in `load.py`.
"""

from typing import Any

import msgspec
from msgspec import structs

from .decode import Int32, Int64, decode
from .defaults import DEFAULT_PLUGINS, default_plugin_config, merge_plugins
from .plugin_args import ARGS_TYPES, Args, fill_in
from .problems import ProblemKind, Problems
from .types import (
    DEFAULT_SCHEDULER_NAME,
    POINT_NAMES,
    ClientConnection,
    Extender,
    LeaderElection,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from .validation import ArgsPaths, validate_config

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class PluginSetV1(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin set; what is disabled has the form of what is enabled."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class PluginsV1(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin sets of all points."""

    pre_enqueue: PluginSetV1 = PluginSetV1()
    queue_sort: PluginSetV1 = PluginSetV1()
    pre_filter: PluginSetV1 = PluginSetV1()
    filter: PluginSetV1 = PluginSetV1()
    post_filter: PluginSetV1 = PluginSetV1()
    pre_score: PluginSetV1 = PluginSetV1()
    score: PluginSetV1 = PluginSetV1()
    reserve: PluginSetV1 = PluginSetV1()
    permit: PluginSetV1 = PluginSetV1()
    pre_bind: PluginSetV1 = PluginSetV1()
    bind: PluginSetV1 = PluginSetV1()
    post_bind: PluginSetV1 = PluginSetV1()
    multi_point: PluginSetV1 = PluginSetV1()
    placement_generate: PluginSetV1 = PluginSetV1()
    placement_score: PluginSetV1 = PluginSetV1()


class PluginConfigV1(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of one plugin, not yet read."""

    name: str = ""
    args: Any = None


class ProfileV1(msgspec.Struct, frozen=True, rename="camel"):
    """A profile; no scheduler name is not the same as an empty one."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: PluginsV1 = PluginsV1()
    plugin_config: tuple[PluginConfigV1, ...] = ()


class ConfigurationV1(msgspec.Struct, frozen=True, rename="camel"):
    """The file."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileV1, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


def read_v1(data: dict[str, Any], problems: Problems) -> SchedulerConfiguration:
    """Returns the configuration that `data` describes, checked, with all defaults filled in."""
    file = decode(ConfigurationV1, data, "", problems)
    profiles = file.profiles or (ProfileV1(),)
    # Only a profile that is alone has a default name; several must all be named.
    only_name = DEFAULT_SCHEDULER_NAME if len(profiles) == 1 else ""
    args_paths: ArgsPaths = {}
    config = SchedulerConfiguration(
        parallelism=file.parallelism,
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        pod_initial_backoff_s=file.pod_initial_backoff_seconds,
        pod_max_backoff_s=file.pod_max_backoff_seconds,
        profiles=tuple(
            _profile(profile, only_name, f"profiles[{i}]", args_paths, problems)
            for i, profile in enumerate(profiles)
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
        delay_cache_until_active=file.delay_cache_until_active,
    )
    # A field that could not be read has its default now; what is said of that is of no use.
    unreadable = Problems(problems)
    found = validate_config(config, args_paths)
    problems.extend(problem for problem in found if not unreadable.cover(problem.path))
    return config


def _profile(
    file: ProfileV1, default_name: str, path: str, args_paths: ArgsPaths, problems: Problems
) -> Profile:
    """Returns a profile with the default plugins and arguments merged in."""
    plugins = merge_plugins(DEFAULT_PLUGINS, _plugins(file.plugins))
    given: dict[str, Args | dict[str, Any] | None] = {}
    for i, entry in enumerate(file.plugin_config):
        where = f"{path}.pluginConfig[{i}]"
        if entry.name in given:
            problems.add(where, "each plugin once", entry.name, ProblemKind.DUPLICATE)
            continue
        given[entry.name] = _args(entry, f"{where}.args", problems)
        args_paths[path, entry.name] = where
    return Profile(
        scheduler_name=default_name if file.scheduler_name is None else file.scheduler_name,
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        plugins=plugins,
        plugin_config=default_plugin_config(plugins, given),
    )


def _plugins(file: PluginsV1) -> Plugins:
    """Returns the plugin sets with what is disabled as bare names."""
    sets = {}
    for point in (*POINT_NAMES, "multi_point"):
        plugin_set: PluginSetV1 = getattr(file, point)
        disabled = tuple(ref.name for ref in plugin_set.disabled)
        sets[point] = PluginSet(plugin_set.enabled, disabled)
    return Plugins(**sets)


def _args(entry: PluginConfigV1, path: str, problems: Problems) -> Args | dict[str, Any] | None:
    """Returns the arguments of a plugin: typed if it is known, else as they are written."""
    args_type = ARGS_TYPES.get(entry.name)
    if args_type is None:
        return entry.args  # type: ignore[no-any-return]  # plain data of the file
    data = {} if entry.args is None else entry.args
    if isinstance(data, dict):
        data = _without_type_meta(entry.name, data, path, problems)
    return fill_in(decode(args_type, data, path, problems))


def _without_type_meta(
    plugin: str, data: dict[str, Any], path: str, problems: Problems
) -> dict[str, Any]:
    """Returns arguments without `apiVersion` and `kind`, which are optional but must fit."""
    expected = {"apiVersion": API_VERSION, "kind": f"{plugin}Args"}
    for name, value in expected.items():
        if data.get(name) not in (None, "", value):
            problems.add(f"{path}.{name}", value, data[name], ProblemKind.VERSION)
    return {name: value for name, value in data.items() if name not in expected}


def _without_zeros(section: LeaderElection | ClientConnection) -> Any:
    """Returns `section` with its defaults in place of zeros and empty texts."""
    defaults = type(section)()
    empty = {
        name: getattr(defaults, name)
        for name in section.__struct_fields__
        if getattr(section, name) in ("", 0) and not isinstance(getattr(section, name), bool)
    }
    return structs.replace(section, **empty)
