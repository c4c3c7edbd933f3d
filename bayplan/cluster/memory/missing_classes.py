"""Missing classes: unbound claims that name a StorageClass which does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...api.pod import Pod
from ...api.storage import PersistentVolumeClaim
from ...api.volumes import claim_name_of
from ..objects import ControllerCluster

SHOWN = 3


def missing_classes(cluster: ControllerCluster, pods: Iterable[Pod]) -> Iterator[str]:
    """A line for each class that claims of `pods` name and that does not exist.

    A class without a provisioner need not exist where volumes have it, so a claim that some volume could serve is
    left out.
    """
    volumes = {volume.storage_class_name for volume in cluster.list("PersistentVolume")}
    found: dict[str, dict[str, None]] = {}
    for pod in pods:
        for volume in pod.spec.volumes or ():
            name = claim_name_of(volume, pod.name)
            claim = cluster.get(PersistentVolumeClaim.kind, pod.namespace, name) if name else None
            if claim is None or claim.spec.volume_name:
                continue
            wanted = claim.storage_class_name
            if wanted and wanted not in volumes and not cluster.get("StorageClass", "", wanted):
                found.setdefault(wanted, {})[claim.key] = None
    for name, keys in found.items():
        claims = list(keys)
        more = f" and {len(claims) - SHOWN:,} more" if len(claims) > SHOWN else ""
        noun = "claim" if len(claims) == 1 else "claims"
        named = "names" if len(claims) == 1 else "name"
        listed = ", ".join(claims[:SHOWN])
        yield f'StorageClass "{name}" does not exist; {noun} {listed}{more} {named} it'
