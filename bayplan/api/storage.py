"""Storage: persistent volumes, claims, classes and the CSI objects.

Mirrors k8s.io/api/core/v1/types.go (volumes, claims) and k8s.io/api/storage/v1/types.go.
"""

from functools import cached_property
from typing import Any, ClassVar, TypeVar

from msgspec import field
from msgspec.structs import replace

from .meta import KubeObject, Wire, controller_of
from .pod import Pod
from .selectors import LabelSelector, NodeSelector
from .text.quantity import Quantity, parse_value
from .volumes import CommonSources, PersistentVolumeClaimSpec, claim_name_of

STORAGE_V1 = "storage.k8s.io/v1"
FILESYSTEM = "Filesystem"
BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""On a claim: the volume controller has completed the binding."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume: a controller, not a user, bound it to its claim."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node for which its volume is provisioned."""
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""On a CSINode: the migrated in-tree volume kinds, joined by commas."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
AVAILABLE = "Available"
LOST = "Lost"


class ObjectReference(Wire, frozen=True):
    """Reference to any object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def to(cls, obj: Any) -> "ObjectReference":
        """The reference to an object in its present version."""
        version = obj.resource_version
        return cls(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid, version)


class CSIPersistentVolume(Wire, frozen=True):
    """A volume behind a CSI driver."""

    driver: str = ""
    volume_handle: str = ""
    fs_type: str = ""
    read_only: bool = False


class PathVolume(Wire, frozen=True):
    """A volume that is a path on the node: hostPath or local."""

    path: str = ""


class NFSVolume(Wire, frozen=True):
    """A volume on an NFS server."""

    server: str = ""
    path: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(CommonSources, frozen=True):
    """The `spec` of a persistent volume."""

    capacity: dict[str, Quantity] | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolume | None = None
    local: PathVolume | None = None
    host_path: PathVolume | None = None
    nfs: NFSVolume | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    """The status of a persistent volume: Pending, Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(KubeObject, frozen=True, dict=True, gc=True):
    """A piece of storage in the cluster."""

    kind: ClassVar[str] = "PersistentVolume"
    is_namespaced: ClassVar[bool] = False

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @cached_property
    def capacity_bytes(self) -> int:
        return parse_value((self.spec.capacity or {}).get("storage"))

    @property
    def volume_mode(self) -> str:
        return self.spec.volume_mode or FILESYSTEM

    @property
    def storage_class_name(self) -> str:
        """The class; the old beta annotation wins over the field."""
        return self.annotations.get(BETA_CLASS_ANNOTATION, self.spec.storage_class_name)

    def is_bound_to(self, claim: "PersistentVolumeClaim") -> bool:
        """Whether the volume is reserved for `claim`, by a user (then possibly without a uid) or not."""
        kept_for = self.spec.claim_ref
        return (
            kept_for is not None
            and (kept_for.namespace, kept_for.name) == (claim.namespace, claim.name)
            and kept_for.uid in ("", claim.uid)
        )

    def bound_to(self, claim: "PersistentVolumeClaim") -> "PersistentVolume":
        """The volume, bound to `claim`; the same object when it already was."""
        volume, kept_for = self, self.spec.claim_ref
        wanted = (claim.namespace, claim.name, claim.uid)
        if kept_for is None or (kept_for.namespace, kept_for.name, kept_for.uid) != wanted:
            volume = replace(volume, spec=replace(self.spec, claim_ref=claim.reference))
        if not self.is_bound_to(claim) and BOUND_BY_CONTROLLER not in self.annotations:
            volume = with_annotation(volume, BOUND_BY_CONTROLLER, "yes")
        return volume


class PersistentVolumeClaimStatus(Wire, frozen=True):
    """The status of a claim: Pending, Bound or Lost, and its capacity."""

    phase: str = ""
    capacity: dict[str, Quantity] | None = None
    access_modes: tuple[str, ...] | None = None


class PersistentVolumeClaim(KubeObject, frozen=True, dict=True, gc=True):
    """A request for storage."""

    kind: ClassVar[str] = "PersistentVolumeClaim"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def requests(self) -> dict[str, Quantity]:
        """The requests; only `storage` is used."""
        return (self.spec.resources.requests or {}) if self.spec.resources else {}

    @cached_property
    def requested_bytes(self) -> int:
        return parse_value(self.requests.get("storage"))

    @property
    def volume_mode(self) -> str:
        return self.spec.volume_mode or FILESYSTEM

    @property
    def storage_class_name(self) -> str:
        """The class, empty when there is none; the old beta annotation wins over the field."""
        return self.annotations.get(BETA_CLASS_ANNOTATION, self.spec.storage_class_name or "")

    @property
    def is_fully_bound(self) -> bool:
        """Whether it has a volume and the volume controller completed the binding."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.annotations

    @property
    def is_for_one_pod(self) -> bool:
        """Whether only one pod at a time may use it."""
        return READ_WRITE_ONCE_POD in (self.spec.access_modes or ())

    @property
    def reference(self) -> ObjectReference:
        """A reference to this claim."""
        return ObjectReference.to(self)

    def is_made_for(self, pod: Pod) -> bool:
        """Whether it was created for an ephemeral volume of `pod`."""
        owner = controller_of(self.owner_references)
        return self.namespace == pod.namespace and owner is not None and owner.uid == pod.uid

    def is_used_by(self, pod: Pod, named_only: bool = False) -> bool:
        """Whether a volume of `pod` is this claim; with `named_only`, one that is not ephemeral."""
        return self.namespace == pod.namespace and any(
            claim_name_of(volume, pod.name) == self.name
            for volume in pod.spec.volumes or ()
            if volume.persistent_volume_claim is not None or not named_only
        )


class TopologySelectorRequirement(Wire, frozen=True):
    """The values that the label `key` may have."""

    key: str = ""
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Wire, frozen=True):
    """Label values, all of which must match."""

    match_label_expressions: tuple[TopologySelectorRequirement, ...] | None = None


class StorageClass(KubeObject, frozen=True):
    """A class of storage, and how to provision it."""

    kind: ClassVar[str] = "StorageClass"
    api_version: ClassVar[str] = STORAGE_V1
    is_namespaced: ClassVar[bool] = False

    provisioner: str = ""
    parameters: dict[str, str] | None = None
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None
    allow_volume_expansion: bool | None = None

    @property
    def waits_for_consumer(self) -> bool:
        """Whether a claim is bound only once its pod has a node."""
        return self.volume_binding_mode == "WaitForFirstConsumer"


class CSINodeAllocatable(Wire, frozen=True):
    """The number of volumes of a driver that a node can attach."""

    count: int | None = None


class CSINodeDriver(Wire, frozen=True):
    """A driver installed on a node."""

    name: str = ""
    node_id: str = field(name="nodeID", default="")
    topology_keys: tuple[str, ...] | None = None
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Wire, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(KubeObject, frozen=True):
    """The CSI drivers installed on the node of the same name."""

    kind: ClassVar[str] = "CSINode"
    api_version: ClassVar[str] = STORAGE_V1
    is_namespaced: ClassVar[bool] = False

    spec: CSINodeSpec = CSINodeSpec()

    @property
    def drivers(self) -> tuple[CSINodeDriver, ...]:
        return self.spec.drivers or ()

    @property
    def limits(self) -> dict[str, int]:
        """The attach limit of each driver that has one."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """The in-tree volume kinds migrated on this node."""
        return frozenset(filter(None, self.annotations.get(MIGRATED_PLUGINS, "").split(",")))


class CSIDriverSpec(Wire, frozen=True):
    """Requirements and capabilities of a driver."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] | None = None


class CSIDriver(KubeObject, frozen=True):
    """A registered CSI driver."""

    kind: ClassVar[str] = "CSIDriver"
    api_version: ClassVar[str] = STORAGE_V1
    is_namespaced: ClassVar[bool] = False

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True, dict=True, gc=True):
    """A driver's free capacity for a class within a topology."""

    kind: ClassVar[str] = "CSIStorageCapacity"
    api_version: ClassVar[str] = STORAGE_V1

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity = None
    maximum_volume_size: Quantity = None

    @cached_property
    def limit_bytes(self) -> int | None:
        """The largest possible volume: the maximum size, else the capacity, else unknown."""
        if self.maximum_volume_size is not None:
            return parse_value(self.maximum_volume_size)
        return None if self.capacity is None else parse_value(self.capacity)


class VolumeAttachmentSource(Wire, frozen=True):
    """The volume to attach."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    """The attacher, volume and node of an attachment."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Wire, frozen=True):
    """Whether the volume is attached."""

    attached: bool = False


class VolumeAttachment(KubeObject, frozen=True):
    """A volume attached, or to be attached, to a node."""

    kind: ClassVar[str] = "VolumeAttachment"
    api_version: ClassVar[str] = STORAGE_V1
    is_namespaced: ClassVar[bool] = False

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


AnyObject = TypeVar("AnyObject", bound=KubeObject)


def with_annotation(obj: AnyObject, key: str, value: str) -> AnyObject:
    """The object with an annotation set."""
    annotations = {**obj.annotations, key: value}
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


def not_found(kind: str, name: str) -> str:
    """The API server's message for an object that does not exist."""
    group = ".storage.k8s.io" if kind == "StorageClass" else ""
    return f'{kind.lower()}{group} "{name}" not found'
