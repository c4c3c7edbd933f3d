"""PolicyPlugins: the plugins for the predicates and priorities of a Policy.

Mirrors pkg/scheduler/framework/plugins/legacy_registry.go of v1.20, oddities included.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...releases.feature_gates import FeatureGates
from ..gates import DEFAULT_POD_TOPOLOGY_SPREAD
from ..plugin_args import (
    LIST_DEFAULTING,
    SYSTEM_DEFAULTING,
    Args,
    InterPodAffinityArgs,
    NodeLabelArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ServiceAffinityArgs,
)
from ..types import PluginRef, Plugins, PluginSet

NODE_LABEL = "NodeLabel"
SERVICE_AFFINITY = "ServiceAffinity"
RATIO = "RequestedToCapacityRatio"
SPREAD = "PodTopologySpread"
SELECTOR_SPREAD_PRIORITY = "SelectorSpreadPriority"
EVEN_SPREAD_PRIORITY = "EvenPodsSpreadPriority"
EQUAL_PRIORITY = "EqualPriority"
LABEL_PREDICATE = "CheckNodeLabelPresence"
SERVICE_PREDICATE = "CheckServiceAffinity"

PREDICATE_ALIASES = {"PodFitsPorts": "PodFitsHostPorts"}
PRIORITY_ALIASES = {"ServiceSpreadingPriority": SELECTOR_SPREAD_PRIORITY}

_BOTH = ("pre_filter", "filter")
_FILTER = ("filter",)

# The plugins of each predicate with their points, in the order in which predicates are checked.
PREDICATES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "CheckNodeUnschedulable": (("NodeUnschedulable", _FILTER),),
    "GeneralPredicates": (
        ("NodeResourcesFit", _BOTH),
        ("NodeName", _FILTER),
        ("NodePorts", _BOTH),
        ("NodeAffinity", _FILTER),
    ),
    "HostName": (("NodeName", _FILTER),),
    "PodFitsHostPorts": (("NodePorts", _BOTH),),
    "MatchNodeSelector": (("NodeAffinity", _FILTER),),
    "PodFitsResources": (("NodeResourcesFit", _BOTH),),
    "NoDiskConflict": (("VolumeRestrictions", _FILTER),),
    "PodToleratesNodeTaints": (("TaintToleration", _FILTER),),
    LABEL_PREDICATE: ((NODE_LABEL, _FILTER),),
    SERVICE_PREDICATE: ((SERVICE_AFFINITY, _BOTH),),
    "MaxEBSVolumeCount": (("EBSLimits", _FILTER),),
    "MaxGCEPDVolumeCount": (("GCEPDLimits", _FILTER),),
    "MaxCSIVolumeCountPred": (("NodeVolumeLimits", _FILTER),),
    "MaxAzureDiskVolumeCount": (("AzureDiskLimits", _FILTER),),
    "MaxCinderVolumeCount": (("CinderLimits", _FILTER),),
    "CheckVolumeBinding": (("VolumeBinding", (*_BOTH, "reserve", "pre_bind")),),
    "NoVolumeZoneConflict": (("VolumeZone", _FILTER),),
    "EvenPodsSpread": ((SPREAD, _BOTH),),
    "MatchInterPodAffinity": (("InterPodAffinity", _BOTH),),
}
MANDATORY_PREDICATES = frozenset({"PodToleratesNodeTaints", "CheckNodeUnschedulable"})
DEFAULT_PREDICATES = frozenset(PREDICATES) - {
    "HostName",
    "PodFitsHostPorts",
    "MatchNodeSelector",
    "PodFitsResources",
    LABEL_PREDICATE,
    SERVICE_PREDICATE,
    "MaxCinderVolumeCount",
}

_SCORE = ("score",)
_WITH_PRE_SCORE = ("pre_score", "score")
PRIORITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", _SCORE),
    EVEN_SPREAD_PRIORITY: (SPREAD, _WITH_PRE_SCORE),
    "ImageLocalityPriority": ("ImageLocality", _SCORE),
    "InterPodAffinityPriority": ("InterPodAffinity", _WITH_PRE_SCORE),
    "LeastRequestedPriority": ("NodeResourcesLeastAllocated", _SCORE),
    "MostRequestedPriority": ("NodeResourcesMostAllocated", _SCORE),
    "NodeAffinityPriority": ("NodeAffinity", _SCORE),
    NODE_LABEL: (NODE_LABEL, _SCORE),
    "NodePreferAvoidPodsPriority": ("NodePreferAvoidPods", _SCORE),
    RATIO: (RATIO, _SCORE),
    SELECTOR_SPREAD_PRIORITY: (SPREAD, _WITH_PRE_SCORE),
    SERVICE_AFFINITY: (SERVICE_AFFINITY, _SCORE),
    "TaintTolerationPriority": ("TaintToleration", _WITH_PRE_SCORE),
}
DEFAULT_PRIORITIES = {
    SELECTOR_SPREAD_PRIORITY: 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    EVEN_SPREAD_PRIORITY: 2,
}
_ALWAYS = {
    "queue_sort": "PrioritySort",
    "post_filter": "DefaultPreemption",
    "bind": "DefaultBinder",
}


@dataclass
class PolicyArgs:
    """The combined arguments of a policy's predicates and priorities."""

    node_label: NodeLabelArgs | None = None
    service_affinity: ServiceAffinityArgs | None = None
    ratio: RequestedToCapacityRatioArgs | None = None
    inter_pod_affinity: InterPodAffinityArgs | None = None


@dataclass
class PolicyPlugins:
    """The plugins of a policy, in insertion order."""

    args: PolicyArgs
    gates: FeatureGates
    points: dict[str, dict[str, int]] = field(default_factory=dict)
    plugin_config: dict[str, Args] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for point, plugin in _ALWAYS.items():
            self._enable(point, plugin)

    def add_predicates(self, names: Iterable[str]) -> None:
        """Add the filters of the named predicates and of the mandatory ones."""
        wanted = MANDATORY_PREDICATES.union(names)
        for predicate in (name for name in PREDICATES if name in wanted):
            for plugin, points in PREDICATES[predicate]:
                for point in points:
                    self._enable(point, plugin)
        if LABEL_PREDICATE in wanted and self.args.node_label is not None:
            self.plugin_config[NODE_LABEL] = self.args.node_label
        if SERVICE_PREDICATE in wanted and self.args.service_affinity is not None:
            self.plugin_config[SERVICE_AFFINITY] = self.args.service_affinity

    def add_priorities(self, weights: Mapping[str, int]) -> None:
        """Adds the scorers of the named priorities, sorted by these names."""
        for priority in sorted(weights):
            plugin, points = PRIORITIES[priority]
            if priority == SELECTOR_SPREAD_PRIORITY and not self._spreads_by_default:
                plugin = "SelectorSpread"
            for point in points:
                weight = self._weight(priority, weights[priority]) if point == "score" else 0
                self._enable(point, plugin, weight)
            self._configure(priority)

    def to_plugins(self) -> Plugins:
        """Returns the plugins of each point."""
        return Plugins(
            **{
                point: PluginSet(tuple(PluginRef(*item) for item in plugins.items()))
                for point, plugins in self.points.items()
            }
        )

    @property
    def _spreads_by_default(self) -> bool:
        return self.gates.enabled(DEFAULT_POD_TOPOLOGY_SPREAD)

    def _enable(self, point: str, plugin: str, weight: int = 0) -> None:
        # A plugin named by two priorities keeps the weight of the first, even if it is smaller.
        self.points.setdefault(point, {}).setdefault(plugin, weight)

    def _weight(self, priority: str, weight: int) -> int:
        """Returns the weight of a scorer; a custom one counts once for each of its labels."""
        if priority == NODE_LABEL and self.args.node_label is not None:
            args = self.args.node_label
            return weight * len(args.present_labels_preference + args.absent_labels_preference)
        if priority == SERVICE_AFFINITY and self.args.service_affinity is not None:
            return weight * len(self.args.service_affinity.anti_affinity_labels_preference)
        return weight

    def _configure(self, priority: str) -> None:
        """Add the arguments of a priority."""
        given: dict[str, tuple[str, Args | None]] = {
            NODE_LABEL: (NODE_LABEL, self.args.node_label),
            SERVICE_AFFINITY: (SERVICE_AFFINITY, self.args.service_affinity),
            RATIO: (RATIO, self.args.ratio),
            "InterPodAffinityPriority": ("InterPodAffinity", self.args.inter_pod_affinity),
        }
        plugin, args = given.get(priority, ("", None))
        if args is not None:
            self.plugin_config[plugin] = args
        if not self._spreads_by_default:
            return
        if priority == EVEN_SPREAD_PRIORITY and SPREAD not in self.plugin_config:
            self.plugin_config[SPREAD] = PodTopologySpreadArgs(defaulting_type=LIST_DEFAULTING)
        if priority == SELECTOR_SPREAD_PRIORITY:
            self.plugin_config[SPREAD] = PodTopologySpreadArgs(defaulting_type=SYSTEM_DEFAULTING)
