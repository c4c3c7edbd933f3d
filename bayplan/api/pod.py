"""Pod: one pod, flat and immutable, with a spec shared between equal pods.

Mirrors Pod of k8s.io/api/core/v1/types.go. The parts of a pod live in their own modules and are
re-exported here.
"""

from collections.abc import Iterable
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from .affinity import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from .containers import Container, ContainerPort, HostPort, ResourceRequirements
from .meta import NO_STRINGS, OwnerReference, controller_of
from .pod_spec import (
    DEFAULT_SCHEDULER_NAME,
    EMPTY_SPEC,
    PodResourceClaim,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    intern_spec,
)
from .pod_status import EMPTY_STATUS, ContainerStatus, PodCondition, PodStatus
from .taints import Toleration
from .volumes import Volume

FINISHED_PHASES = ("Succeeded", "Failed")


class PodClass:
    """Class of pods that differ only in name, annotations, status, pinned node and claims; one object per class.

    `spec` is the spec without the pinned node and the names of claims.
    """

    __slots__ = ("__weakref__", "groups", "labels", "namespace", "owner_references", "spec")

    def __init__(self, pod: "Pod") -> None:
        self.spec = pod.spec.template or pod.spec
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.owner_references = pod.owner_references
        self.groups: tuple[tuple[str, str, str], ...] | None = None
        """The pod groups that its pods belong to, once they are asked for (cache/group_members.py)."""


_ClassKey = tuple[PodSpec, str, tuple[tuple[str, str], ...], tuple[OwnerReference, ...]]
_CLASSES: WeakValueDictionary[_ClassKey, PodClass] = WeakValueDictionary()
_ITEMS: dict[int, tuple[dict[str, str], tuple[tuple[str, str], ...]]] = {}
MAX_ITEMS = 1024


def _items_of(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The items of labels, shared by many pod classes."""
    known = _ITEMS.get(id(labels))
    if known is not None and known[0] is labels:
        return known[1]
    if len(_ITEMS) >= MAX_ITEMS:
        _ITEMS.clear()
    items = tuple(labels.items())
    _ITEMS[id(labels)] = (labels, items)
    return items


def _no_strings() -> dict[str, str]:
    return NO_STRINGS


class Pod(Struct, eq=False, gc=False):
    """A pod. Never changed in place: `with_node`, `with_status` and `replace` make copies.

    Outside of the garbage collector: nothing that a pod refers to refers to a pod.
    """

    kind: ClassVar = "Pod"
    api_version: ClassVar = "v1"

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] = field(default_factory=_no_strings)
    annotations: dict[str, str] = field(default_factory=_no_strings)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    node_name: str = ""
    spec: PodSpec = EMPTY_SPEC
    status: PodStatus = EMPTY_STATUS
    counts_claims: bool = False
    """Whether its usage includes the resources of the node that its devices use up."""
    _usage: tuple[dict[str, int], dict[str, int]] | None = None
    _class: PodClass | None = None

    @property
    def pod_class(self) -> PodClass:
        """The class of this pod: equal template of the spec, namespace, labels and owners."""
        found = self._class
        if found is None:
            labels = _items_of(self.labels)  # another order gives another class, which is harmless
            spec = self.spec.template or self.spec
            key = (spec, self.namespace, labels, self.owner_references)
            found = _CLASSES.get(key)
            if found is None:
                found = _CLASSES[key] = PodClass(self)
            self._class = found
        return found

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.spec.tolerations or ()

    @property
    def nominated_node_name(self) -> str:
        """The node that preemption is clearing for this pod; empty if none."""
        return self.status.nominated_node_name

    @property
    def is_assigned_or_nominated(self) -> bool:
        """Whether it is assigned or nominated to a node."""
        return bool(self.node_name or self.status.nominated_node_name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this pod."""
        return controller_of(self.owner_references)

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion was requested."""
        return self.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Whether it succeeded or failed."""
        return self.status.phase in FINISHED_PHASES

    @property
    def requests(self) -> dict[str, int]:
        """The resources the pod needs on a node: cpu in milli, others in whole units, no zeros."""
        return self.spec.requests

    @property
    def scoring_requests(self) -> dict[str, int]:
        """The requests with which NodeResourcesFit scores a pending pod."""
        return self.spec.scoring_requests

    @property
    def balanced_requests(self) -> dict[str, int]:
        """The requests with which NodeResourcesBalancedAllocation scores a pending pod."""
        return self.spec.usage_with(self.status)[0] if self.counts_claims else self.usage

    @property
    def usage(self) -> dict[str, int]:
        """The resources the pod takes from its node, including a pending resize."""
        if self.status is EMPTY_STATUS or not self.status.has_resources:
            return self.spec.requests
        return self._usages()[0]

    @property
    def nonzero_usage(self) -> dict[str, int]:
        """cpu (milli) and memory that scoring counts for the pod on its node."""
        if not self.status.has_resources:
            return self.spec.nonzero_requests
        return self._usages()[1]

    @property
    def scoring_usage(self) -> dict[str, int]:
        """`usage`, with cpu and memory as in `nonzero_usage`."""
        if self.status is EMPTY_STATUS or not self.status.has_resources:
            return self.spec.scoring_usage
        return {**self.usage, **self.nonzero_usage}

    def with_node(self, name: str) -> "Pod":
        """This pod on the node called `name`; on no node if that is empty."""
        return replace(self, node_name=name)

    def bound(self, node_name: str, status: PodStatus, resource_version: str) -> "Pod":
        """This pod after it was bound to a node."""
        if status is self.status:
            return replace(self, node_name=node_name, resource_version=resource_version)
        return replace(
            self,
            node_name=node_name,
            status=status,
            resource_version=resource_version,
            _usage=None,
        )

    def with_status(self, status: PodStatus) -> "Pod":
        """This pod with another status."""
        return replace(self, status=status, _usage=None)

    def with_class_spec(self) -> "Pod":
        """This pod with the spec of its class: without the pinned node and the names of claims."""
        return replace(self, spec=self.pod_class.spec, _usage=None)

    def with_spec(self, spec: PodSpec) -> "Pod":
        """This pod with another spec."""
        return self.with_shared_spec(intern_spec(spec))

    def with_shared_spec(self, spec: PodSpec) -> "Pod":
        """This pod with an interned spec."""
        return replace(self, spec=spec, _class=None, _usage=None)

    def replace(self, **changes: Any) -> "Pod":
        """A copy of this pod with some fields changed."""
        if not _CLASS_FIELDS.isdisjoint(changes):
            changes["_class"] = None
        if "spec" in changes or "status" in changes:
            changes["_usage"] = None
        return replace(self, **changes)

    def _usages(self) -> tuple[dict[str, int], dict[str, int]]:
        if self._usage is None:
            self._usage = self.spec.usage_with(self.status, self.counts_claims)
        return self._usage

    def __repr__(self) -> str:
        place = f" on {self.node_name}" if self.node_name else ""
        return f"<Pod {self.key}{place}>"


_CLASS_FIELDS = frozenset({"spec", "namespace", "labels", "owner_references"})


def classes_of(pods: Iterable[Pod]) -> list[PodClass]:
    """The class of each of many pods, which have specs, labels and owners in common: less work than pod by pod."""
    known: dict[tuple[int, str, int, int], PodClass] = {}
    classes = []
    for pod in pods:
        found = pod._class
        if found is None:
            key = id(pod.spec), pod.namespace, id(pod.labels), id(pod.owner_references)
            found = known.get(key)
            if found is None:
                found = known[key] = pod.pod_class
            pod._class = found
        classes.append(found)
    return classes


__all__ = [
    "DO_NOT_SCHEDULE",
    "EMPTY_SPEC",
    "EMPTY_STATUS",
    "SCHEDULE_ANYWAY",
    "Affinity",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "HostPort",
    "NodeAffinity",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodClass",
    "PodCondition",
    "PodResourceClaim",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "ResourceRequirements",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
    "classes_of",
    "intern_spec",
]
