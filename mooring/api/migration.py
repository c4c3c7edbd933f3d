"""Migration: which CSI driver has taken over an in-tree kind of volume.

Mirrors staging/src/k8s.io/csi-translation-lib (translate.go and plugins/).
"""

import re

from ..errors import InputError
from .volumes import Volume

GCE_PD_DRIVER = "pd.csi.storage.gke.io"
AWS_EBS_DRIVER = "ebs.csi.aws.com"
CINDER_DRIVER = "cinder.csi.openstack.org"
AZURE_DISK_DRIVER = "disk.csi.azure.com"
AZURE_FILE_DRIVER = "file.csi.azure.com"
VSPHERE_DRIVER = "csi.vsphere.vmware.com"
PORTWORX_DRIVER = "pxd.portworx.com"

AWS_SCHEME = "aws://"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


def inline_csi_driver(volume: Volume) -> str | None:
    """The driver that serves a volume written into a pod; None when no driver has taken it over.

    Raises InputError when the volume cannot be handed to its driver.
    """
    if volume.aws_elastic_block_store is not None:
        _check_ebs_volume(volume.aws_elastic_block_store.volume_id)
        return AWS_EBS_DRIVER
    for source, driver in (
        (volume.gce_persistent_disk, GCE_PD_DRIVER),
        (volume.cinder, CINDER_DRIVER),
        (volume.azure_disk, AZURE_DISK_DRIVER),
        (volume.azure_file, AZURE_FILE_DRIVER),
        (volume.vsphere_volume, VSPHERE_DRIVER),
        (volume.portworx_volume, PORTWORX_DRIVER),
    ):
        if source is not None:
            return driver
    return None


def is_inline_migrated(volume: Volume) -> bool:
    """Whether a driver has taken over volumes of this kind."""
    return volume.aws_elastic_block_store is not None or inline_csi_driver(volume) is not None


def _check_ebs_volume(volume_id: str) -> None:
    """Refuse `aws://zone/vol-1` when its last part is no volume; a bare id is not looked at."""
    if not volume_id.startswith(AWS_SCHEME):
        return
    path = volume_id.removeprefix(AWS_SCHEME).partition("/")[2]
    name = re.split(r"[?#]", path, maxsplit=1)[0].strip("/")
    if not _AWS_VOLUME.fullmatch(name):
        raise InputError(f'volumeID: expected aws://zone/vol-...; got "{volume_id}"')
