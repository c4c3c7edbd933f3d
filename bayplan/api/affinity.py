"""Affinity: a pod's constraints on nodes, other pods and even spread.

Mirrors Affinity and TopologySpreadConstraint of k8s.io/api/core/v1/types.go.
"""

from .meta import Wire
from .selectors import LabelSelector, NodeSelector, NodeSelectorTerm

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"


class PreferredSchedulingTerm(Wire, frozen=True):
    """A preference for certain nodes, with its weight."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Required and preferred nodes of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution or ()


class PodAffinityTerm(Wire, frozen=True):
    """A set of pods, and the topology within which to be near them or away from them."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A preference about other pods, with its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Required and preferred pods to be near."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[WeightedPodAffinityTerm, ...] | None
    ) = None

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        return self.required_during_scheduling_ignored_during_execution or ()

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution or ()


class PodAntiAffinity(PodAffinity, frozen=True):
    """Required and preferred anti-affinity terms."""


class Affinity(Wire, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """Limit on the difference of matching pods between the domains of a topology."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None
