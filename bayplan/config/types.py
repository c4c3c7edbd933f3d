"""Types: the scheduler's configuration after reading, with every default filled in.

Mirrors pkg/scheduler/apis/config/types.go. Objects are frozen; `load.py` makes them from a file,
and code may make them directly.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field

from .decode import Duration, Int32, Int64
from .plugin_args import Args

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# Every point at which a plugin can be enabled, as named in `Plugins` and in the file.
POINT_NAMES: dict[str, str] = {
    point: point.split("_")[0] + "".join(word.title() for word in point.split("_")[1:])
    for point in (
        *("pre_enqueue", "queue_sort", "pre_filter", "filter", "post_filter", "pre_score", "score"),
        *("reserve", "permit", "pre_bind", "bind", "post_bind"),
        *("placement_generate", "placement_score"),
    )
}


PLACEMENT_POINTS = ("placement_generate", "placement_score")


class PluginRef(msgspec.Struct, frozen=True):
    """An enabled plugin. Weight 0 stands for an unset one, which counts as 1 where weights apply."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(msgspec.Struct, frozen=True):
    """The plugins enabled and disabled at one extension point; `*` in `disabled` means all defaults."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()


def plugin_set(text: str) -> PluginSet:
    """The enabled plugins in a text, in this order; `NodeAffinity*2` has weight 2."""
    pairs = (word.partition("*") for word in text.split())
    return PluginSet(tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs))


class Plugins(msgspec.Struct, frozen=True):
    """One PluginSet per extension point; `multi_point` applies to all points."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        """Returns the PluginSet of `point`, a key of POINT_NAMES or `multi_point`."""
        plugin_set = getattr(self, point)
        assert isinstance(plugin_set, PluginSet), f"{point} is not an extension point"
        return plugin_set

    def names(self) -> frozenset[str]:
        """Return the plugins that are enabled at any point."""
        points = (*POINT_NAMES, "multi_point")
        return frozenset(ref.name for point in points for ref in self.at(point).enabled)


class Profile(msgspec.Struct, frozen=True):
    """The scheduling of pods with this scheduler name.

    `percentage_of_nodes_to_score` overrides the one of the configuration. `plugins` has the default
    plugins merged in. `plugin_config` has the arguments of every enabled plugin that takes some;
    those of an unknown plugin are the plain data of the file.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: Mapping[str, Args | dict[str, Any] | None] = field(default_factory=dict)


class LeaderElection(msgspec.Struct, frozen=True, rename="camel"):
    """Leader election between several schedulers."""

    leader_elect: bool = True
    lease_duration_s: Duration = field(default=15.0, name="leaseDuration")
    renew_deadline_s: Duration = field(default=10.0, name="renewDeadline")
    retry_period_s: Duration = field(default=2.0, name="retryPeriod")
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, frozen=True, rename="camel"):
    """Connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLS(msgspec.Struct, frozen=True, rename="camel"):
    """Certificates for an extender; data takes precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook called during scheduling; an empty verb means that it is not called for that step.

    `http_timeout_s` 0 means five seconds.
    """

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout_s: Duration = field(default=0.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """The whole configuration.

    `percentage_of_nodes_to_score` None, the default, means that every node is judged.
    kube-scheduler would treat that as 0; an explicit 0 selects its formula, which judges fewer
    nodes the larger the cluster is. `always_check_all_predicates` comes from a Policy only: every
    filter runs on a node, even after one has rejected it. `pod_max_in_unschedulable_pods_s` comes from
    the flag --pod-max-in-unschedulable-pods-duration only.
    """

    parallelism: int = 16
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    always_check_all_predicates: bool = False
    pod_max_in_unschedulable_pods_s: float = 300.0

    def profile_named(self, scheduler_name: str) -> Profile | None:
        """Returns the profile of pods with this `spec.schedulerName`, None if there is none."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                return profile
        return None

    def percentage_for(self, profile: Profile) -> int | None:
        """Return the effective percentage of nodes to score for `profile`."""
        if profile.percentage_of_nodes_to_score is not None:
            return profile.percentage_of_nodes_to_score
        return self.percentage_of_nodes_to_score
