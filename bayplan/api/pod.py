"""Pod: one pod, flat and immutable, with a spec shared between equal pods.

Mirrors Pod of k8s.io/api/core/v1/types.go. The parts of a pod live in their own modules and are
re-exported here.
"""

from typing import Any
from weakref import WeakValueDictionary

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
    """Class of pods that differ only in name, annotations, status and pinned node; one object per class.

    `spec` is the spec without the pinned node.
    """

    __slots__ = ("__weakref__", "labels", "namespace", "owner_references", "spec")

    def __init__(self, pod: "Pod") -> None:
        self.spec = pod.spec.unpinned or pod.spec
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.owner_references = pod.owner_references


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


class Pod:
    """A pod. Never changed in place: `with_node`, `with_status` and `replace` make copies."""

    __slots__ = (
        "_class",
        "_usage",
        "annotations",
        "creation_timestamp",
        "deletion_timestamp",
        "generate_name",
        "generation",
        "labels",
        "name",
        "namespace",
        "node_name",
        "owner_references",
        "resource_version",
        "spec",
        "status",
        "uid",
    )

    kind = "Pod"
    api_version = "v1"

    def __init__(
        self,
        name: str,
        namespace: str = "default",
        *,
        uid: str = "",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        owner_references: tuple[OwnerReference, ...] = (),
        creation_timestamp: str | None = None,
        deletion_timestamp: str | None = None,
        resource_version: str = "",
        generation: int = 0,
        generate_name: str = "",
        node_name: str = "",
        spec: PodSpec = EMPTY_SPEC,
        status: PodStatus = EMPTY_STATUS,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.uid = uid
        self.labels: dict[str, str] = NO_STRINGS if labels is None else labels
        self.annotations: dict[str, str] = NO_STRINGS if annotations is None else annotations
        self.owner_references = owner_references
        self.creation_timestamp = creation_timestamp
        self.deletion_timestamp = deletion_timestamp
        self.resource_version = resource_version
        self.generation = generation
        self.generate_name = generate_name
        self.node_name = node_name
        self.spec = spec
        self.status = status
        self._usage: tuple[dict[str, int], dict[str, int]] | None = None
        self._class: PodClass | None = None

    @property
    def pod_class(self) -> PodClass:
        """The class of this pod: equal spec (without the pinned node), namespace, labels and owners."""
        found = self._class
        if found is None:
            labels = _items_of(self.labels)  # another order gives another class, which is harmless
            spec = self.spec.unpinned or self.spec
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
        return self.usage

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
        """This pod on the node called `name`; empty: on no node."""
        copy = self._copy()
        copy.node_name = name
        return copy

    def _copy(self) -> "Pod":
        """A copy of this pod, without a detour over a dict, since every scheduled pod is copied a few times."""
        copy = Pod.__new__(Pod)
        copy.name = self.name
        copy.namespace = self.namespace
        copy.uid = self.uid
        copy.labels = self.labels
        copy.annotations = self.annotations
        copy.owner_references = self.owner_references
        copy.creation_timestamp = self.creation_timestamp
        copy.deletion_timestamp = self.deletion_timestamp
        copy.resource_version = self.resource_version
        copy.generation = self.generation
        copy.generate_name = self.generate_name
        copy.node_name = self.node_name
        copy.spec = self.spec
        copy.status = self.status
        copy._usage = self._usage
        copy._class = self._class
        return copy

    def bound(self, node_name: str, status: PodStatus, resource_version: str) -> "Pod":
        """This pod after it was bound to a node."""
        copy = self._copy()
        copy.node_name = node_name
        copy.resource_version = resource_version
        if status is not self.status:
            copy.status = status
            copy._usage = None
        return copy

    def with_status(self, status: PodStatus) -> "Pod":
        """This pod with another status."""
        copy = self._copy()
        copy.status = status
        copy._usage = None
        return copy

    def with_spec(self, spec: PodSpec) -> "Pod":
        """This pod with another spec."""
        return self.replace(spec=intern_spec(spec))

    def replace(self, **changes: Any) -> "Pod":
        """A copy of this pod with some fields changed."""
        copy = self._copy()
        for name, value in changes.items():
            if name not in _FIELDS:
                raise TypeError(f"a pod has no field {name!r}")
            setattr(copy, name, value)
            if name in _CLASS_FIELDS:
                copy._class = None
        if "spec" in changes or "status" in changes:
            copy._usage = None
        return copy

    def _usages(self) -> tuple[dict[str, int], dict[str, int]]:
        if self._usage is None:
            self._usage = self.spec.usage_with(self.status)
        return self._usage

    def __repr__(self) -> str:
        place = f" on {self.node_name}" if self.node_name else ""
        return f"<Pod {self.key}{place}>"


_FIELDS = frozenset(name for name in Pod.__slots__ if not name.startswith("_"))
_CLASS_FIELDS = frozenset({"spec", "namespace", "labels", "owner_references"})

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
    "intern_spec",
]
