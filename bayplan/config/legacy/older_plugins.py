"""OlderPlugins: the default plugins of earlier releases, point by point.

Mirrors pkg/scheduler/algorithmprovider/registry.go of v1.20 and
pkg/scheduler/apis/config/{v1beta1,v1beta2,v1beta3}/default_plugins.go of v1.22 and v1.23.
"""

from msgspec import structs

from ..types import PluginRef, Plugins, PluginSet, plugin_set

_SCORES = (
    "NodeResourcesBalancedAllocation*1 ImageLocality*1 InterPodAffinity*1 {fit}*1 NodeAffinity*1"
    " NodePreferAvoidPods*10000 PodTopologySpread*2 TaintToleration*1"
)
_LEAST, _MOST = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"

DEFAULT_PROVIDER = Plugins(
    queue_sort=plugin_set("PrioritySort"),
    pre_filter=plugin_set(
        "NodeResourcesFit NodePorts PodTopologySpread InterPodAffinity VolumeBinding"
    ),
    filter=plugin_set(
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions"
        " EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits VolumeBinding VolumeZone PodTopologySpread"
        " InterPodAffinity"
    ),
    post_filter=plugin_set("DefaultPreemption"),
    pre_score=plugin_set("InterPodAffinity PodTopologySpread TaintToleration"),
    score=plugin_set(_SCORES.format(fit=_LEAST)),
    reserve=plugin_set("VolumeBinding"),
    pre_bind=plugin_set("VolumeBinding"),
    bind=plugin_set("DefaultBinder"),
)
"""DefaultProvider of v1.20."""

CLUSTER_AUTOSCALER_PROVIDER = structs.replace(
    DEFAULT_PROVIDER, score=plugin_set(_SCORES.format(fit=_MOST))
)
"""The default provider with a preference for full nodes."""

V1BETA1_PLUGINS = structs.replace(
    DEFAULT_PROVIDER,
    pre_filter=plugin_set(
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity VolumeBinding"
        " NodeAffinity"
    ),
    pre_score=plugin_set("InterPodAffinity PodTopologySpread TaintToleration NodeAffinity"),
)

V1BETA2_PLUGINS = structs.replace(
    V1BETA1_PLUGINS,
    score=plugin_set(
        "NodeResourcesBalancedAllocation*1 ImageLocality*1 InterPodAffinity*1 NodeResourcesFit*1 NodeAffinity*1"
        " PodTopologySpread*2 TaintToleration*1"
    ),
)

V1BETA3_PLUGINS = Plugins(
    multi_point=plugin_set(
        "PrioritySort NodeUnschedulable NodeName TaintToleration*3 NodeAffinity*2 NodePorts NodeResourcesFit*1"
        " VolumeRestrictions EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits VolumeBinding VolumeZone"
        " PodTopologySpread*2 InterPodAffinity*2 DefaultPreemption NodeResourcesBalancedAllocation*1"
        " ImageLocality*1 DefaultBinder"
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
