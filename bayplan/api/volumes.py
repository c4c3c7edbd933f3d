"""Volumes: the volumes of a pod that affect placement, and scratch space, which a drain deletes.

Mirrors Volume and VolumeSource of k8s.io/api/core/v1/types.go. Every other source (config maps,
tokens) decodes to a volume without a source; see `is_relevant`.
"""

from msgspec import field

from .containers import ResourceRequirements
from .meta import EMPTY_META, ObjectMeta, Wire
from .selectors import LabelSelector


class PersistentVolumeClaimVolume(Wire, frozen=True):
    """Uses a claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class TypedLocalObjectReference(Wire, frozen=True):
    """Reference to an object in the same namespace, or in the named one."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True):
    """The `spec` of a claim."""

    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedLocalObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Wire, frozen=True):
    """The claim to make for an ephemeral volume."""

    metadata: ObjectMeta = EMPTY_META
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolume(Wire, frozen=True):
    """A claim made for the pod, named after the pod and the volume."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDisk(Wire, frozen=True):
    """A Google persistent disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStore(Wire, frozen=True):
    """An AWS block store volume."""

    volume_id: str = field(name="volumeID", default="")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AzureDisk(Wire, frozen=True):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = field(name="diskURI", default="")
    kind: str | None = None
    read_only: bool | None = None


class AzureFile(Wire, frozen=True):
    """An Azure file share."""

    secret_name: str = ""
    share_name: str = ""
    secret_namespace: str | None = None
    read_only: bool = False


class Cinder(Wire, frozen=True):
    """An OpenStack Cinder volume."""

    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class Portworx(Wire, frozen=True):
    """A Portworx volume."""

    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class VsphereVolume(Wire, frozen=True):
    """A vSphere disk."""

    volume_path: str = ""


class RBD(Wire, frozen=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSI(Wire, frozen=True):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class CSIVolume(Wire, frozen=True):
    """An ephemeral volume made inline by a CSI driver."""

    driver: str = ""


class ImageVolume(Wire, frozen=True):
    """The content of an image, mounted as a volume."""

    reference: str = ""


class EmptyDirVolume(Wire, frozen=True):
    """Scratch space on the node, deleted with the pod."""

    medium: str = ""
    """`Memory` for a file system in memory."""


class CommonSources(Wire, frozen=True):
    """The sources that volumes of pods and persistent volumes have in common."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    vsphere_volume: VsphereVolume | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None


class Volume(CommonSources, frozen=True):
    """A volume of a pod; at most one source is set."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CSIVolume | None = None
    image: ImageVolume | None = None
    empty_dir: EmptyDirVolume | None = None

    @property
    def is_relevant(self) -> bool:
        """Whether the volume can affect placement."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir)


def claim_name_of(volume: Volume, pod_name: str) -> str | None:
    """The name of the claim a pod's volume uses, or None when it uses none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod_name}-{volume.name}"
    return None
