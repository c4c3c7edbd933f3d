"""Pods with claims, and checks of their volumes."""

from typing import Any

from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolumeClaim
from bayplan.cluster.memory.admission import admit_storage
from bayplan.errors import ConflictError
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.storage import claim_volume, make_storage_class
from tests.rig.scenarios_storage import StorageScenario as Life

DRIVER = "disk.example.com"


def check(life: Life) -> None:
    """Check that nothing is reserved without a pod, and that volumes and claims are paired."""
    assert life.scheduler is not None
    (profile,) = life.scheduler.profiles.values()
    plugin = profile.plugins["VolumeBinding"]
    assert isinstance(plugin, VolumeBinding)
    kept = plugin._current_facts()
    for claim in life.claims():
        if "assumed" not in users(life, claim):
            assert kept.claims.get(claim.namespace, claim.name) is claim
        if claim.is_fully_bound and claim.status.phase != "Lost":
            assert life.volume(claim.spec.volume_name).is_bound_to(claim)
    for volume in life.cluster.list("PersistentVolume"):
        reference = volume.spec.claim_ref
        if reference is None:
            assert kept.volumes.get("", volume.name) is volume
        elif volume.status.phase != "Released":
            assert life.claim(reference.name).spec.volume_name == volume.name
    life.check_pairs()


def users(life: Life, claim: PersistentVolumeClaim) -> list[str]:
    """The nodes of the pods that use the claim."""
    pods = [pod for pod in life.cluster.list("Pod") if claim.name in claim_names(pod)]
    return [place for pod in pods for place in life.place(pod.name)]


def claim_names(pod: Pod) -> list[str]:
    sources = [volume.persistent_volume_claim for volume in pod.spec.volumes or ()]
    return [source.claim_name for source in sources if source is not None]


def make_class(name: str = "late", waits: bool = True, **notes: str) -> Any:
    made = make_storage_class(name, provisioner=DRIVER, waits=waits)
    said = {f"bayplan.dev/provision-{key.replace('_', '-')}": v for key, v in notes.items()}
    return admit_storage(replace(made, metadata=replace(made.metadata, annotations=said)))


def uses(*claims: str, name: str = "pod", **fields: Any) -> Pod:
    return make_pod(name, cpu="1", spec={"volumes": [claim_volume(c) for c in claims]}, **fields)


def zones(cpu: str = "4") -> list[Any]:
    return [make_node("n-a", zone="a", cpu=cpu), make_node("n-b", zone="b", cpu=cpu)]


def conflict(obj: Any) -> None:
    raise ConflictError(f"the object {obj.name} has been modified")
