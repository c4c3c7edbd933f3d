"""GateEffects: the effects of the scheduler's feature gates, on and off.

A position that is not implemented is `missing`; setting it is refused with its text. docs/feature-gates.md is made from
this table.
"""

from __future__ import annotations

from typing import NamedTuple


class Effect(NamedTuple):
    """Effects of a gate when it is on and when it is off."""

    on: str
    off: str
    missing: bool | None = None
    """The position that is not implemented; its text describes the behaviour instead."""

    def describe(self, value: bool | None) -> str:
        """The text of one position."""
        return self.on if value else self.off


EFFECTS: dict[str, Effect] = {
    "CBORServingAndStorage": Effect(
        "`run` serves /statusz and /flagz as application/cbor, too",
        "they are served as text, JSON and YAML",
    ),
    "ComponentFlagz": Effect("`run` serves /flagz", "there is no /flagz"),
    "ComponentStatusz": Effect("`run` serves /statusz", "there is no /statusz"),
    "CoordinatedLeaderElection": Effect(
        "replicas of `run` announce themselves with LeaseCandidates, and the API server gives one of them the Lease",
        "replicas compete for one Lease",
    ),
    "DRAAdminAccess": Effect(
        "a request with adminAccess is given devices that are in use",
        "a request with adminAccess is an error",
    ),
    "DRAConsumableCapacity": Effect(
        "devices with allowMultipleAllocations are shared, as far as their capacity goes",
        "a device belongs to one claim; a request for capacity is an error",
    ),
    "DRADeviceBindingConditions": Effect(
        "a pod waits until its devices are ready, up to bindingTimeout",
        "devices with binding conditions are not used; bindingTimeout is an error",
    ),
    "DRADerivedAttributes": Effect(
        "attributes that expressions compute for a device are not known",
        "a request with derivedAttributes is an error",
        missing=True,
    ),
    "DRADeviceCompatibilityGroups": Effect(
        "compatibilityGroups of devices are not compared",
        "slices with compatibilityGroups are not used",
        missing=True,
    ),
    "DRADeviceTaintRules": Effect(
        "DeviceTaintRule objects add taints to devices",
        "only taints in ResourceSlices count",
    ),
    "DRADeviceTaints": Effect(
        "a tainted device is given to requests that tolerate it", "taints of devices are ignored"
    ),
    "DRAExtendedResource": Effect(
        "extended resources that a node lacks come from devices of a DeviceClass",
        "extended resources come from nodes only",
    ),
    "DRAFractionalCapacityRange": Effect(
        "amounts of capacity by a validRange with a step are computed in thousandths",
        "they are computed in whole units",
    ),
    "DRAListTypeAttributes": Effect(
        "an attribute may have several values; matchAttribute asks for one in common, distinctAttribute for none",
        "an attribute has one value; expressions fail on a device with lists",
    ),
    "DRANodeAllocatableResources": Effect(
        "devices with nodeAllocatableResourceMappings use up cpu, memory, storage or huge pages of their node, "
        "which is in the status of the pod",
        "devices do not use up resources of the node",
    ),
    "DRAOptionalNodeOperations": Effect(
        "skipNodeOperations of a slice is not copied to allocations",
        "skipNodeOperations is ignored",
        missing=True,
    ),
    "DRAPartitionableDevices": Effect(
        "sharedCounters limit which partitions of a device are given out",
        "slices with sharedCounters or perDeviceNodeSelection, and devices with consumesCounters, "
        "are not used",
    ),
    "DRAPrioritizedList": Effect(
        "firstAvailable lists alternatives; earlier ones score higher",
        "a claim with firstAvailable is refused; DynamicResources does not score",
    ),
    "DRAResourceClaimDeviceStatus": Effect(
        "the status of devices in claims is read for binding conditions",
        "as DRADeviceBindingConditions off, which it requires",
    ),
    "DRASchedulerFilterTimeout": Effect(
        "the search for devices on a node ends after filterTimeout",
        "the search has no limit; filterTimeout is an error",
    ),
    "DRAWorkloadResourceClaims": Effect(
        "the pods of a group share the claims of spec.resourceClaims of their PodGroup; these are "
        "reserved for the group",
        "claims are reserved for pods; spec.resourceClaims of a PodGroup is ignored",
    ),
    "DefaultPodTopologySpread": Effect(
        "formats before v1 spread pods with PodTopologySpread",
        "formats before v1 spread pods with SelectorSpread",
    ),
    "DynamicResourceAllocation": Effect(
        "DynamicResources is a default plugin",
        "it is not, and does nothing where a profile enables it",
    ),
    "GangScheduling": Effect(
        "the plugin GangScheduling is added to the default plugins", "it is not added"
    ),
    "GenericWorkload": Effect(
        "pods with spec.schedulingGroup are scheduled with their pod group, all or none",
        "pods with spec.schedulingGroup are scheduled one by one",
    ),
    "InPlacePodLevelResourcesVerticalScaling": Effect(
        "pod-level requests are raised to what the status says the pod was given",
        "pod-level requests are those of the spec",
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": Effect(
        "pods whose resize is deferred are not scheduled again",
        "a resize makes no room by preemption",
        missing=True,
    ),
    "InterPodAffinityHostnameFastPath": Effect(
        "decisions are the same as without it", "decisions are the same as with it"
    ),
    "InPlacePodVerticalScaling": Effect(
        "requests of containers are raised to what the status says they were given",
        "what containers were given always counts",
        missing=False,
    ),
    "MatchLabelKeysInPodTopologySpread": Effect(
        "matchLabelKeys narrow the selector of a spread constraint", "matchLabelKeys are ignored"
    ),
    "NativeHistograms": Effect(
        "metrics are served as text, in which histograms are classic; native ones need the protobuf format",
        "histograms are classic",
        missing=True,
    ),
    "NodeDeclaredFeatures": Effect(
        "the plugin NodeDeclaredFeatures is a default plugin",
        "it is not, and does nothing where a profile enables it",
    ),
    "NodeInclusionPolicyInPodTopologySpread": Effect(
        "nodeAffinityPolicy and nodeTaintsPolicy say which nodes count",
        "nodeAffinityPolicy and nodeTaintsPolicy are always honoured",
        missing=False,
    ),
    "NominatedNodeNameForExpectation": Effect(
        "a pod that waits on Permit or PreBind has its node in status.nominatedNodeName",
        "the node is not announced, and every PreBind plugin runs",
    ),
    "OpportunisticBatching": Effect(
        "`scheduler_batch_attempts_total` counts attempts, all of them without a hint; decisions are those of a "
        "full evaluation",
        "that metric stays empty; decisions are those of a full evaluation",
    ),
    "PodLevelResources": Effect(
        "spec.resources of a pod replaces the sum over its containers",
        "spec.resources of a pod is ignored",
    ),
    "SchedulerAsyncAPICalls": Effect(
        "`run` has the metrics `scheduler_async_api_call_*` and `scheduler_pending_async_api_calls`",
        "it does not; in both positions no write of a status or a binding holds up the next pod",
    ),
    "SchedulerAsyncPreemption": Effect(
        "victims are deleted beside the scheduling of other pods; the preemptor is held back meanwhile",
        "victims are deleted within the attempt, which fails if one cannot be; in `run` no other pod is "
        "tried until the API server has answered",
    ),
    "SchedulerPopFromBackoffQ": Effect(
        "pods that back off are tried when no other pod is ready; PreEnqueue runs before backoff",
        "backoff is always waited for, to its exact end; PreEnqueue runs after it",
    ),
    "SchedulerPreQueueingHints": Effect(
        "retries are the same as without it", "retries are the same as with it"
    ),
    "SchedulerQueueingHints": Effect(
        "plugins decide which events requeue a pod", "hints are always used", missing=False
    ),
    "SidecarContainers": Effect(
        "init containers with restartPolicy Always count as running",
        "sidecars are always counted",
        missing=False,
    ),
    "StorageCapacityScoring": Effect(
        "VolumeBinding scores by the storage left, by the points of `shape`",
        "VolumeBinding scores static bindings only; `shape` is an error",
    ),
    "TaintTolerationComparisonOperators": Effect(
        "tolerations may have the operators Gt and Lt", "a toleration with Gt or Lt matches nothing"
    ),
    "TopologyAwareWorkloadScheduling": Effect(
        "a pod group with a topology constraint is placed in one domain; TopologyPlacementGenerator and "
        "PodGroupPodsCount are default plugins",
        "the topology constraints of pod groups are ignored, as their field does not exist",
    ),
    "VolumeAttributesClass": Effect(
        "claims match volumes of their attributes class",
        "volumes of an attributes class are not used; a claim with one is an error",
    ),
    "VolumeLimitScaling": Effect(
        "a node lacking a CSI driver with preventPodSchedulingIfMissing refuses pods with its volumes",
        "a driver that is not installed does not matter",
    ),
    "WorkloadAwarePreemption": Effect(
        "a pod group that does not fit preempts as a whole, and one with disruptionMode PodGroup is preempted so",
        "the members of a pod group preempt one by one",
    ),
    "WorkloadWithJob": Effect(
        "in `simulate` and `up`, an indexed job whose pods all run at once gets a Workload and a PodGroup",
        "the pods of a job have the group that its template names, if any",
    ),
    # Gates of releases before v1.23, whose formats are read.
    "BalanceAttachedNodeVolumes": Effect(
        "the number of volumes does not count in the score", "volumes do not score", missing=True
    ),
    "CSIMigration": Effect(
        "in-tree volumes count as CSI volumes",
        "in-tree volumes always count as CSI volumes",
        missing=False,
    ),
    "NonPreemptingPriority": Effect(
        "preemptionPolicy Never is honoured",
        "preemptionPolicy Never is always honoured",
        missing=False,
    ),
    "PodOverhead": Effect("overhead is added to requests", "overhead always counts", missing=False),
    "VolumeCapacityPriority": Effect(
        "this gate was replaced by StorageCapacityScoring", "capacity does not score", missing=True
    ),
}
for _cloud in ("AWS", "AzureDisk", "GCE", "OpenStack"):
    EFFECTS[f"CSIMigration{_cloud}"] = EFFECTS["CSIMigration"]

EARLIER_GATES: dict[str, bool] = {
    "BalanceAttachedNodeVolumes": False,
    "CSIMigration": True,
    "CSIMigrationAWS": True,
    "CSIMigrationAzureDisk": True,
    "CSIMigrationGCE": True,
    "CSIMigrationOpenStack": True,
    "DefaultPodTopologySpread": True,
    "NonPreemptingPriority": True,
    "PodOverhead": True,
    "VolumeCapacityPriority": False,
}
"""Gates of releases before v1.23, with the position that equals v1.36."""
