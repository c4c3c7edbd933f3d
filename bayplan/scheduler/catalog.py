"""Catalog: which plugins there are, and which of them a configuration runs.

For readers of a configuration that build no scheduler from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from ..api.custom import CustomResource
from ..config.defaults import DEFAULT_PLUGINS
from ..config.encode import encode_struct
from ..config.expand import ExpandedPlugins, check_same_queue_sort, expand_plugins
from ..config.extender_order import with_ignored_resources
from ..config.plugin_args import ARGS_TYPES, LEGACY_ARGS_TYPES
from ..config.types import POINT_NAMES, SchedulerConfiguration
from ..config.validation import find_plugin_problems, plugin_notes
from ..errors import ConfigError
from ..framework import (
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from ..framework.registration import declared_resources
from ..plugins.in_tree import IN_TREE
from ..releases.feature_gates import FeatureGates
from ..releases.release import DEFAULT_RELEASE, Release
from ..runtime import Registry
from ..runtime.profile import make_plugin
from ..table import NodeTable
from .parts import PluginSource

ARGUMENTS = {**ARGS_TYPES, **LEGACY_ARGS_TYPES}
EVERY_POD = "all nodes, for every pod"


class PluginDescription(msgspec.Struct, frozen=True):
    """Facts about a plugin, for choosing one.

    `points` are named as in a configuration. `args` are its arguments with their defaults, None if it takes none or
    any. `source` is `in-tree`, a package, or a file.
    """

    name: str
    summary: str
    source: str
    points: tuple[str, ...]
    is_default: bool
    weight: int
    args: dict[str, Any] | None
    judging: Judging
    """On which nodes the engine calls it, and what to declare so that it is called less."""
    custom_resources: tuple[str, ...] = ()
    """Names of the custom resources that it reads."""


def describe_plugins(
    plugin_files: Iterable[str] = (), config: SchedulerConfiguration | None = None
) -> tuple[PluginDescription, ...]:
    """All plugins a configuration can name, in the order in which they were registered; those of `config`, if given."""
    plugin_files = list(plugin_files)
    registry = make_registry(plugin_files)
    weights = {ref.name: ref.weight for ref in DEFAULT_PLUGINS.multi_point.enabled}
    names = list(registry)
    if config is not None:
        profiles = effective_plugins(config, plugin_files)
        used = {ref.name for points in profiles for refs in points.values() for ref in refs}
        used |= {
            name for name in names if registry.source(name) in plugin_files
        }  # enabled everywhere, as in a run
        names = [name for name in names if name in used]
    return tuple(_describe(name, registry, weights) for name in names)


def effective_plugins(
    config: SchedulerConfiguration,
    plugin_files: Iterable[str] = (),
    release: Release = DEFAULT_RELEASE,
) -> tuple[ExpandedPlugins, ...]:
    """The plugins of each profile by extension point, in the order of execution.

    Raises ConfigError with a line for each mistake.
    """
    return expand_profiles(config, make_registry(plugin_files, config, release))


class InputNeeds(msgspec.Struct, frozen=True):
    """Fields and kinds that the plugins of a configuration read beyond those of placement rules."""

    whole_objects: bool = False
    """Pods and nodes with all of their fields."""
    custom_resources: tuple[CustomResource, ...] = ()


def input_needs(
    config: SchedulerConfiguration, plugins: Iterable[str | type[Plugin]] = ()
) -> InputNeeds:
    """Needs of extenders and plugins; plugins are classes or files."""
    given = [plugin for plugin in plugins if not isinstance(plugin, str)]
    files = [plugin for plugin in plugins if isinstance(plugin, str)]
    named = {name for profile in config.profiles for name in profile.plugins.names()}
    used = [plugin for plugin in IN_TREE if plugin.name in named]
    if files or len(used) < len(named):
        registry = make_registry(files)
        used = [
            registry.get(name)
            for name in registry
            if name in named or registry.source(name) in files
        ]
    used += given
    return InputNeeds(
        bool(config.extenders) or any(plugin.reads_whole_objects for plugin in used),
        tuple(declared_resources(used).values()),
    )


def used_plugins(
    expanded: Iterable[ExpandedPlugins], registry: Registry
) -> tuple[type[Plugin], ...]:
    """The plugins that some profile runs."""
    names = {ref.name for points in expanded for refs in points.values() for ref in refs}
    return tuple(registry.get(name) for name in registry if name in names)


def plugin_faults(
    plugin_files: Iterable[str] = (), release: Release = DEFAULT_RELEASE
) -> Callable[[SchedulerConfiguration], list[str]]:
    """Return a check for mistakes that are only found by loading plugins or the files of extenders."""
    registry = make_registry(plugin_files, release=release)

    def check(config: SchedulerConfiguration) -> list[str]:
        faults: list[str] = []
        builds: list[Callable[[SchedulerConfiguration], object]] = [
            with_ignored_resources,
            lambda config: expand_profiles(config, registry),
            lambda config: _try_arguments(config, registry),
        ]
        for build in builds:
            try:
                build(config)
            except ConfigError as error:
                faults += str(error).splitlines()
        return faults

    return check


def _try_arguments(config: SchedulerConfiguration, registry: Registry) -> None:
    """Make the plugins that validate their own arguments; ConfigError with a line for each that refuses them."""
    faults: list[str] = []
    for i, profile in enumerate(config.profiles):
        handle = Handle(NodeTable())
        for name in profile.plugin_config:
            if name in registry and name not in ARGUMENTS:
                try:
                    make_plugin(registry.get(name), profile, handle)
                except ConfigError as error:
                    faults.append(f"profiles[{i}]: {error}")
    if faults:
        raise ConfigError("\n".join(faults))


def expand_profiles(
    config: SchedulerConfiguration, registry: Registry
) -> tuple[ExpandedPlugins, ...]:
    """The plugins of each profile; see effective_plugins."""
    faults: list[str] = []
    expanded: list[ExpandedPlugins] = []
    for i, profile in enumerate(config.profiles):
        path = f"profiles[{i}]"
        try:
            expanded.append(expand_plugins(profile, list(registry), registry.implements))
        except ConfigError as error:
            found = find_plugin_problems(profile, path, list(registry), registry.implements)
            faults += map(str, found) if found else [f"{path}: {error}"]
    if not faults:
        by_name = {
            profile.scheduler_name: own
            for profile, own in zip(config.profiles, expanded, strict=True)
        }
        try:
            check_same_queue_sort(config.profiles, by_name)
        except ConfigError as error:
            faults.append(f"profiles: {error}")
    if faults:
        raise ConfigError("\n".join(faults))
    return tuple(expanded)


def notes_on_plugins(
    config: SchedulerConfiguration, plugin_files: Iterable[str], gates: FeatureGates
) -> list[str]:
    """Notes on settings about plugins that have no effect."""
    return plugin_notes_of(config, make_registry(plugin_files, config, gates.release), gates)


def plugin_notes_of(
    config: SchedulerConfiguration, registry: Registry, gates: FeatureGates
) -> list[str]:
    """Notes on settings about plugins of `registry` that have no effect."""
    return [
        note
        for i, profile in enumerate(config.profiles)
        for note in plugin_notes(
            profile, f"profiles[{i}]", list(registry), registry.implements, gates
        )
    ]


def make_registry(
    plugin_files: Iterable[str] = (),
    config: SchedulerConfiguration | None = None,
    release: Release = DEFAULT_RELEASE,
) -> Registry:
    """The registry of `register_plugins`."""
    return register_plugins(plugin_files, config, release)[0]


def register_plugins(
    plugins: Iterable[PluginSource],
    config: SchedulerConfiguration | None,
    release: Release = DEFAULT_RELEASE,
) -> tuple[Registry, list[str]]:
    """The plugins in the tree, of installed packages and the given ones; and the names of the latter.

    Packages are searched only if plugins are given, or `config` names one that is not in the tree: the search takes
    some 60 ms.
    """
    sources, given = list(plugins), list[str]()
    registry = Registry(IN_TREE, release.missing_points)
    if config is None or sources or not _named(config) <= {*registry}:
        registry.load_entry_points()
    for plugin in sources:
        if isinstance(plugin, str):
            given += registry.load_file(plugin)
        else:
            registry.register(plugin)
            given.append(plugin.name)
    return registry, given


def _named(config: SchedulerConfiguration) -> set[str]:
    """The plugins that the configuration names, also to give them arguments only."""
    return {
        name
        for profile in config.profiles
        for name in (*profile.plugins.names(), *profile.plugin_config)
    }


def _describe(name: str, registry: Registry, weights: dict[str, int]) -> PluginDescription:
    plugin = registry.get(name)
    args_type = ARGUMENTS.get(name)
    return PluginDescription(
        name=name,
        summary=_summary(plugin),
        source=registry.source(name),
        points=tuple(
            written for point, written in POINT_NAMES.items() if registry.implements(name, point)
        ),
        is_default=name in weights,
        weight=weights.get(name, 0) or 1,
        args=None if args_type is None else encode_struct(args_type(), keep_empty=True),
        judging=describe_judging(plugin),
        custom_resources=tuple(resource.name for resource in plugin.custom_resources),
    )


def _summary(plugin: type[Plugin]) -> str:
    """Purpose of a plugin: the docstring of its module or package after its name, else of its class."""
    package = plugin.__module__.rpartition(".")[0]
    for module in (plugin.__module__, package):
        first = _first_line(sys.modules.get(module))
        if first.startswith(f"{plugin.name}: "):
            return first.partition(": ")[2]
    return _first_line(plugin) or _first_line(sys.modules.get(plugin.__module__))


def _first_line(thing: object) -> str:
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0]


class Judging(NamedTuple):
    """On which nodes a plugin is called, and what to declare so that it is called less; both may be empty."""

    how: str
    advice: str


def describe_judging(plugin: type[Plugin]) -> Judging:
    """On which nodes Filter and Score of `plugin` are called."""
    is_filter, is_scorer = issubclass(plugin, FilterPlugin), issubclass(plugin, ScorePlugin)
    if not is_filter and not is_scorer:
        return Judging("", "; ".join(_unsettled(plugin)))
    if plugin.scope is GROUPS:
        return Judging("one node of each group, for every pod", "")
    if plugin.scope not in (NODE_OBJECT, NODE_ROW):
        advice = "declare `scope` if the answer depends on less"
        return Judging(EVERY_POD, advice + _rows(plugin))
    how = "nodes that changed"
    if plugin.scope is NODE_ROW:
        how += ", or their pods"
        if _has_own(plugin, Plugin, "amount_rules"):
            how = "a rule on amounts, in the kernel"
    if is_scorer and _scores_every_pod(plugin):
        how = f"in Filter {how}; in Score all nodes, for every pod" if is_filter else EVERY_POD
    return Judging(how, _advice(plugin))


def _scores_every_pod(plugin: type[Plugin]) -> bool:
    """Whether Score is called for every pod, whatever the scope: it may depend on what PreScore computes."""
    is_prepared = issubclass(plugin, PreScorePlugin) and not _has_own(plugin, Plugin, "settled")
    return is_prepared or _has_own(plugin, ScorePlugin, "normalize_rows")


def _unsettled(plugin: type[Plugin]) -> list[str]:
    """Advice about methods that are called for every pod for want of a declaration."""
    called = (PreFilterPlugin, PreScorePlugin, ReservePlugin, PermitPlugin, PreBindPlugin)
    points = [base.__name__.removesuffix("Plugin") for base in called if issubclass(plugin, base)]
    if not points or _has_own(plugin, Plugin, "settled"):
        return []
    return [f"declare `settled` if the spec says that {' and '.join(points)} need not be called"]


def _advice(plugin: type[Plugin]) -> str:
    advice = _unsettled(plugin)
    if not _has_own(plugin, Plugin, "spec_key"):
        advice.append("declare `spec_key` if it depends on the spec alone")
    return ("; ".join(advice) + _rows(plugin)).removeprefix("; ")


def _rows(plugin: type[Plugin]) -> str:
    """The missing declaration of a plugin that judges one node at a time."""
    lacking = [
        f"`{method}`"
        for base, method in ((FilterPlugin, "filter_rows"), (ScorePlugin, "score_rows"))
        if issubclass(plugin, base) and not _has_own(plugin, base, method)
    ]
    return f"; implement {' and '.join(lacking)}" if lacking else ""


def _has_own(plugin: type[Plugin], base: type[Plugin], method: str) -> bool:
    return getattr(plugin, method) is not getattr(base, method)
