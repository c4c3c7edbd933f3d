"""Runs the plugins of one profile, extension point by extension point.

Lives here: the registry, the profile, and the effect of each status at each extension point. May enter: `api`, `table`,
`framework`, `config`. Must not happen: naming a particular plugin (it is given a registry). Called by: `scheduler`.
"""

from .filter_plugins import Filtering, PreFiltered
from .plugin_failures import PluginRunError
from .plugin_registry import Registry
from .profile import ProfileRuntime
from .score_plugins import Scoring

__all__ = [
    "Filtering",
    "PluginRunError",
    "PreFiltered",
    "ProfileRuntime",
    "Registry",
    "Scoring",
]
