"""In-tree: the plugins of this package, in the order of kube-scheduler's default profile."""

from ..framework import Plugin
from .coscheduling import Coscheduling
from .default_binder import DefaultBinder
from .default_preemption.plugin import DefaultPreemption
from .dynamic_resources.plugin import DynamicResources
from .gang_scheduling.plugin import GangScheduling
from .image_locality import ImageLocality
from .inter_pod_affinity.plugin import InterPodAffinity
from .legacy.node_label import NodeLabel
from .legacy.node_prefer_avoid_pods import NodePreferAvoidPods
from .legacy.node_resources_allocated import (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from .legacy.selector_spread import SelectorSpread
from .legacy.service_affinity import ServiceAffinity
from .node_affinity import NodeAffinity
from .node_declared_features import NodeDeclaredFeatures
from .node_name import NodeName
from .node_ports import NodePorts
from .node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from .node_resources_fit.plugin import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .node_volume_limits.clouds import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from .node_volume_limits.plugin import NodeVolumeLimits
from .pod_group_placement import PodGroupPodsCount, TopologyPlacementGenerator
from .pod_topology_spread.plugin import PodTopologySpread
from .priority_sort import PrioritySort
from .scheduling_gates import SchedulingGates
from .taint_toleration import TaintToleration
from .volume_binding.plugin import VolumeBinding
from .volume_restrictions import VolumeRestrictions
from .volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    # Off unless a profile enables them.
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
    Coscheduling,
    EBSLimits,
    GCEPDLimits,
    AzureDiskLimits,
    CinderLimits,
    # Of earlier generations.
    SelectorSpread,
    ServiceAffinity,
    NodeLabel,
    NodePreferAvoidPods,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
