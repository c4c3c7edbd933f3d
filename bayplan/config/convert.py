"""Convert: a configuration of any generation as a file of the current format.

The plugins are written point by point, since the defaults of an older generation differ from the
current ones. Settings without an equivalent are left out and noted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .defaults import ALL
from .encode import encode_config, encode_plugin_set
from .expand import ExpandedPlugins
from .files import API_VERSION
from .internal_form import Reading
from .plugin_args import LEGACY_ARGS_TYPES
from .types import POINT_NAMES, PluginRef, Plugins, PluginSet, Profile
from .validation import REMOVED_PLUGINS

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
            written["plugins"] = _written_plugins(own)
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


def _written_plugins(expanded: ExpandedPlugins) -> dict[str, Any]:
    plugins = pinned_plugins(expanded)
    written = {"multiPoint": encode_plugin_set(plugins.multi_point)}
    for point, name in POINT_NAMES.items():
        if plugins.at(point).enabled:
            written[name] = encode_plugin_set(plugins.at(point))
    return written


def _dropped(profile: Profile, expanded: ExpandedPlugins) -> list[str]:
    dropped = {ref.name: None for refs in expanded.values() for ref in refs if _is_removed(ref)}
    return [
        f"profile {profile.scheduler_name}: {name}: left out; "
        "the current format has no such plugin, and NodeVolumeLimits counts volumes of CSI drivers"
        for name in dropped
    ]


def _is_removed(ref: PluginRef) -> bool:
    return ref.name in REMOVED_PLUGINS


def _legacy(profile: Profile) -> list[str]:
    return [
        f"profile {profile.scheduler_name}: {name}: kept; "
        "Bayplan has this plugin, kube-scheduler no longer has it"
        for name in sorted(profile.plugins.names() & LEGACY_PLUGINS)
    ]
