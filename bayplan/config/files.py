"""Files: the shape of KubeSchedulerConfiguration files, one type per version.

Mirrors staging/src/k8s.io/kube-scheduler/config/{v1,v1beta3,v1beta2,v1beta1}/types.go. `internal_form.py`
converts them to the types of `types.py`.
"""

from collections.abc import Iterable
from types import GenericAlias
from typing import Any

import msgspec

from .decode import Int32, Int64
from .types import (
    PLACEMENT_POINTS,
    POINT_NAMES,
    ClientConnection,
    Extender,
    LeaderElection,
    PluginRef,
)

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"


class PluginSetFile(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin set; `disabled` has the form of `enabled`."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class PluginConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of one plugin, not yet decoded."""

    name: str = ""
    args: Any = None


class ProfileFile(msgspec.Struct, frozen=True, rename="camel"):
    """A profile; an absent scheduler name differs from an empty one."""

    scheduler_name: str | None = None
    plugins: Any = None
    """A PluginSetFile for each point that the version has."""
    plugin_config: tuple[PluginConfigFile, ...] = ()


class ConfigurationFile(msgspec.Struct, frozen=True, rename="camel"):
    """The common part of all versions."""

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
    profiles: tuple[ProfileFile, ...] = ()
    extenders: tuple[Extender, ...] = ()


Field = tuple[str, Any, Any]
"""Name, type and default."""

# The addresses of the insecure port are read and have no effect; v1beta3 as released did not have them.
_ADDRESSES = [(f"{server}_bind_address", str | None, None) for server in ("healthz", "metrics")]
_FIRST_POINTS = tuple(
    point for point in POINT_NAMES if point not in ("pre_enqueue", *PLACEMENT_POINTS)
)
_LATER_POINTS = (*_FIRST_POINTS, "pre_enqueue", "multi_point")


def _configuration(
    version: str,
    points: Iterable[str],
    of_profiles: Iterable[Field] = (),
    fields: Iterable[Field] = (),
) -> type[ConfigurationFile]:
    """The type of the files of a version, with the points of its profiles and the fields that not all versions have."""

    def extend(name: str, fields: Iterable[Field], *bases: type[msgspec.Struct]) -> Any:
        name = f"{name}{version}"
        return msgspec.defstruct(name, fields, bases=bases, frozen=True, rename="camel")

    plugins = extend("Plugins", ((point, PluginSetFile, PluginSetFile()) for point in points))
    profile = extend("Profile", (("plugins", plugins, plugins()), *of_profiles), ProfileFile)
    profiles = ("profiles", GenericAlias(tuple, (profile, ...)), ())
    made: type[ConfigurationFile] = extend("Configuration", (profiles, *fields), ConfigurationFile)
    return made


ConfigurationV1Beta1 = _configuration("V1Beta1", _FIRST_POINTS, fields=_ADDRESSES)
ConfigurationV1Beta2 = _configuration("V1Beta2", _LATER_POINTS, fields=_ADDRESSES)
"""The configuration of v1beta2 and v1beta3."""
ConfigurationV1 = _configuration(
    "V1",
    (*_LATER_POINTS, *PLACEMENT_POINTS),
    [("percentage_of_nodes_to_score", Int32 | None, None)],
    [("delay_cache_until_active", bool, False)],
)
