"""PluginArgs: the typed arguments of plugins.

Mirrors pkg/scheduler/apis/config/types_pluginargs.go. A type made without arguments has the
plugin's defaults; `fill_in` sets them where a file left fields empty.
"""

import msgspec
from msgspec import field

from ..api.affinity import NodeAffinity, TopologySpreadConstraint
from .decode import Duration, Int32, Int64

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"
DEFAULTING_TYPES = (SYSTEM_DEFAULTING, LIST_DEFAULTING)


class Args(msgspec.Struct, frozen=True, rename="camel"):
    """The arguments of one plugin."""


class DefaultPreemptionArgs(Args, frozen=True, rename="camel"):
    """The number of nodes preemption tries: the larger of a share of the nodes and a number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class InterPodAffinityArgs(Args, frozen=True, rename="camel"):
    """The weight of a required term towards an incoming pod, and which preferences count."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Args, frozen=True, rename="camel"):
    """A node affinity that every pod of the profile has in addition to its own."""

    added_affinity: NodeAffinity | None = None


class ResourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that takes part in scoring; weight 0 in a file becomes 1."""

    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of a piecewise linear function: the score, 0 to 10, at a utilization in percent."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(msgspec.Struct, frozen=True, rename="camel"):
    """The piecewise linear function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """Scoring of NodeResourcesFit. A strategy without a type is an error, not the default."""

    type: str
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(Args, frozen=True, rename="camel"):
    """Extended resources the filter ignores, and how to score."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, DEFAULT_RESOURCES)


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, rename="camel"):
    """The resources whose usage is balanced; every weight is 1."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class PodTopologySpreadArgs(Args, frozen=True, rename="camel"):
    """The default constraints of pods without their own: built in (System) or given (List)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class VolumeBindingArgs(Args, frozen=True, rename="camel"):
    """Time limit for volumes, and scoring by the storage that is left.

    The shape belongs to feature gate StorageCapacityScoring.
    """

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DynamicResourcesArgs(Args, frozen=True, rename="camel"):
    """Time limits for the search for devices on one node, 0 for no limit, and for their binding.

    A field is None while its feature gate is off.
    """

    filter_timeout_s: Duration | None = field(default=10.0, name="filterTimeout")
    binding_timeout_s: Duration | None = field(default=600.0, name="bindingTimeout")


class AllocatedArgs(Args, frozen=True, rename="camel"):
    """The resources whose free share counts, or whose used share. A weight of 0 stays 0."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class RequestedToCapacityRatioArgs(Args, frozen=True, rename="camel"):
    """The piecewise linear function from utilization to score, and its resources."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class ServiceAffinityArgs(Args, frozen=True, rename="camel"):
    """Node labels that pods of one service must share, and labels to spread them over."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class NodeLabelArgs(Args, frozen=True, rename="camel"):
    """Labels a node must have or must not have, and preferred or disliked ones."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


ARGS_TYPES: dict[str, type[Args]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}

# The plugins of earlier generations, which kube-scheduler v1.36 does not have.
LEGACY_ARGS_TYPES: dict[str, type[Args]] = {
    "NodeLabel": NodeLabelArgs,
    "NodeResourcesLeastAllocated": AllocatedArgs,
    "NodeResourcesMostAllocated": AllocatedArgs,
    "RequestedToCapacityRatio": RequestedToCapacityRatioArgs,
    "ServiceAffinity": ServiceAffinityArgs,
}


def fill_in(args: Args) -> Args:
    """Returns `args` with defaults in place of empty lists, texts and zero weights."""
    match args:
        case NodeResourcesFitArgs():
            strategy = args.scoring_strategy
            resources = _with_weights(strategy.resources)
            strategy = msgspec.structs.replace(strategy, resources=resources)
            return msgspec.structs.replace(args, scoring_strategy=strategy)
        case NodeResourcesBalancedAllocationArgs():
            return msgspec.structs.replace(args, resources=_with_weights(args.resources))
        case AllocatedArgs() | RequestedToCapacityRatioArgs():
            return msgspec.structs.replace(args, resources=args.resources or DEFAULT_RESOURCES)
        case PodTopologySpreadArgs(defaulting_type=""):
            return msgspec.structs.replace(args, defaulting_type=SYSTEM_DEFAULTING)
        case _:
            return args


def _with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """Returns `resources` with weight 1 in place of 0; the default resources if there are none."""
    filled = tuple(ResourceSpec(spec.name, spec.weight or 1) for spec in resources)
    return filled or DEFAULT_RESOURCES
