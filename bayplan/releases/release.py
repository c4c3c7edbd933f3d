"""Release: the facts in which the releases of kube-scheduler differ, one frozen record per release.

The record is chosen once, with the configuration, and is carried by the feature gates. Code that decides reads a named
fact and never compares versions. Each fact is written with the releases since which it has its values.
`feature_gates.txt` has the gates of every release.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from ..errors import ConfigError


class ImageVolumes(enum.Enum):
    """Weight of image volumes in the score of ImageLocality."""

    IGNORED = "ignored"
    SIZE = "size"
    """Their sizes are added; the ceiling is that of the containers."""
    SIZE_AND_CEILING = "size and ceiling"


class AffinityHints(enum.Enum):
    """The changed or deleted pods that wake a pod refused by InterPodAffinity."""

    PLACED = "placed"
    """Pods on nodes; neither the anti-affinity of a pod that goes counts, nor changes of the pod's own labels."""
    ALL_TERMS = "all terms"
    """Nominated pods count, too, if they match all terms of the anti-affinity."""
    ANY_TERM = "any term"
    """The same, if they match one of the terms."""


class GatedPods(enum.Enum):
    """Causes for checking pods again that a PreEnqueue plugin holds, besides a change of the pod itself."""

    ALL_EVENTS = "all events"
    """Every event and every flush, but for pods that SchedulingGates holds."""
    OWN_EVENTS = "own events"
    """Events that the plugin registered."""
    EVERY_FLUSH = "every flush"
    """These events, wildcard events, and every flush after the pod has waited long enough."""
    FLUSH = "flush"
    """As EVERY_FLUSH, but after a flush a pod waits for as long as any other."""


def parse_release(text: str) -> tuple[int, int]:
    """The major and minor number of `1.36`, `v1.36` or `v1.36.4-gke.100`; ConfigError for anything else."""
    parts = text.removeprefix("v").split("+")[0].split(".", 2)
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        known = ", ".join(RELEASES)
        raise ConfigError(f'expected a release of Kubernetes such as {known}; got "{text}"')
    return int(parts[0]), int(parts[1])


_NO_PRE_FILTER = frozenset(
    {(name, "pre_filter") for name in ("NodeName", "NodeUnschedulable", "TaintToleration")}
)
_SINCE_1_35 = {
    "scheduler_batch_attempts_total",
    "scheduler_batch_cache_flushed_total",
    "scheduler_get_node_hint_duration_seconds",
    "scheduler_resourceclaim_creates_total",
    "scheduler_store_schedule_results_duration_seconds",
}
_SINCE_1_36 = {
    "scheduler_dra_bindingconditions_allocations_total",
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "scheduler_pod_scheduled_after_flush_total",
}
_SINCE_1_37 = {
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "scheduler_generated_placements_total",
    "scheduler_placement_evaluation_duration_seconds",
    "scheduler_placement_evaluations_total",
    "scheduler_preemption_evaluation_duration_seconds",
    "scheduler_preemption_execution_duration_seconds",
    "scheduler_preemption_pdb_violations_total",
    "scheduler_preemption_workload_disruptions",
    "scheduler_workload_preemption_attempts_total",
    "scheduler_workload_preemption_victims",
    "scheduler_batch_rescore_attempts_total",
    "scheduler_batch_rescore_duration_seconds",
    "scheduler_pre_queueing_hint_evaluations_total",
    "scheduler_queue_incoming_entities_total",
    "scheduler_queued_entities",
}
_UP_TO_1_33 = {"scheduler_scheduler_cache_size"}
_DEVICE_KINDS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
_STABLE_DEVICES = dict.fromkeys(_DEVICE_KINDS, "resource.k8s.io/v1")
_ALPHA_RULES = {"DeviceTaintRule": "resource.k8s.io/v1alpha3"}
_NEW_CONFIG_FIELDS = frozenset(
    {"filterTimeout", "bindingTimeout", "placementGenerate", "placementScore"}
)
_API_VERSIONS = {
    "v1_33": dict.fromkeys(_DEVICE_KINDS, "resource.k8s.io/v1beta1") | _ALPHA_RULES,
    "v1_34": _STABLE_DEVICES | _ALPHA_RULES,
    "v1_35": _STABLE_DEVICES | _ALPHA_RULES | {"Workload": "scheduling.k8s.io/v1alpha1"},
    "v1_36": {
        **_STABLE_DEVICES,
        "DeviceTaintRule": "resource.k8s.io/v1beta2",
        **dict.fromkeys(("PodGroup", "Workload"), "scheduling.k8s.io/v1alpha2"),
    },
    "v1_37": {
        **_STABLE_DEVICES,
        "DeviceTaintRule": "resource.k8s.io/v1",
        **dict.fromkeys(("PodGroup", "Workload"), "scheduling.k8s.io/v1beta1"),
    },
}
_REFUSED_GATES: dict[str, dict[str, str]] = {
    "v1_33": {
        "DynamicResourceAllocation": "v1.33 reads resource.k8s.io/v1beta1 and gives devices by other rules",
    },
    "v1_34": {
        "DRADeviceTaints": "in v1.34 a taint of a device with any effect counts",
        "DRAExtendedResource": "v1.34 gives devices for a resource only where the node does not list it, "
        "and names claims otherwise",
        "DRAPartitionableDevices": "v1.34 keeps counters by ResourceSlice, not by pool",
    },
    "v1_35": {
        "DRADeviceTaintRules": "v1.35 reads DeviceTaintRules of resource.k8s.io/v1alpha3",
        "DRAPartitionableDevices": "v1.35 keeps counters by the name of the pool, "
        "and those of a device that a constraint refuses",
        "GenericWorkload": "v1.35 takes gangs from Workload objects of scheduling.k8s.io/v1alpha1 "
        "and places their pods one by one",
    },
    "v1_36": {},
    "v1_37": {
        "DRANodeAllocatableResources": "v1.37 reads nodeAllocatableResources of devices, "
        "which has another form than in v1.36",
        "CompositePodGroup": "groups of pod groups are not scheduled",
        "WorkloadWithJob": "for v1.37 no Workloads and PodGroups are made from jobs",
        "DRAWorkloadResourceClaims": "v1.37 gives up the devices of a pod group that does not fit "
        "by other rules than v1.36",
    },
}
VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")


def changing(**values: Any) -> Any:
    """A fact with each of these values from a release on, such as `v1_36`."""
    return tuple(values.items())


def since(version: str) -> Any:
    """A fact that is true from this release on."""
    return changing(v1_33=False, **{_word(version): True})


def until(version: str) -> Any:
    """A fact that is false from this release on."""
    return changing(v1_33=True, **{_word(version): False})


def _word(version: str) -> str:
    return f"v{version.replace('.', '_')}"


class Release(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The facts of one release of kube-scheduler."""

    version: str
    """The release as people name it, such as 1.36."""
    patch: str = changing(
        v1_33="v1.33.13", v1_34="v1.34.11", v1_35="v1.35.8", v1_36="v1.36.4", v1_37="v1.37.0-rc.1"
    )
    """The tag that the facts were read from and recorded with."""

    missing_config_fields: frozenset[str] = changing(
        v1_33=_NEW_CONFIG_FIELDS,
        v1_34=_NEW_CONFIG_FIELDS - {"filterTimeout"},
        v1_35=_NEW_CONFIG_FIELDS - {"filterTimeout", "bindingTimeout"},
        v1_36=frozenset(),
    )
    """Fields of profiles and plugin arguments that this release does not have."""
    fit_strategy_is_strict: bool = since("1.36")
    """NodeResourcesFitArgs have requestedToCapacityRatio with the type of that name only."""
    checks_gate_needs: bool = since("1.35")
    """A gate that is on requires the gates that it needs."""
    refused_gates: dict[str, str] = changing(**_REFUSED_GATES)
    """Gates that this release has and that are not implemented for it when they are on, each with a sentence."""

    merged_gates: dict[str, str] = changing(
        v1_33={},
        v1_37=dict.fromkeys(("GangScheduling", "WorkloadAwarePreemption"), "GenericWorkload"),
    )
    """Gates that this release no longer has, each with the gate that replaces it."""

    api_versions: dict[str, str] = changing(**_API_VERSIONS)
    """API versions of kinds whose version differs between releases."""
    missing_metrics: frozenset[str] = changing(
        v1_33=frozenset(_SINCE_1_35 | _SINCE_1_36 | _SINCE_1_37),
        v1_34=frozenset(_SINCE_1_35 | _SINCE_1_36 | _SINCE_1_37 | _UP_TO_1_33),
        v1_35=frozenset(_SINCE_1_36 | _SINCE_1_37 | _UP_TO_1_33),
        v1_36=frozenset(_SINCE_1_37 | _UP_TO_1_33),
        v1_37=frozenset(_UP_TO_1_33 | {"scheduler_resourceclaim_creates_total"}),
    )
    """Metrics that this release does not have."""
    balance_scores_change: bool = since("1.36")
    """NodeResourcesBalancedAllocation scores the change of the balance, not the balance itself."""
    image_volumes: ImageVolumes = changing(
        v1_33=ImageVolumes.IGNORED, v1_36=ImageVolumes.SIZE, v1_37=ImageVolumes.SIZE_AND_CEILING
    )
    keeps_namespace_selector: bool = changing(v1_33=False, v1_34=True, v1_37=False)
    """A namespaceSelector of the incoming pod's terms still matches after it was resolved to names: a selector that
    only requires labels to be absent or different matches every namespace.
    """
    fit_unresolvable: bool = since("1.34")
    """NodeResourcesFit rules preemption out on nodes that never have enough."""
    missing_driver_opts_in: bool = since("1.36")
    """With VolumeLimitScaling, a node without a CSI driver is refused only if the driver asks for that."""
    portworx_by_annotation: bool = until("1.36")
    """In-tree Portworx volumes count against the limit of its driver only where the CSINode lists them as migrated."""
    lacking_features_reason: str = changing(
        v1_33="node declared features check failed - unsatisfied requirements: "
        "RestartAllContainersOnContainerExits",
        v1_36="node(s) didn't match Pod's required features",
    )
    """The reason for a node that does not declare the features of a pod."""
    host_network_feature: bool = since("1.36")
    """Pods of a user namespace in the network of the host need a node that declares it."""
    names_taints: bool = until("1.34")
    """TaintToleration names the first untolerated taint."""
    one_pod_claim_reason: str = changing(
        v1_33="node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        v1_34="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod",
    )
    """The reason for a ReadWriteOncePod claim in use."""
    dra_scores: bool = since("1.35")
    """The default plugins have DynamicResources with a weight."""
    node_name_first: bool = since("1.37")
    """NodeName is the first of the default filters."""
    missing_points: frozenset[tuple[str, str]] = changing(
        v1_33=_NO_PRE_FILTER | {("DynamicResources", "score")},
        v1_35=_NO_PRE_FILTER,
        v1_37=frozenset(),
    )
    """Plugins with an extension point that they do not have in this release."""
    tells_preemption: bool = since("1.37")
    """A successful preemption is part of the message."""
    tells_claims_kept: bool = until("1.37")
    """PostFilter of DynamicResources reports a reason for claims that it does not deallocate."""
    budgets_stop_at_first: bool = since("1.37")
    """A victim is not counted against the budgets after the first that it exceeds."""
    unstarted_victims_by_place: bool = since("1.37")
    """Equal victims that have not started keep the order of the node's pods."""
    requests_by_pod: bool = since("1.37")
    """A pod that is being resized counts with the maximum of requested, allocated and actual resources of the pod as a
    whole, not of each container."""
    sorts_slices: bool = since("1.36")
    """Devices are tried by driver, pool and ResourceSlice; else in the order of Go maps, which is random."""
    list_constraints: bool = since("1.37")
    """Constraints compare lists of values, with feature gate DRAListTypeAttributes."""
    distinct_from_all: bool = since("1.37")
    """distinctAttribute compares all devices of a request, not only the last of each."""
    keeps_alternative: bool = since("1.36")
    """An alternative for all devices is completed; else the search continues with the first alternative after the
    first device.
    """
    pools_by_node: bool = until("1.35")
    """A pool of devices is judged by the slices that the node sees: devices are taken from one that is incomplete, and
    a device that is there twice fails the pod."""
    all_counts_full: bool = since("1.37")
    """A request for all devices includes full shared devices, and so fails."""
    copies_config_once: bool = since("1.37")
    """A configuration of a claim for several of its requests is in the allocation once, not once for each."""
    counters_everywhere: bool = until("1.37")
    """A pool matters on every node if it has counters; else on the nodes that its slices are for."""
    shares_count: bool = since("1.37")
    """A share of a device without capacity, too, has taken its counters; a further share does not take them again."""
    names_devices: bool = since("1.37")
    """An expression that fails on a device names it."""
    pod_word: str = changing(v1_33="pod", v1_36="Pod")
    """Spelling of "pod" in the reason for a claim that was not made for the pod."""
    timeout_is_error: bool = since("1.36")
    """A search for devices that takes too long is an error of the pod, not a refusal of the node."""
    keeps_nomination_without_post_filter: bool = until("1.35")
    """A pod that fits nowhere keeps its nomination in a profile without PostFilter plugins."""
    implied_taint_event: bool = until("1.37")
    """A plugin that waits for new nodes is woken by every change of taints, too."""
    affinity_hints: AffinityHints = changing(
        v1_33=AffinityHints.PLACED, v1_36=AffinityHints.ALL_TERMS, v1_37=AffinityHints.ANY_TERM
    )
    spread_hints_nominated: bool = since("1.36")
    """For the hints of PodTopologySpread pods count that are only nominated."""
    claim_delete_event: bool = since("1.37")
    """Pods that lack devices are woken by the deletion of an allocated claim."""
    gated_pods: GatedPods = changing(
        v1_33=GatedPods.ALL_EVENTS,
        v1_34=GatedPods.OWN_EVENTS,
        v1_35=GatedPods.EVERY_FLUSH,
        v1_36=GatedPods.FLUSH,
    )
    activation_runs_pre_enqueue: bool = until("1.35")
    """A pod that is activated while it backs off has to pass PreEnqueue once more."""
    forgets_deleted_assumed: bool = since("1.35")
    """A pod that is deleted while it is being bound frees its room at once."""
    holds_preemptor_to_the_end: bool = since("1.35")
    """A pod waits until the last of its victims terminates; else until the deletion of the last one begins."""
    deletes_last_after_failure: bool = until("1.36")
    """The last victim is deleted even if the deletion of another one failed."""
    stopped_victims_wake: bool = since("1.37")
    """A pod whose last victim was stopped in memory is tried again at once."""
    gated_nominations: bool = since("1.37")
    """A new pod that a PreEnqueue plugin holds is nominated to the node in its status."""
    waiting_victims_fail: bool = since("1.36")
    """A victim that waits on Permit is requeued as after an error, not as after a refusal; a victim in PreBind is
    stopped in memory, too.
    """
    names_target_pods: bool = since("1.37")
    """In metrics, events of waiting pods are UnscheduledPod, or TargetPod for the pod itself; else UnschedulablePod."""
    pre_binds_together: bool = since("1.36")
    """VolumeBinding and DynamicResources bind the volumes and devices of a pod at the same time, not in turn."""
    retries_bindings: bool = since("1.37")
    """A binding is sent again after an error of the API server, and the status of a pod after a conflict, too."""
    groups_are_entries: bool = since("1.37")
    """A pod group is one entry of the queue, preempts as a whole, and is tried until it is known whether enough of its
    members fit; else its members are queued one by one."""
    counts_terms_on_trial: bool = since("1.37")
    """The affinity terms of a member of a pod group count for the members that are tried after it."""
    group_condition: str = changing(v1_33="PodGroupScheduled", v1_37="PodGroupInitiallyScheduled")
    """The condition of a pod group that enough of its members have a node."""
    backoff_by_attempts: bool = until("1.34")
    """Backoff grows with the number of attempts, whatever they ended with."""
    preemption_waits_for_deletes: bool = since("1.34")
    """DefaultPreemption registers for deleted pods."""


def _release(version: str) -> Release:
    """The record of a release: of each fact, the last value up to it."""
    passed = {_word(each) for each in VERSIONS[: VERSIONS.index(version) + 1]}
    facts = zip(Release.__struct_fields__[1:], Release.__struct_defaults__, strict=True)
    values = {name: [value for word, value in steps if word in passed][-1] for name, steps in facts}
    return Release(version=version, **values)


RELEASES = {version: _release(version) for version in VERSIONS}
"""The releases by version, the oldest first."""
DEFAULT_RELEASE = RELEASES["1.36"]


def find_release(text: str) -> Release:
    """The facts for `text`, such as `1.36` or `v1.36.4`; those of the nearest release for one that is not known.

    ConfigError for a text that names no release.
    """
    wanted = parse_release(text)
    found = RELEASES.get(f"{wanted[0]}.{wanted[1]}")
    oldest, *_, newest = RELEASES.values()
    return found or (oldest if wanted < parse_release(oldest.version) else newest)
