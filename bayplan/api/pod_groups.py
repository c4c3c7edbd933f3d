"""Pod groups: PodGroup and Workload, gangs by `spec.schedulingGroup` or, without that API, by labels.

Mirrors k8s.io/api/scheduling/v1alpha2, and v1beta1 of v1.37.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from .meta import KubeObject, Wire
from .pod import Pod, PodResourceClaim
from .pod_status import PodCondition, PodResourceClaimStatus
from .volumes import TypedLocalObjectReference

Entry = TypeVar("Entry", bound=Wire)
SCHEDULING_V1ALPHA2 = "scheduling.k8s.io/v1alpha2"
SCHEDULING_V1BETA1 = "scheduling.k8s.io/v1beta1"

SCHEDULING_GROUP = "scheduling.k8s.io"
"""The API group of PodGroups."""
PREFERRED_TOPOLOGY = "bayplan.dev/preferred-topology"
"""On a PodGroup: the smallest level of the topology whose domains are tried."""
NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
CUSTOM_LABEL = "scheduling.x-k8s.io/pod-group"
"""Names a PodGroup of scheduling.x-k8s.io, which has the number of pods that must run together."""


class GangPolicy(Wire, frozen=True):
    """Gang: at least `min_count` pods start together."""

    min_count: int = 0


class PodGroupPolicy(Wire, frozen=True):
    """Scheduling policy of a group; exactly one is set."""

    basic: dict[str, str] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Wire, frozen=True):
    """The label whose value all pods of a group must share."""

    key: str = ""


class PodGroupConstraints(Wire, frozen=True):
    """Topology constraints of a group."""

    topology: tuple[TopologyConstraint, ...] | None = None


class WorkloadTemplateReference(Wire, frozen=True):
    """One template of a Workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Wire, frozen=True):
    """The template that a group was made from."""

    workload: WorkloadTemplateReference | None = None


class WorkloadReference(Wire, frozen=True):
    """The template that a group was made from, as v1beta1 has it."""

    workload_name: str = ""
    template_name: str = ""


class DisruptionMode(Wire, frozen=True):
    """The pods of a group that are preempted together, in the form of v1beta1; one field is set."""

    single: dict[str, str] | None = None
    all: dict[str, str] | None = None


class PodGroupSettings(Wire, frozen=True):
    """The scheduling policy of a group of pods, with the fields of v1alpha2 and of v1beta1."""

    scheduling_policy: PodGroupPolicy = PodGroupPolicy()
    scheduling_constraints: PodGroupConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] | None = None


class PodGroupSpec(PodGroupSettings, frozen=True):
    """The settings of a group, and the template that it was made from."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadReference | None = None

    @property
    def is_disrupted_whole(self) -> bool:
        """Whether its pods can only be preempted together."""
        mode = self.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == WHOLE_GROUP


WHOLE_GROUP = "PodGroup"
"""The disruptionMode of v1alpha2 for groups whose pods can only be preempted together."""
POD_GROUP_SCHEDULED = "PodGroupScheduled"
SCHEDULED_CONDITIONS = (POD_GROUP_SCHEDULED, "PodGroupInitiallyScheduled")
"""The condition of a group that was scheduled, up to v1.36 and from v1.37 on."""


class PodGroupCondition(PodCondition, frozen=True):
    """One aspect of a group's state."""

    last_transition_time: str | None = None


class PodGroupStatus(Wire, frozen=True):
    """Observed state of a group."""

    conditions: tuple[PodGroupCondition, ...] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None

    def merged(self, other: PodGroupStatus) -> PodGroupStatus:
        """This status with the conditions and the claims of `other`, by type and by name."""
        return PodGroupStatus(
            conditions=_merged(self.conditions, other.conditions, "type"),
            resource_claim_statuses=_merged(
                self.resource_claim_statuses, other.resource_claim_statuses, "name"
            ),
        )


def _merged(
    before: tuple[Entry, ...] | None, after: tuple[Entry, ...] | None, key: str
) -> tuple[Entry, ...] | None:
    """The entries of `before`, replaced by or followed by those of `after`; by their `key`."""
    if not after:
        return before
    found = {getattr(entry, key): entry for entry in (*(before or ()), *after)}
    return tuple(found.values())


class PodGroup(KubeObject, frozen=True):
    """Pods that are scheduled together."""

    kind: ClassVar[str] = "PodGroup"
    api_version: ClassVar[str] = SCHEDULING_V1ALPHA2

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def wire_version(self) -> str:
        """The API version that has all fields of the group."""
        spec = self.spec
        is_newer = isinstance(spec.disruption_mode, DisruptionMode) or spec.workload_ref is not None
        is_newer = is_newer or spec.preemption_policy is not None
        return SCHEDULING_V1BETA1 if is_newer else SCHEDULING_V1ALPHA2

    @property
    def gang(self) -> GangPolicy | None:
        """The policy of a gang; None when the group is no gang."""
        return self.spec.scheduling_policy.gang

    @property
    def min_count(self) -> int:
        """The minimum number of pods to start together; 0 when the group is no gang."""
        gang = self.gang
        return gang.min_count if gang else 0

    @property
    def scheduled(self) -> PodGroupCondition | None:
        """The condition of the group's scheduling."""
        found = (c for c in self.status.conditions or () if c.type in SCHEDULED_CONDITIONS)
        return next(found, None)

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """The labels whose values must be equal for all members."""
        constraints = self.spec.scheduling_constraints
        return tuple(t.key for t in constraints.topology or ()) if constraints else ()


class PodGroupTemplate(PodGroupSettings, frozen=True):
    """Template of the groups of a workload."""

    name: str = ""


class WorkloadSpec(Wire, frozen=True):
    """The templates of a workload, and the object whose pods they are for."""

    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = None


class Workload(KubeObject, frozen=True):
    """Templates of the pod groups of one application."""

    kind: ClassVar[str] = "Workload"
    api_version: ClassVar[str] = SCHEDULING_V1ALPHA2

    spec: WorkloadSpec = WorkloadSpec()

    @property
    def templates(self) -> tuple[PodGroupTemplate, ...]:
        """The templates; none in an object without a spec."""
        return self.spec.pod_group_templates or ()


def pod_group_of(pod: Pod) -> str | None:
    """The name of the PodGroup (scheduling.k8s.io) that the pod is scheduled with, if any."""
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None else None


def labelled_group_of(pod: Pod) -> str | None:
    """The name of the group that the pod's labels put it in, if any."""
    labels = pod.labels
    return labels.get(NAME_LABEL) or labels.get(CUSTOM_LABEL) or None


def min_available(pod: Pod) -> int | None:
    """Number of pods of its group that must run together, by the pod's labels; None if only its PodGroup has it."""
    if not pod.labels.get(NAME_LABEL):
        return None
    text = pod.labels.get(MIN_AVAILABLE_LABEL, "")
    return max(int(text), 1) if text.isdecimal() else 1


class GroupPreemptor(PodGroup, frozen=True):
    """A pod group that preempts as a whole, and the scheduler of its members."""

    scheduler_name: str = ""
