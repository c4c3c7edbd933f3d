"""Migration: the CSI driver that replaces an in-tree volume kind, and the volume's handle there.

Mirrors staging/src/k8s.io/csi-translation-lib (translate.go and plugins/).
"""

import re

import msgspec
from msgspec.structs import replace

from ..errors import InputError
from .node import BETA_REGION, BETA_ZONE, REGION, ZONE
from .selectors import NodeSelector, NodeSelectorTerm, Requirement
from .storage import PersistentVolume, PersistentVolumeSpec
from .volumes import Volume

GCE_PD_DRIVER = "pd.csi.storage.gke.io"
AWS_EBS_DRIVER = "ebs.csi.aws.com"
CINDER_DRIVER = "cinder.csi.openstack.org"
AZURE_DISK_DRIVER = "disk.csi.azure.com"
AZURE_FILE_DRIVER = "file.csi.azure.com"
VSPHERE_DRIVER = "csi.vsphere.vmware.com"
PORTWORX_DRIVER = "pxd.portworx.com"

GCE_PD = "kubernetes.io/gce-pd"
AWS_EBS = "kubernetes.io/aws-ebs"
CINDER = "kubernetes.io/cinder"
AZURE_DISK = "kubernetes.io/azure-disk"
AZURE_FILE = "kubernetes.io/azure-file"
VSPHERE = "kubernetes.io/vsphere-volume"
PORTWORX = "kubernetes.io/portworx-volume"

AWS_SCHEME = "aws://"
ZONE_SEPARATOR = "__"
"""Separates the zones of a volume that is in several."""
UNSPECIFIED = "UNSPECIFIED"
MANAGED = "managed"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


class InTreePlugin(msgspec.Struct, frozen=True):
    """An in-tree kind of volume.

    `field` is the name of its source in a volume, in a pod as well as in a PersistentVolume.
    `is_switched_over` is true if the scheduler treats it as the driver's; two kinds are not
    migrated. `topology_key` is the label that replaces the zone in the volumes' node affinity; None
    leaves the affinity unchanged.
    """

    name: str
    driver: str
    field: str
    is_switched_over: bool = True
    topology_key: str | None = None


PLUGINS = (
    InTreePlugin(GCE_PD, GCE_PD_DRIVER, "gce_persistent_disk", topology_key="topology.gke.io/zone"),
    InTreePlugin(
        AWS_EBS,
        AWS_EBS_DRIVER,
        "aws_elastic_block_store",
        topology_key="topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        CINDER, CINDER_DRIVER, "cinder", topology_key="topology.cinder.csi.openstack.org/zone"
    ),
    InTreePlugin(AZURE_DISK, AZURE_DISK_DRIVER, "azure_disk"),
    InTreePlugin(PORTWORX, PORTWORX_DRIVER, "portworx_volume"),
    InTreePlugin(AZURE_FILE, AZURE_FILE_DRIVER, "azure_file", is_switched_over=False),
    InTreePlugin(VSPHERE, VSPHERE_DRIVER, "vsphere_volume", is_switched_over=False),
)
PLUGIN_NAMED = {plugin.name: plugin for plugin in PLUGINS}


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree kind of an inline or persistent volume; None when it is not migrated."""
    for plugin in PLUGINS:
        if getattr(source, plugin.field) is not None:
            return plugin
    return None


def inline_csi_driver(volume: Volume) -> str | None:
    """The driver of an inline volume; None when it is not migrated.

    Raises InputError when an AWS volume cannot be translated.
    """
    plugin = in_tree_plugin(volume)
    if plugin is None:
        return None
    if volume.aws_elastic_block_store is not None:
        ebs_volume_id(volume.aws_elastic_block_store.volume_id)
    return plugin.driver


def is_inline_migrated(volume: Volume) -> bool:
    """Whether volumes of this kind are migrated to a driver."""
    return in_tree_plugin(volume) is not None


def inline_handle(volume: Volume) -> str:
    """The driver's handle of an inline volume; raises InputError when it cannot be translated."""
    if volume.gce_persistent_disk is not None:
        return _gce_handle("zones", UNSPECIFIED, volume.gce_persistent_disk.pd_name)
    return _handle(volume)


def volume_handle(volume: PersistentVolume) -> str:
    """The driver's handle of an in-tree volume; raises InputError when it cannot be translated."""
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _handle(volume.spec)
    zones = (volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, "")).split(ZONE_SEPARATOR)
    if len(zones) > 1:
        return _gce_handle("regions", _gce_region(zones), disk.pd_name)
    return _gce_handle("zones", zones[0] or UNSPECIFIED, disk.pd_name)


def _handle(source: Volume | PersistentVolumeSpec) -> str:
    if source.aws_elastic_block_store is not None:
        return ebs_volume_id(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        disk = source.azure_disk
        if disk.kind is not None and disk.kind.lower() != MANAGED:
            raise InputError(f'azureDisk.kind: expected Managed; got "{disk.kind}"')
        return disk.disk_uri
    volume = source.cinder or source.portworx_volume
    assert volume is not None, "only migrated kinds have a handle"
    return volume.volume_id


def _gce_handle(area: str, name: str, disk: str) -> str:
    return f"projects/{UNSPECIFIED}/{area}/{name}/disks/{disk}"


def _gce_region(zones: list[str]) -> str:
    """The region that all `zones` are in; a zone is called `place-region-letter`."""
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:2]) for part in parts}
    if len(regions) != 1 or any(len(part) != 3 for part in parts):
        raise InputError(f"zones: expected zones of one region; got {', '.join(zones)}")
    return regions.pop()


def ebs_volume_id(text: str) -> str:
    """The id in `aws://zone/vol-1`; a bare id is not checked. Raises InputError when there is none."""
    if not text.startswith(AWS_SCHEME):
        return text
    path = text.removeprefix(AWS_SCHEME).partition("/")[2]
    name = re.split(r"[?#]", path, maxsplit=1)[0].strip("/")
    if not _AWS_VOLUME.fullmatch(name):
        raise InputError(f'volumeID: expected aws://zone/vol-...; got "{text}"')
    return name


def migrated_node_selector(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    """The node affinity of an in-tree volume with the driver's zone label.

    The zones are those of the volume's own node affinity, else those in its labels.
    """
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    if plugin.topology_key is None:
        return required
    terms = required.terms if required else ()
    zone, region = _zone_labels(volume, terms)
    if _has_values(terms, zone):
        terms = _renamed(terms, zone, plugin.topology_key)
    elif zone in volume.labels:
        zones = {name.strip() for name in volume.labels[zone].split(ZONE_SEPARATOR)} - {""}
        if zones:
            terms = _narrowed(terms, plugin.topology_key, zones)
    if region == BETA_REGION and _has_values(terms, region):
        terms = _renamed(terms, region, REGION)
    if required is None and not terms:
        return None
    return NodeSelector(node_selector_terms=terms)


Terms = tuple[NodeSelectorTerm, ...]


def _zone_labels(volume: PersistentVolume, terms: Terms) -> tuple[str, str]:
    """The zone and region labels in use: labels of the affinity before labels of the volume, new before old."""
    keys = {requirement.key for term in terms for requirement in term.expressions}
    for known in (keys, volume.labels):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _has_values(terms: Terms, key: str) -> bool:
    return any(r.key == key and bool(r.values) for term in terms for r in term.expressions)


def _renamed(terms: Terms, key: str, new_key: str) -> Terms:
    def rename(requirement: Requirement) -> Requirement:
        return replace(requirement, key=new_key) if requirement.key == key else requirement

    return tuple(
        NodeSelectorTerm(
            match_expressions=tuple(rename(r) for r in term.expressions),
            match_fields=term.match_fields,
        )
        for term in terms
    )


def _narrowed(terms: Terms, key: str, values: set[str]) -> Terms:
    """Every term with one more condition; a single term with that condition when there were none."""
    added = Requirement(key=key, operator="In", values=tuple(sorted(values)))
    return tuple(
        NodeSelectorTerm(
            match_expressions=(*term.expressions, added), match_fields=term.match_fields
        )
        for term in terms or (NodeSelectorTerm(),)
    )
