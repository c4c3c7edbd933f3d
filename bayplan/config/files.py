"""Files: the shape of KubeSchedulerConfiguration files, one set of types per version.

Mirrors staging/src/k8s.io/kube-scheduler/config/{v1,v1beta3,v1beta2,v1beta1}/types.go. A later
version extends the types of the one before; `internal_form.py` converts them to those of `types.py`.
"""

from typing import Any

import msgspec

from .decode import Int32, Int64
from .types import ClientConnection, Extender, LeaderElection, PluginRef

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"


class PluginSetFile(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin set; `disabled` has the form of `enabled`."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class PluginsV1Beta1(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin sets of all points."""

    queue_sort: PluginSetFile = PluginSetFile()
    pre_filter: PluginSetFile = PluginSetFile()
    filter: PluginSetFile = PluginSetFile()
    post_filter: PluginSetFile = PluginSetFile()
    pre_score: PluginSetFile = PluginSetFile()
    score: PluginSetFile = PluginSetFile()
    reserve: PluginSetFile = PluginSetFile()
    permit: PluginSetFile = PluginSetFile()
    pre_bind: PluginSetFile = PluginSetFile()
    bind: PluginSetFile = PluginSetFile()
    post_bind: PluginSetFile = PluginSetFile()


class PluginsV1Beta2(PluginsV1Beta1, frozen=True, rename="camel"):
    """Adds PreEnqueue and multiPoint."""

    pre_enqueue: PluginSetFile = PluginSetFile()
    multi_point: PluginSetFile = PluginSetFile()


class PluginsV1(PluginsV1Beta2, frozen=True, rename="camel"):
    """Adds the points of placements."""

    placement_generate: PluginSetFile = PluginSetFile()
    placement_score: PluginSetFile = PluginSetFile()


class PluginConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of one plugin, not yet decoded."""

    name: str = ""
    args: Any = None


class ProfileV1Beta1(msgspec.Struct, frozen=True, rename="camel"):
    """A profile; an absent scheduler name differs from an empty one."""

    scheduler_name: str | None = None
    plugins: PluginsV1Beta1 = PluginsV1Beta1()
    plugin_config: tuple[PluginConfigFile, ...] = ()


class ProfileV1Beta2(ProfileV1Beta1, frozen=True, rename="camel"):
    """A profile of v1beta2 or v1beta3."""

    plugins: PluginsV1Beta2 = PluginsV1Beta2()


class ProfileV1(ProfileV1Beta2, frozen=True, rename="camel"):
    """Adds the share of nodes to score."""

    plugins: PluginsV1 = PluginsV1()
    percentage_of_nodes_to_score: Int32 | None = None


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
    profiles: tuple[ProfileV1Beta1, ...] = ()
    extenders: tuple[Extender, ...] = ()


class ConfigurationV1Beta1(ConfigurationFile, frozen=True, rename="camel"):
    """A file of v1beta1. The addresses of the insecure port are read and have no effect."""

    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None


class ConfigurationV1Beta2(ConfigurationV1Beta1, frozen=True, rename="camel"):
    """A file of v1beta2 or v1beta3. The addresses are accepted in both, although v1beta3 as
    released did not have them."""

    profiles: tuple[ProfileV1Beta2, ...] = ()


class ConfigurationV1(ConfigurationFile, frozen=True, rename="camel"):
    """A file of v1."""

    profiles: tuple[ProfileV1, ...] = ()
    delay_cache_until_active: bool = False
