"""Defaults: the default plugins, and how a file's lists change them.

Mirrors pkg/scheduler/apis/config/v1/{default_plugins,defaults}.go.
"""

from collections.abc import Mapping
from typing import Any

from ..releases.feature_gates import DEFAULT_GATES, FeatureGates
from .gates import (
    DYNAMIC_RESOURCE_ALLOCATION,
    GANG_SCHEDULING,
    NODE_DECLARED_FEATURES,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    GateSettings,
    apply_gates,
)
from .plugin_args import ARGS_TYPES, Args
from .types import (
    DEFAULT_SCHEDULER_NAME,
    POINT_NAMES,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    plugin_set,
)

ALL = "*"

# Order and weights of v1.36 with its default feature gates. DynamicResources comes before
# DefaultPreemption: releasing an unused claim is better than evicting a pod.
DEFAULT_PLUGINS = Plugins(
    multi_point=plugin_set(
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration*3 NodeAffinity*2 NodePorts"
        " NodeResourcesFit*1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread*2"
        " InterPodAffinity*2 DynamicResources*2 DefaultPreemption NodeResourcesBalancedAllocation*1"
        " ImageLocality*1 DefaultBinder NodeDeclaredFeatures"
    )
)


def default_plugins(gates: FeatureGates) -> Plugins:
    """Returns the default plugins of the release and with the positions of these feature gates."""
    enabled = list(DEFAULT_PLUGINS.multi_point.enabled)
    devices = PluginRef("DynamicResources", 2)
    if not gates.enabled(DYNAMIC_RESOURCE_ALLOCATION):
        enabled.remove(devices)
    elif not gates.release.dra_scores:
        enabled[enabled.index(devices)] = PluginRef("DynamicResources")
    if gates.release.node_name_first:
        enabled.insert(2, enabled.pop(3))  # NodeName before NodeUnschedulable
    if not gates.enabled(NODE_DECLARED_FEATURES):
        enabled.remove(PluginRef(NODE_DECLARED_FEATURES))
    if gates.enabled(GANG_SCHEDULING):
        enabled.append(PluginRef(GANG_SCHEDULING))
    if gates.enabled(TOPOLOGY_AWARE_WORKLOAD_SCHEDULING):
        enabled.append(PluginRef("TopologyPlacementGenerator"))
        enabled.append(PluginRef("PodGroupPodsCount", 1))
    return Plugins(multi_point=PluginSet(tuple(enabled)))


def merge_plugins(defaults: Plugins, custom: Plugins, *, replaces: bool = True) -> Plugins:
    """Returns `defaults` changed by the plugins that `custom` enables and disables, point by point."""
    return Plugins(
        **{
            point: merge_plugin_set(defaults.at(point), custom.at(point), replaces=replaces)
            for point in (*POINT_NAMES, "multi_point")
        }
    )


def merge_plugin_set(default: PluginSet, custom: PluginSet, *, replaces: bool = True) -> PluginSet:
    """Return one point's set: the remaining defaults, then the additions of `custom`.

    A default that `custom` enables again takes its weight and keeps its position if it `replaces`;
    else it occurs twice. One that `custom` disables and enables moves to the end. A plugin enabled
    twice occurs twice; building the profile rejects it.
    """
    disabled = custom.disabled + default.disabled
    # If a plugin is listed twice, the last entry replaces the default.
    position = {ref.name: i for i, ref in enumerate(custom.enabled)} if replaces else {}
    enabled: list[PluginRef] = []
    placed: set[int] = set()
    for ref in () if ALL in disabled else default.enabled:
        if ref.name in disabled:
            continue
        if ref.name in position:
            placed.add(position[ref.name])
            ref = custom.enabled[position[ref.name]]
        enabled.append(ref)
    enabled += [ref for i, ref in enumerate(custom.enabled) if i not in placed]
    return PluginSet(tuple(enabled), disabled)


def default_plugin_config(
    plugins: Plugins,
    given: Mapping[str, Args | dict[str, Any] | None],
    args_types: Mapping[str, type[Args]] = ARGS_TYPES,
    gates: FeatureGates = DEFAULT_GATES,
) -> dict[str, Args | dict[str, Any] | None]:
    """Returns `given` followed by the default arguments of the other enabled plugins, by name."""
    missing = sorted(plugins.names() & args_types.keys() - given.keys())
    return {**given, **{name: apply_gates(args_types[name](), gates) for name in missing}}


def default_profile(
    scheduler_name: str = DEFAULT_SCHEDULER_NAME, feature_gates: GateSettings | None = None
) -> Profile:
    """Returns a profile with the default plugins and arguments."""
    gates = FeatureGates.of(feature_gates)
    plugins = default_plugins(gates)
    return Profile(
        scheduler_name=scheduler_name,
        plugins=plugins,
        plugin_config=default_plugin_config(plugins, {}, gates=gates),
    )


def default_config(feature_gates: GateSettings | None = None) -> SchedulerConfiguration:
    """Return the configuration without a file."""
    return SchedulerConfiguration(profiles=(default_profile(feature_gates=feature_gates),))
