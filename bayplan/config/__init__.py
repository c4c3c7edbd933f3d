"""Config: KubeSchedulerConfiguration, read strictly, with defaults filled in.

Contents: the configuration's types, the typed arguments of plugins, the default plugins, the rules of validation,
reading files, and the expansion of multiPoint into plugin lists. Imports: api, releases. Never: importing a plugin,
or depending on how one uses its arguments. Callers: runtime and scheduler build profiles from it, plugins take their
arguments from it, sim and cli load files with it.
"""

from .defaults import DEFAULT_PLUGINS, default_config, default_profile
from .encode import convert_config, encode_args, encode_config, encode_struct
from .expand import ExpandedPlugins, check_same_queue_sort, expand_plugins
from .extender_order import extender_order, with_ignored_resources
from .gates import FeatureGates, parse_feature_gates
from .internal_form import Reading, gate_notes
from .legacy.policy import provider_reading
from .load import Check, load_config, load_reading, no_check, parse_config, parse_reading
from .plugin_args import (
    ARGS_TYPES,
    LEGACY_ARGS_TYPES,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeLabelArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ScoringStrategy,
    ServiceAffinityArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from .plugin_names import find_plugin_problems, plugin_notes
from .problems import Problem, ProblemKind
from .types import (
    DEFAULT_SCHEDULER_NAME,
    POINT_NAMES,
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
    "Check",
    "DEFAULT_PLUGINS",
    "DEFAULT_SCHEDULER_NAME",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "POINT_NAMES",
    "ExpandedPlugins",
    "Extender",
    "ExtenderTLS",
    "FeatureGates",
    "InterPodAffinityArgs",
    "LEGACY_ARGS_TYPES",
    "LeaderElection",
    "ManagedResource",
    "NodeAffinityArgs",
    "NodeLabelArgs",
    "NodeResourcesFitArgs",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "Problem",
    "ProblemKind",
    "Profile",
    "Reading",
    "RequestedToCapacityRatioArgs",
    "ResourceSpec",
    "SchedulerConfiguration",
    "ScoringStrategy",
    "ServiceAffinityArgs",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "check_same_queue_sort",
    "convert_config",
    "default_config",
    "default_profile",
    "encode_args",
    "encode_config",
    "encode_struct",
    "extender_order",
    "find_plugin_problems",
    "gate_notes",
    "plugin_notes",
    "expand_plugins",
    "load_config",
    "load_reading",
    "no_check",
    "parse_config",
    "parse_feature_gates",
    "parse_reading",
    "provider_reading",
    "validate_config",
    "with_ignored_resources",
]
