"""Runs the plugins of one profile, extension point by extension point.

Lives here: the registry, the profile, and what each status does at each extension point.
May enter: `api`, `table`, `framework`, `config`. Must not happen: naming a particular plugin (it is given a registry).
Called by: `scheduler`.
"""

from .failing import PluginRunError
from .filtering import Filtering, PreFiltered
from .profile import ProfileRuntime
from .registry import Registry, check_plugin
from .scoring import Scored, Scoring

__all__ = [
    "Filtering",
    "PluginRunError",
    "PreFiltered",
    "ProfileRuntime",
    "Registry",
    "Scored",
    "Scoring",
    "check_plugin",
]
