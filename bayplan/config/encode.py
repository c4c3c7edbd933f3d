"""Encode: a configuration as plain data in the current format, kubescheduler.config.k8s.io/v1.

Mirrors what kube-scheduler writes with --write-config-to. Every default is included; empty fields
are left out.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .files import API_VERSION, KIND
from .go_durations import format_go_duration
from .internal_form import Entries, PlainArgs
from .plugin_args import Args
from .types import (
    POINT_NAMES,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)

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
