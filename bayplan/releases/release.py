"""Release: the facts in which the releases of kube-scheduler differ, one frozen record per release.

The record is chosen once, with the configuration, and is carried by the feature gates. Code that decides reads a named
fact and never compares versions. A release is written as its changes against the one before; a fact that a release does
not name is unchanged. `feature_gates.txt` has the gates of every release.
"""

from __future__ import annotations

import enum

import msgspec
from msgspec.structs import replace

from ..errors import ConfigError


class ImageVolumes(enum.Enum):
    """Weight of image volumes in the score of ImageLocality."""

    IGNORED = "ignored"
    SIZE = "size"
    """Their sizes are added; the ceiling is that of the containers."""
    SIZE_AND_CEILING = "size and ceiling"


class AffinityHints(enum.Enum):
    """Which pods that change or go wake a pod that InterPodAffinity refused."""

    PLACED = "placed"
    """Pods on nodes; neither the anti-affinity of a pod that goes counts, nor changes of the pod's own labels."""
    ALL_TERMS = "all terms"
    """Nominated ones, too, if they match all terms of the anti-affinity."""
    ANY_TERM = "any term"
    """The same, if they match one of the terms."""


class GatedPods(enum.Enum):
    """Causes for checking pods again that a PreEnqueue plugin holds, besides a change of the pod itself."""

    ALL_EVENTS = "all events"
    """Every event and every flush, but for pods that SchedulingGates holds."""
    OWN_EVENTS = "own events"
    """Events that the plugin registered."""
    EVERY_FLUSH = "every flush"
    """These, events about everything, and every flush once a pod is old enough for it."""
    FLUSH = "flush"
    """As EVERY_FLUSH, but after a flush a pod waits for as long as any other."""


class Release(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The facts of one release of kube-scheduler."""

    version: str
    """The release as people name it, such as 1.36."""
    patch: str
    """The tag that the facts were read from and recorded with."""

    missing_config_fields: frozenset[str]
    """Fields of profiles and plugin arguments that this release does not have."""
    fit_strategy_is_strict: bool
    """NodeResourcesFitArgs have requestedToCapacityRatio with the type of that name only."""
    faults_name_fields: bool
    """Some faults of a configuration name the field once more in their text."""
    checks_gate_needs: bool
    """A gate that is on requires the gates that it needs."""
    refused_gates: dict[str, tuple[bool, str]] = {}
    """Positions of gates that this release has and that are not implemented for it, each with a sentence."""

    merged_gates: dict[str, str] = {}
    """Gates that this release no longer has, and the gate that does what they did."""

    api_versions: dict[str, str]
    """API versions of kinds that not all releases have in the same one."""
    missing_metrics: frozenset[str]
    """Metrics that this release does not have."""
    balance_scores_change: bool
    """NodeResourcesBalancedAllocation scores the change of the balance, not the balance itself."""
    image_volumes: ImageVolumes
    keeps_namespace_selector: bool
    """A namespaceSelector of the incoming pod's terms still matches after it was resolved to names: one that asks only
    for labels to be absent or different matches every namespace."""
    fit_unresolvable: bool
    """NodeResourcesFit rules preemption out on nodes that never have enough."""
    missing_driver_opts_in: bool
    """With VolumeLimitScaling, a node without a CSI driver is refused only if the driver asks for that."""
    portworx_by_annotation: bool
    """In-tree Portworx volumes count against the limit of its driver only where the CSINode lists them as migrated."""
    lacking_features_reason: str
    """The reason for a node that does not declare the features of a pod."""
    host_network_feature: bool
    """Pods of a user namespace in the network of the host need a node that declares it."""
    names_taints: bool
    """TaintToleration names the first untolerated taint."""
    one_pod_claim_reason: str
    """The reason for a ReadWriteOncePod claim in use."""
    dra_scores: bool
    """The default plugins have DynamicResources with a weight."""
    node_name_first: bool
    """NodeName is the first of the default filters."""
    missing_points: frozenset[tuple[str, str]]
    """Plugins with an extension point that they do not have in this release."""
    tells_preemption: bool
    """A successful preemption is part of the message."""
    tells_claims_kept: bool
    """DynamicResources has a reason in PostFilter for claims that it does not give up."""
    budgets_stop_at_first: bool
    """A victim is not counted against the budgets after the first that it exceeds."""
    unstarted_victims_by_place: bool
    """Equal victims that have not started keep the order of the node's pods."""
    requests_by_pod: bool
    """A pod that is being resized counts with the maximum of requested, allocated and actual resources of the pod as a
    whole, not of each container."""
    sorts_slices: bool
    """Devices are looked through by driver, pool and ResourceSlice; else in the order of Go maps, which is chance."""
    list_constraints: bool
    """Constraints compare lists of values, with feature gate DRAListTypeAttributes."""
    distinct_from_all: bool
    """distinctAttribute compares all devices of a request, not only the last of each."""
    keeps_alternative: bool
    """An alternative that asks for all devices is served to its end; else the first alternative is gone on with after
    the first device."""
    pools_by_node: bool
    """A pool of devices is judged by the slices that the node sees: devices are taken from one that is incomplete, and
    a device that is there twice fails the pod."""
    all_counts_full: bool
    """A request for all devices wants those that are shared and full, too, and so fails."""
    copies_config_once: bool
    """A configuration of a claim for several of its requests is in the allocation once, not once for each."""
    counters_everywhere: bool
    """A pool matters on every node if it has counters; else on the nodes that its slices are for."""
    shares_count: bool
    """A share of a device without capacity, too, has taken its counters; a further share does not take them again."""
    names_devices: bool
    """An expression that fails on a device names it."""
    pod_word: str
    """Spelling of "pod" in the reason for a claim that was not made for the pod."""
    timeout_is_error: bool
    """A search for devices that takes too long is an error of the pod, not a refusal of the node."""
    keeps_nomination_without_post_filter: bool
    """A pod that fits nowhere keeps its nomination in a profile without PostFilter plugins."""
    implied_taint_event: bool
    """A plugin that waits for new nodes is woken by every change of taints, too."""
    affinity_hints: AffinityHints
    spread_hints_nominated: bool
    """For the hints of PodTopologySpread pods count that are only nominated."""
    claim_delete_event: bool
    """Pods that lack devices are woken by the deletion of an allocated claim."""
    gated_pods: GatedPods
    activation_runs_pre_enqueue: bool
    """A pod that is activated while it backs off has to pass PreEnqueue once more."""
    forgets_deleted_assumed: bool
    """A pod that is deleted while it is being bound frees its room at once."""
    holds_preemptor_to_the_end: bool
    """A pod waits until the last of its victims terminates; else until the deletion of the last one begins."""
    deletes_last_after_failure: bool
    """The last victim is deleted even if the deletion of another one failed."""
    stopped_victims_wake: bool
    """A pod whose last victim was stopped in memory is tried again at once."""
    gated_nominations: bool
    """A new pod that a PreEnqueue plugin holds is nominated to the node in its status."""
    waiting_victims_fail: bool
    """A victim that waits on Permit is retried as after an error, not as one that was refused; one in PreBind, too, is
    stopped in memory."""
    names_target_pods: bool
    """In metrics, events of waiting pods are UnscheduledPod, or TargetPod for the pod itself; else UnschedulablePod."""
    pre_binds_together: bool
    """VolumeBinding and DynamicResources bind the volumes and devices of a pod at the same time, not in turn."""
    retries_bindings: bool
    """A binding is sent again after an error of the API server, and the status of a pod after a conflict, too."""
    groups_are_entries: bool
    """A pod group is one entry of the queue, preempts as a whole, and is tried until it is known whether enough of its
    members fit; else its members are queued one by one."""
    counts_terms_on_trial: bool
    """The affinity terms of a member of a pod group count for the members that are tried after it."""
    group_condition: str
    """The condition of a pod group that enough of its members have a node."""
    backoff_by_attempts: bool
    """Backoff grows with the number of attempts, whatever they ended with."""
    preemption_waits_for_deletes: bool
    """DefaultPreemption registers for deleted pods."""


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
_V1_33 = Release(
    version="1.33",
    patch="v1.33.13",
    missing_config_fields=frozenset(
        {"filterTimeout", "bindingTimeout", "placementGenerate", "placementScore"}
    ),
    fit_strategy_is_strict=False,
    faults_name_fields=True,
    missing_driver_opts_in=False,
    portworx_by_annotation=True,
    lacking_features_reason="node declared features check failed - unsatisfied requirements: "
    "RestartAllContainersOnContainerExits",
    host_network_feature=False,
    checks_gate_needs=False,
    api_versions=dict.fromkeys(_DEVICE_KINDS, "resource.k8s.io/v1beta1") | _ALPHA_RULES,
    missing_metrics=frozenset(_SINCE_1_35 | _SINCE_1_36 | _SINCE_1_37),
    refused_gates={
        "DynamicResourceAllocation": (
            True,
            "v1.33 reads resource.k8s.io/v1beta1 and gives devices by other rules",
        ),
    },
    balance_scores_change=False,
    image_volumes=ImageVolumes.IGNORED,
    keeps_namespace_selector=False,
    fit_unresolvable=False,
    names_taints=True,
    one_pod_claim_reason="node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
    dra_scores=False,
    node_name_first=False,
    missing_points=_NO_PRE_FILTER | {("DynamicResources", "score")},
    tells_preemption=False,
    tells_claims_kept=True,
    budgets_stop_at_first=False,
    unstarted_victims_by_place=False,
    requests_by_pod=False,
    sorts_slices=False,
    list_constraints=False,
    distinct_from_all=False,
    keeps_alternative=False,
    pools_by_node=True,
    all_counts_full=False,
    copies_config_once=False,
    counters_everywhere=True,
    shares_count=False,
    names_devices=False,
    pod_word="pod",
    timeout_is_error=False,
    keeps_nomination_without_post_filter=True,
    implied_taint_event=True,
    affinity_hints=AffinityHints.PLACED,
    spread_hints_nominated=False,
    claim_delete_event=False,
    gated_pods=GatedPods.ALL_EVENTS,
    activation_runs_pre_enqueue=True,
    forgets_deleted_assumed=False,
    holds_preemptor_to_the_end=False,
    deletes_last_after_failure=True,
    stopped_victims_wake=False,
    gated_nominations=False,
    waiting_victims_fail=False,
    names_target_pods=False,
    pre_binds_together=False,
    retries_bindings=False,
    groups_are_entries=False,
    counts_terms_on_trial=False,
    group_condition="PodGroupScheduled",
    backoff_by_attempts=True,
    preemption_waits_for_deletes=False,
)
_V1_34 = replace(
    _V1_33,
    version="1.34",
    patch="v1.34.11",
    api_versions=_STABLE_DEVICES | _ALPHA_RULES,
    missing_metrics=frozenset(_SINCE_1_35 | _SINCE_1_36 | _SINCE_1_37 | _UP_TO_1_33),
    refused_gates={
        "DRADeviceTaints": (True, "in v1.34 a taint of a device with any effect counts"),
        "DRAExtendedResource": (
            True,
            "v1.34 gives devices for a resource only where the node does not list it, and names claims otherwise",
        ),
        "DRAPartitionableDevices": (True, "v1.34 keeps counters by ResourceSlice, not by pool"),
    },
    missing_config_fields=frozenset({"bindingTimeout", "placementGenerate", "placementScore"}),
    faults_name_fields=False,
    keeps_namespace_selector=True,
    fit_unresolvable=True,
    names_taints=False,
    gated_pods=GatedPods.OWN_EVENTS,
    backoff_by_attempts=False,
    preemption_waits_for_deletes=True,
    one_pod_claim_reason="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
)
_V1_35 = replace(
    _V1_34,
    version="1.35",
    patch="v1.35.8",
    api_versions=_STABLE_DEVICES | _ALPHA_RULES | {"Workload": "scheduling.k8s.io/v1alpha1"},
    missing_metrics=frozenset(_SINCE_1_36 | _SINCE_1_37 | _UP_TO_1_33),
    checks_gate_needs=True,
    refused_gates={
        "DRADeviceTaintRules": (True, "v1.35 reads DeviceTaintRules of resource.k8s.io/v1alpha3"),
        "DRAPartitionableDevices": (
            True,
            "v1.35 keeps counters by the name of the pool, and those of a device that a constraint refuses",
        ),
        "GenericWorkload": (
            True,
            "v1.35 takes gangs from Workload objects of scheduling.k8s.io/v1alpha1 and places their pods one by one",
        ),
    },
    dra_scores=True,
    missing_config_fields=frozenset({"placementGenerate", "placementScore"}),
    pools_by_node=False,
    gated_pods=GatedPods.EVERY_FLUSH,
    activation_runs_pre_enqueue=False,
    forgets_deleted_assumed=True,
    holds_preemptor_to_the_end=True,
    missing_points=_NO_PRE_FILTER,
    keeps_nomination_without_post_filter=False,
)
_V1_36 = replace(
    _V1_35,
    version="1.36",
    patch="v1.36.4",
    api_versions={
        **_STABLE_DEVICES,
        "DeviceTaintRule": "resource.k8s.io/v1beta2",
        **dict.fromkeys(("PodGroup", "Workload"), "scheduling.k8s.io/v1alpha2"),
    },
    missing_metrics=frozenset(_SINCE_1_37 | _UP_TO_1_33),
    refused_gates={},
    missing_config_fields=frozenset(),
    fit_strategy_is_strict=True,
    missing_driver_opts_in=True,
    portworx_by_annotation=False,
    lacking_features_reason="node(s) didn't match Pod's required features",
    host_network_feature=True,
    balance_scores_change=True,
    image_volumes=ImageVolumes.SIZE,
    sorts_slices=True,
    keeps_alternative=True,
    pod_word="Pod",
    timeout_is_error=True,
    gated_pods=GatedPods.FLUSH,
    deletes_last_after_failure=False,
    affinity_hints=AffinityHints.ALL_TERMS,
    spread_hints_nominated=True,
    waiting_victims_fail=True,
    pre_binds_together=True,
)
_V1_37 = replace(
    _V1_36,
    version="1.37",
    patch="v1.37.0-rc.1",
    api_versions={
        **_STABLE_DEVICES,
        "DeviceTaintRule": "resource.k8s.io/v1",
        **dict.fromkeys(("PodGroup", "Workload"), "scheduling.k8s.io/v1beta1"),
    },
    missing_metrics=frozenset({"scheduler_resourceclaim_creates_total"} | _UP_TO_1_33),
    refused_gates={
        "DRANodeAllocatableResources": (
            True,
            "v1.37 reads nodeAllocatableResources of devices, which has another form than in v1.36",
        ),
        "CompositePodGroup": (True, "groups of pod groups are not scheduled"),
        "WorkloadWithJob": (True, "for v1.37 no Workloads and PodGroups are made from jobs"),
        "DRAWorkloadResourceClaims": (
            True,
            "v1.37 gives up the devices of a pod group that does not fit by other rules than v1.36",
        ),
    },
    merged_gates=dict.fromkeys(("GangScheduling", "WorkloadAwarePreemption"), "GenericWorkload"),
    groups_are_entries=True,
    counts_terms_on_trial=True,
    group_condition="PodGroupInitiallyScheduled",
    image_volumes=ImageVolumes.SIZE_AND_CEILING,
    keeps_namespace_selector=False,
    node_name_first=True,
    missing_points=frozenset(),
    tells_preemption=True,
    tells_claims_kept=False,
    budgets_stop_at_first=True,
    unstarted_victims_by_place=True,
    implied_taint_event=False,
    requests_by_pod=True,
    list_constraints=True,
    distinct_from_all=True,
    all_counts_full=True,
    copies_config_once=True,
    names_devices=True,
    counters_everywhere=False,
    shares_count=True,
    affinity_hints=AffinityHints.ANY_TERM,
    claim_delete_event=True,
    gated_nominations=True,
    stopped_victims_wake=True,
    names_target_pods=True,
    retries_bindings=True,
)

RELEASES: dict[str, Release] = {
    release.version: release for release in (_V1_33, _V1_34, _V1_35, _V1_36, _V1_37)
}
"""The releases by version, the oldest first."""
DEFAULT_RELEASE = _V1_36


def parse_release(text: str) -> tuple[int, int]:
    """The major and minor number of `1.36`, `v1.36` or `v1.36.4-gke.100`; ConfigError for anything else."""
    parts = text.removeprefix("v").split("+")[0].split(".", 2)
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        known = ", ".join(RELEASES)
        raise ConfigError(f'expected a release of Kubernetes such as {known}; got "{text}"')
    return int(parts[0]), int(parts[1])


def find_release(text: str) -> Release:
    """The facts for `text`, such as `1.36` or `v1.36.4`; those of the nearest release for one that is not known.

    ConfigError for a text that names no release.
    """
    wanted = parse_release(text)
    found = RELEASES.get(f"{wanted[0]}.{wanted[1]}")
    oldest, *_, newest = RELEASES.values()
    return found or (oldest if wanted < parse_release(oldest.version) else newest)
