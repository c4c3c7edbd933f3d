"""KubeSchedulerConfiguration: what a user may set, read strictly and with defaults filled in.

What lives here: the configuration's types, the typed arguments of plugins, the default plugins,
the rules of validation, reading files, and the expansion of multiPoint into plugin lists. What
may enter: api, framework. What must not happen: importing a plugin, or knowing what one does with
its arguments. Who calls it: runtime and scheduler build profiles from it, plugins take their
arguments from it, sim and cli load files with it.
"""

from .defaults import DEFAULT_PLUGINS, default_config, default_profile
from .expand import ExpandedPlugins, check_same_queue_sort, expand_plugins
from .load import load_config, parse_config
from .plugin_args import (
    ARGS_TYPES,
    LEGACY_ARGS_TYPES,
    Args,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeLabelArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    NodeResourcesLeastAllocatedArgs,
    NodeResourcesMostAllocatedArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ScoringStrategy,
    ServiceAffinityArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from .problems import Problem, ProblemKind
from .types import (
    DEFAULT_SCHEDULER_NAME,
    POINT_NAMES,
    ClientConnection,
    Extender,
    ExtenderTLS,
    LeaderElection,
    ManagedResource,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from .validation import validate_config

__all__ = [
    "ARGS_TYPES",
    "Args",
    "ClientConnection",
    "DEFAULT_PLUGINS",
    "DEFAULT_SCHEDULER_NAME",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "POINT_NAMES",
    "ExpandedPlugins",
    "Extender",
    "ExtenderTLS",
    "InterPodAffinityArgs",
    "LEGACY_ARGS_TYPES",
    "LeaderElection",
    "ManagedResource",
    "NodeAffinityArgs",
    "NodeLabelArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "NodeResourcesLeastAllocatedArgs",
    "NodeResourcesMostAllocatedArgs",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "Problem",
    "ProblemKind",
    "Profile",
    "RequestedToCapacityRatio",
    "RequestedToCapacityRatioArgs",
    "ResourceSpec",
    "SchedulerConfiguration",
    "ScoringStrategy",
    "ServiceAffinityArgs",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "check_same_queue_sort",
    "default_config",
    "default_profile",
    "expand_plugins",
    "load_config",
    "parse_config",
    "validate_config",
]
