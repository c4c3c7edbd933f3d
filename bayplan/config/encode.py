"""Encode: a configuration as plain data in the current format, kubescheduler.config.k8s.io/v1.

Mirrors what kube-scheduler writes with --write-config-to. Every default is included; empty fields
are left out.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..api.text.durations import format_go_duration
from .defaults import ALL
from .expand import ExpandedPlugins
from .files import API_VERSION, KIND
from .internal_form import Entries, PlainArgs, Reading
from .plugin_args import LEGACY_ARGS_TYPES, Args
from .types import (
    POINT_NAMES,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from .validation import REMOVED_PLUGINS

MULTI_POINT = "multiPoint"


def encode_config(
    config: SchedulerConfiguration, entries: Sequence[Entries] = ()
) -> dict[str, Any]:
    """Return `config` as the content of a file.

    `entries` are the pluginConfig lists of the profiles where they differ from those of `config`,
    as in a file that has one plugin twice.
    """
    listed = entries or [tuple(profile.plugin_config.items()) for profile in config.profiles]
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": config.parallelism,
        "leaderElection": encode_struct(config.leader_election),
        "clientConnection": encode_struct(config.client_connection),
        "enableProfiling": config.enable_profiling,
        "enableContentionProfiling": config.enable_contention_profiling,
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_s,
        "podMaxBackoffSeconds": config.pod_max_backoff_s,
        "profiles": [
            _profile(profile, own) for profile, own in zip(config.profiles, listed, strict=True)
        ],
        "extenders": [encode_struct(extender) for extender in config.extenders],
        "delayCacheUntilActive": config.delay_cache_until_active,
    }
    return _filled(document)


def encode_args(name: str, args: PlainArgs) -> Any:
    """Returns the arguments of plugin `name` with their apiVersion and kind."""
    if not isinstance(args, Args):
        return args
    return {"apiVersion": API_VERSION, "kind": f"{name}Args", **encode_struct(args)}


def encode_plugin_set(plugin_set: PluginSet) -> dict[str, Any]:
    """Return the set of one extension point; a weight of 0 (unset) is left out."""
    enabled = [
        {"name": ref.name, "weight": ref.weight} if ref.weight else {"name": ref.name}
        for ref in plugin_set.enabled
    ]
    return _filled({"enabled": enabled, "disabled": [{"name": n} for n in plugin_set.disabled]})


def encode_struct(value: msgspec.Struct, *, keep_empty: bool = False) -> dict[str, Any]:
    """Return a part of the configuration under its names in a file.

    Empty fields are left out, unless `keep_empty` is set.
    """
    plain = {}
    defaults = dict(
        zip(reversed(value.__struct_fields__), reversed(value.__struct_defaults__), strict=False)
    )
    for name, written in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        member = getattr(value, name)
        if name.endswith("_s") and member is not None:
            member = format_go_duration(member)
        # An empty list differs from an absent one where the default is absent.
        is_empty_list = member == () and defaults.get(name) is not None
        is_empty = member is None or is_empty_list or member in ("", b"")
        if keep_empty or not is_empty:
            plain[written] = _plain(member)
    return plain


def _profile(profile: Profile, entries: Entries) -> dict[str, Any]:
    return _filled(
        {
            "schedulerName": profile.scheduler_name,
            "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
            "plugins": _plugins(profile.plugins),
            "pluginConfig": [
                _filled({"name": name, "args": encode_args(name, args)}) for name, args in entries
            ],
        }
    )


def _plugins(plugins: Plugins) -> dict[str, Any]:
    sets = {name: encode_plugin_set(plugins.at(point)) for point, name in POINT_NAMES.items()}
    return _filled({**sets, MULTI_POINT: encode_plugin_set(plugins.multi_point)})


def _plain(value: Any) -> Any:
    """Returns a member of a struct as plain data."""
    match value:
        case msgspec.Struct():
            return encode_struct(value)
        case tuple():
            return [_plain(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return dict(value)
        case _:
            return value


def _filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return `document` without absent and empty values; zero and false are kept."""
    empty: tuple[Any, ...] = ("", [], {})
    return {
        name: value
        for name, value in document.items()
        if value is not None and not any(value == other for other in empty)
    }


# Plugins of earlier generations that a file of the current format can name, in Bayplan.
LEGACY_PLUGINS = frozenset({*LEGACY_ARGS_TYPES, "NodePreferAvoidPods", "SelectorSpread"})


class Converted(NamedTuple):
    """A file of the current format as plain data, and notes on settings it could not keep."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def convert_config(reading: Reading, expanded: Sequence[ExpandedPlugins]) -> Converted:
    """Returns the configuration in the current format, kubescheduler.config.k8s.io/v1.

    `expanded` has the plugins of each profile by extension point.
    """
    config, notes = reading.config, list(reading.notes)
    document = encode_config(config)
    if reading.api_version != API_VERSION:
        for profile, own, written in zip(
            config.profiles, expanded, document["profiles"], strict=True
        ):
            written["plugins"] = _plugins(pinned_plugins(own))
            written["pluginConfig"] = [
                entry
                for entry in written.get("pluginConfig", ())
                if entry["name"] not in REMOVED_PLUGINS
            ]
            notes += _dropped(profile, own)
    for profile in config.profiles:
        notes += _legacy(profile)
    if config.always_check_all_predicates:
        notes.append(
            "alwaysCheckAllPredicates: left out; a node is not filtered further once it is rejected"
        )
    return Converted(document, tuple(dict.fromkeys(notes)))


def pinned_plugins(expanded: ExpandedPlugins) -> Plugins:
    """Return plugin sets that give exactly `expanded` in the current format, regardless of its
    defaults; plugins it rejects are left out."""
    sets = {
        point: PluginSet(tuple(ref for ref in refs if ref.name not in REMOVED_PLUGINS))
        for point, refs in expanded.items()
    }
    return Plugins(**sets, multi_point=PluginSet(disabled=(ALL,)))


def _dropped(profile: Profile, expanded: ExpandedPlugins) -> list[str]:
    dropped = {
        ref.name: None for refs in expanded.values() for ref in refs if ref.name in REMOVED_PLUGINS
    }
    return [
        f"profile {profile.scheduler_name}: {name}: left out; "
        "the current format has no such plugin, and NodeVolumeLimits counts volumes of CSI drivers"
        for name in dropped
    ]


def _legacy(profile: Profile) -> list[str]:
    return [
        f"profile {profile.scheduler_name}: {name}: kept; "
        "Bayplan has this plugin, kube-scheduler no longer has it"
        for name in sorted(profile.plugins.names() & LEGACY_PLUGINS)
    ]
