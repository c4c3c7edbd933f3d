"""The volume controller provisions volumes: topology, delays, failures, capacity."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.api.storage import (
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
)
from bayplan.cluster.memory.admission import admit_storage
from bayplan.cluster.memory.provisioners import Provisioning, parse_failures, provisioning_problems
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.testing.storage import make_capacity, make_claim, make_csi_driver, make_storage_class
from tests.cluster.memory.volume_bench import DRIVER, Storage
from tests.rig.objects import stored

ZONE = "topology.kubernetes.io/zone"


def now_class(**fields: Any) -> Any:
    return make_storage_class("now", provisioner=DRIVER, waits=False, **fields)


def late_class(**annotations: str) -> Any:
    made = make_storage_class("late", provisioner=DRIVER)
    notes = {f"bayplan.dev/provision-{key.replace('_', '-')}": v for key, v in annotations.items()}
    return admit_storage(replace(made, metadata=replace(made.metadata, annotations=notes)))


def zoned(name: str, zone: str, **labels: str) -> Any:
    return make_node(name, labels={ZONE: zone, "kubernetes.io/hostname": name, **labels})


def reach(volume: PersistentVolume) -> dict[str, tuple[str, ...]]:
    affinity = volume.spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    (term,) = affinity.required.terms
    return {one.key: one.values or () for one in term.expressions}


# Provisioning


def test_an_immediate_claim_gets_a_new_volume_at_once() -> None:
    storage = Storage(zoned("n", "a"), now_class(), make_claim(class_name="now", size="3Gi"))

    claim, volume = storage.claim(), storage.made()
    assert claim.is_fully_bound
    assert volume.name == f"pvc-{claim.uid}"
    assert volume.spec.capacity == {"storage": "3Gi"}
    assert volume.spec.persistent_volume_reclaim_policy == "Delete"
    assert volume.annotations["pv.kubernetes.io/provisioned-by"] == DRIVER
    assert volume.spec.csi is not None
    assert volume.spec.csi.driver == DRIVER
    assert reach(volume) == {ZONE: ("a",)}


def test_a_wait_for_first_consumer_claim_is_provisioned_for_its_pods_node_after_the_delay() -> None:
    storage = Storage(zoned("n", "a"), zoned("m", "b"), late_class(delay="5s"), make_claim())
    storage.select("m")

    storage.advance(4.999)
    assert not storage.claim().spec.volume_name
    storage.advance(0.001)
    assert reach(storage.made()) == {ZONE: ("b",)}
    assert storage.claim().annotations["volume.kubernetes.io/storage-provisioner"] == DRIVER


def test_the_driver_sets_the_topology_keys() -> None:
    keys = ["kubernetes.io/hostname", "rack"]
    drivers = [{"name": DRIVER, "nodeID": "n", "topologyKeys": keys}]
    csi_node = make_object("CSINode", "n", spec={"drivers": drivers})
    storage = Storage(zoned("n", "a", rack="7"), csi_node, late_class(), make_claim())

    storage.select("n")

    assert reach(storage.made()) == {"kubernetes.io/hostname": ("n",), "rack": ("7",)}


@pytest.mark.parametrize(
    ("driver", "keys"),
    [
        ("ebs.csi.aws.com", {ZONE: ("a",)}),
        ("pd.csi.storage.gke.io", {ZONE: ("a",)}),
        ("nfs.csi.k8s.io", None),
        ("smb.csi.k8s.io", None),
        ("efs.csi.aws.com", None),
        ("file.csi.azure.com", None),
        ("rook-ceph.rbd.csi.ceph.com", None),
        ("driver.longhorn.io", None),
        ("rancher.io/local-path", {"kubernetes.io/hostname": ("n",)}),
    ],
)
def test_the_nodes_that_reach_a_volume_follow_from_the_driver(driver: str, keys: Any) -> None:
    made = make_storage_class("now", waits=False, provisioner=driver)
    storage = Storage(zoned("n", "a"), made, make_claim(class_name="now"))

    affinity = storage.made().spec.node_affinity

    assert (reach(storage.made()) if affinity else None) == keys


def test_a_driver_that_needs_no_attachment_or_has_no_topology_is_reachable_from_everywhere() -> (
    None
):
    without = make_csi_driver(DRIVER, attachRequired=False)
    node = make_object("CSINode", "n", spec={"drivers": [{"name": DRIVER, "nodeID": "n"}]})

    for obj in (without, node):
        storage = Storage(zoned("n", "a"), obj, now_class(), make_claim(class_name="now"))
        assert storage.made().spec.node_affinity is None


def test_claims_of_one_set_spread_over_the_allowed_zones() -> None:
    nodes = [zoned(name, name) for name in "abcd"]
    allowed = now_class(topologies=[{ZONE: ["a", "b", "c"]}])
    claims = [make_claim(f"data-db-{i}", class_name="now") for i in range(3)]
    storage = Storage(*nodes, allowed, *claims)

    zones = {reach(storage.made(claim.name))[ZONE] for claim in claims}

    assert zones == {("a",), ("b",), ("c",)}


def test_a_failure_returns_the_claim_to_the_scheduler() -> None:
    storage = Storage(zoned("n", "a"), late_class(failures="1"), make_claim())

    storage.select("n")
    assert SELECTED_NODE not in storage.claim().annotations
    storage.select("n")
    assert storage.claim().is_fully_bound


def test_a_provisioner_may_retry_by_itself() -> None:
    storage = Storage(zoned("n", "a"), late_class(failures="2", on_failure="retry"), make_claim())

    storage.select("n")
    assert storage.claim().annotations[SELECTED_NODE] == "n"
    storage.advance(2.9)
    assert not storage.claim().is_fully_bound
    storage.advance(0.1)  # tried again after 1 s, then after 2 s
    assert storage.claim().is_fully_bound


def test_a_permanent_failure_leaves_no_timer() -> None:
    storage = Storage(
        zoned("n", "a"), late_class(failures="100%", on_failure="retry"), make_claim()
    )

    storage.select("n")

    assert storage.timers.next() is None


def test_a_share_of_failures_is_the_same_in_every_run() -> None:
    def outcome(seed: int) -> list[bool]:
        settings = Provisioning(failure_rate=0.5, seed=seed)
        return [settings.fails(make_claim(f"c-{i}"), 1) for i in range(200)]

    assert outcome(1) == outcome(1) != outcome(2)
    assert 60 < sum(outcome(1)) < 140


def test_a_volume_is_provisioned_for_the_node_selected_last() -> None:
    storage = Storage(zoned("n", "a"), zoned("m", "b"), late_class(delay="5s"), make_claim())
    storage.select("n")
    storage.advance(2)
    storage.select("m")

    storage.advance(20)

    assert reach(storage.made()) == {ZONE: ("b",)}
    assert storage.cluster.count("PersistentVolume") == 1


def test_a_deleted_node_returns_the_claim_to_the_scheduler() -> None:
    storage = Storage(zoned("n", "a"), late_class(delay="5s"), make_claim())
    storage.select("n")
    storage.delete(storage.cluster.get("Node", "", "n"))

    storage.advance(5)

    assert SELECTED_NODE not in storage.claim().annotations


def test_a_deleted_claim_gets_no_volume() -> None:
    storage = Storage(zoned("n", "a"), late_class(delay="5s"), make_claim())
    storage.select("n")
    storage.delete(storage.claim())

    storage.advance(10)

    assert storage.cluster.count("PersistentVolume") == 0


def test_capacity_is_taken_and_returned() -> None:
    room = make_capacity("room-a", capacity="10Gi", topology={"matchLabels": {ZONE: "a"}})
    driver = make_csi_driver(DRIVER, storageCapacity=True)
    claims = make_claim("one", size="6Gi"), make_claim("two", size="6Gi")
    storage = Storage(zoned("n", "a"), late_class(), driver, room, *claims)

    def left() -> object:
        stored = storage.cluster.get("CSIStorageCapacity", "default", "room-a")
        assert isinstance(stored, CSIStorageCapacity)
        return stored.capacity

    storage.select("n", "one")
    assert left() == "4Gi"
    storage.select("n", "two")  # no capacity: as after any failure, the scheduler selects again
    assert SELECTED_NODE not in storage.claim("two").annotations
    storage.delete(storage.claim("one"))
    assert left() == "10Gi"
    storage.select("n", "two")
    assert storage.claim("two").is_fully_bound


# Ephemeral volumes


def test_ephemeral_volumes_have_claims_as_long_as_their_pod_lives() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "now"}}
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}
    storage = Storage(zoned("n", "a"), now_class())
    storage.add(make_pod("p", spec={"volumes": [volume]}))

    pod, claim = stored(storage.cluster, Pod, "p"), storage.claim("p-tmp")
    assert claim.is_made_for(pod)
    assert claim.is_fully_bound
    storage.delete(pod)
    assert storage.cluster.count("PersistentVolumeClaim") == 0
    assert storage.cluster.count("PersistentVolume") == 0


def test_a_foreign_claim_of_that_name_is_not_changed() -> None:
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    pod = make_pod("p", spec={"volumes": [volume]})
    storage = Storage(make_claim("p-tmp"), pod)

    storage.delete(storage.cluster.get("Pod", "default", "p"))

    assert storage.claim("p-tmp").owner_references == ()


# Settings


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("2", (2, 0.0)), ("30%", (0, 0.3)), ("2.5%", (0, 0.025)), ("110%", None), ("often", None)],
)
def test_failures_are_a_number_or_a_share(text: str, meaning: tuple[int, float] | None) -> None:
    assert parse_failures(text) == meaning


def test_invalid_annotations_are_reported() -> None:
    notes = {"delay": "soon", "failures": "often", "on-failure": "cry"}
    said = {f"bayplan.dev/provision-{name}": text for name, text in notes.items()}

    assert [name for name, _ in provisioning_problems(said)] == list(said)


def test_the_api_server_sets_defaults() -> None:
    made = admit_storage(make_object("StorageClass", "s", provisioner=DRIVER))

    assert (made.volume_binding_mode, made.reclaim_policy) == ("Immediate", "Delete")
    assert admit_storage(made) is made
    volume = admit_storage(make_object("PersistentVolume", "v"))
    assert volume.spec.persistent_volume_reclaim_policy == "Retain"
    assert volume.status.phase == "Pending"
