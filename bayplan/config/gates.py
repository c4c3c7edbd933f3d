"""Gates: the scheduler's feature gates, and the user's settings.

Mirrors pkg/features/kube_features.go and the --feature-gates flag of kube-scheduler.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ConfigError
from .problems import one_of

FeatureGates = Mapping[str, bool]

DEFAULT_POD_TOPOLOGY_SPREAD = "DefaultPodTopologySpread"
GANG_SCHEDULING = "GangScheduling"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


@dataclass(frozen=True)
class Gate:
    """A feature gate: its stage, whether it is on by default, and whether it can be switched."""

    stage: str
    is_on: bool
    is_locked: bool = False


_LOCKED = Gate("GA", True, True)
_ON = Gate("beta", True)
_OFF = Gate("beta", False)
_ALPHA = Gate("alpha", False)
_PAST = Gate("past", True)

GATES: dict[str, Gate] = {
    ALL_ALPHA: Gate("alpha", False),
    ALL_BETA: Gate("beta", False),
    # Gates of earlier releases; they matter to the formats of those.
    "BalanceAttachedNodeVolumes": Gate("past", False),
    "CSIMigration": _PAST,
    "CSIMigrationAWS": _PAST,
    "CSIMigrationAzureDisk": _PAST,
    "CSIMigrationGCE": _PAST,
    "CSIMigrationOpenStack": _PAST,
    DEFAULT_POD_TOPOLOGY_SPREAD: _PAST,
    "NonPreemptingPriority": _PAST,
    "PodOverhead": _PAST,
    "VolumeCapacityPriority": Gate("past", False),
    # v1.36
    "ComponentFlagz": _ON,
    "ComponentStatusz": _ON,
    "CoordinatedLeaderElection": _OFF,
    "DRAAdminAccess": _LOCKED,
    "DRAConsumableCapacity": _ON,
    "DRADeviceBindingConditions": _ON,
    "DRADeviceTaintRules": _OFF,
    "DRADeviceTaints": _ON,
    "DRAExtendedResource": _ON,
    "DRAListTypeAttributes": _ALPHA,
    "DRANodeAllocatableResources": _ALPHA,
    "DRAPartitionableDevices": _ON,
    "DRAPrioritizedList": Gate("GA", True),
    "DRAResourceClaimDeviceStatus": _ON,
    "DRASchedulerFilterTimeout": _ON,
    "DRAWorkloadResourceClaims": _ALPHA,
    "DynamicResourceAllocation": _LOCKED,
    GANG_SCHEDULING: _ALPHA,
    "GenericWorkload": _ALPHA,
    "InPlacePodLevelResourcesVerticalScaling": _ON,
    "InPlacePodVerticalScaling": _LOCKED,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _ON,
    "MutableCSINodeAllocatableCount": _LOCKED,
    NODE_DECLARED_FEATURES: _ON,
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _ON,
    "OpportunisticBatching": _ON,
    "PodLevelResources": _ON,
    "PodSchedulingReadiness": _LOCKED,
    "SchedulerAsyncAPICalls": _OFF,
    "SchedulerAsyncPreemption": _ON,
    "SchedulerPopFromBackoffQ": _ON,
    "SchedulerQueueingHints": _LOCKED,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _ALPHA,
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": _ALPHA,
}

_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_feature_gates(text: str, source: str = "--feature-gates") -> dict[str, bool]:
    """Returns the gates in `A=true,B=false`; raises ConfigError with a line for each mistake."""
    gates: dict[str, bool] = {}
    faults: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or value not in _TRUTH:
            got = f'"{value}"' if equals else "nothing"
            faults.append(f"{source}: {name}: expected true or false; got {got}")
        elif fault := _fault(name, _TRUTH[value]):
            faults.append(f"{source}: {fault}")
        else:
            gates[name] = _TRUTH[value]
    if faults:
        raise ConfigError("\n".join(faults))
    return gates


def check_feature_gates(gates: FeatureGates, source: str = "featureGates") -> None:
    """Raises ConfigError, with a line for each mistake, unless `gates` can be set."""
    faults = [_fault(name, value) for name, value in gates.items()]
    if any(faults):
        raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults if fault))


def is_gate_on(gates: FeatureGates, name: str) -> bool:
    """Whether feature gate `name` is on with the settings `gates`."""
    gate = GATES[name]
    everything = {"alpha": ALL_ALPHA, "beta": ALL_BETA}.get(gate.stage, "")
    return gates.get(name, gates.get(everything, gate.is_on))


def _fault(name: str, value: bool) -> str | None:
    """Returns why gate `name` cannot be set to `value`, None if it can."""
    gate = GATES.get(name)
    if gate is None:
        return f"{name}: expected {one_of(_nearest(name))}; got an unknown feature gate"
    if gate.is_locked and value != gate.is_on:
        wanted, got = str(gate.is_on).lower(), str(value).lower()
        return f"{name}: expected {wanted}, to which the gate is locked; got {got}"
    return None


def _nearest(name: str) -> tuple[str, ...]:
    """Return the gates with names similar to `name`, all of them if none is."""
    return tuple(difflib.get_close_matches(name, GATES, n=3)) or tuple(sorted(GATES))
