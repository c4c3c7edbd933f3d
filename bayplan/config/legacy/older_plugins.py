"""OlderPlugins: the default plugins of earlier releases, point by point.

Mirrors pkg/scheduler/algorithmprovider/registry.go of v1.20 and
pkg/scheduler/apis/config/{v1beta1,v1beta2,v1beta3}/default_plugins.go of v1.22 and v1.23.
"""

from msgspec import structs

from ..types import PluginRef, Plugins, PluginSet

_FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "EBSLimits",
    "GCEPDLimits",
    "NodeVolumeLimits",
    "AzureDiskLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)


def _plugin_set(*names: str, **weights: int) -> PluginSet:
    """Returns a set of plugins without weights, followed by those with weights."""
    refs = (*(PluginRef(name) for name in names), *(PluginRef(*item) for item in weights.items()))
    return PluginSet(refs)


DEFAULT_PROVIDER = Plugins(
    queue_sort=_plugin_set("PrioritySort"),
    pre_filter=_plugin_set(
        "NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding"
    ),
    filter=_plugin_set(*_FILTERS),
    post_filter=_plugin_set("DefaultPreemption"),
    pre_score=_plugin_set("InterPodAffinity", "PodTopologySpread", "TaintToleration"),
    score=_plugin_set(
        NodeResourcesBalancedAllocation=1,
        ImageLocality=1,
        InterPodAffinity=1,
        NodeResourcesLeastAllocated=1,
        NodeAffinity=1,
        NodePreferAvoidPods=10000,
        PodTopologySpread=2,
        TaintToleration=1,
    ),
    reserve=_plugin_set("VolumeBinding"),
    pre_bind=_plugin_set("VolumeBinding"),
    bind=_plugin_set("DefaultBinder"),
)
"""DefaultProvider of v1.20."""

CLUSTER_AUTOSCALER_PROVIDER = structs.replace(
    DEFAULT_PROVIDER,
    score=_plugin_set(
        NodeResourcesBalancedAllocation=1,
        ImageLocality=1,
        InterPodAffinity=1,
        NodeResourcesMostAllocated=1,
        NodeAffinity=1,
        NodePreferAvoidPods=10000,
        PodTopologySpread=2,
        TaintToleration=1,
    ),
)
"""The same, preferring full nodes to empty ones."""

V1BETA1_PLUGINS = structs.replace(
    DEFAULT_PROVIDER,
    pre_filter=_plugin_set(
        "NodeResourcesFit",
        "NodePorts",
        "VolumeRestrictions",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "NodeAffinity",
    ),
    pre_score=_plugin_set(
        "InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"
    ),
)

V1BETA2_PLUGINS = structs.replace(
    V1BETA1_PLUGINS,
    score=_plugin_set(
        NodeResourcesBalancedAllocation=1,
        ImageLocality=1,
        InterPodAffinity=1,
        NodeResourcesFit=1,
        NodeAffinity=1,
        PodTopologySpread=2,
        TaintToleration=1,
    ),
)

V1BETA3_PLUGINS = Plugins(
    multi_point=PluginSet(
        (
            PluginRef("PrioritySort"),
            PluginRef("NodeUnschedulable"),
            PluginRef("NodeName"),
            PluginRef("TaintToleration", 3),
            PluginRef("NodeAffinity", 2),
            PluginRef("NodePorts"),
            PluginRef("NodeResourcesFit", 1),
            PluginRef("VolumeRestrictions"),
            PluginRef("EBSLimits"),
            PluginRef("GCEPDLimits"),
            PluginRef("NodeVolumeLimits"),
            PluginRef("AzureDiskLimits"),
            PluginRef("VolumeBinding"),
            PluginRef("VolumeZone"),
            PluginRef("PodTopologySpread", 2),
            PluginRef("InterPodAffinity", 2),
            PluginRef("DefaultPreemption"),
            PluginRef("NodeResourcesBalancedAllocation", 1),
            PluginRef("ImageLocality", 1),
            PluginRef("DefaultBinder"),
        )
    )
)


def with_selector_spread(plugins: Plugins) -> Plugins:
    """Return `plugins` as with feature gate DefaultPodTopologySpread off."""
    if plugins.multi_point.enabled:
        return structs.replace(
            plugins, multi_point=_appended(plugins.multi_point, PluginRef("SelectorSpread", 1))
        )
    return structs.replace(
        plugins,
        pre_score=_appended(plugins.pre_score, PluginRef("SelectorSpread")),
        score=_appended(plugins.score, PluginRef("SelectorSpread", 1)),
    )


def _appended(plugin_set: PluginSet, ref: PluginRef) -> PluginSet:
    return structs.replace(plugin_set, enabled=(*plugin_set.enabled, ref))
