"""The embedded volume controller: binding, provisioning and reclaiming."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    with_annotation,
)
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory import MemoryCluster, Provisioning, VolumeController, admit_storage
from bayplan.cluster.memory.provisioners import parse_failures, provisioning_problems
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.testing.storage import (
    claim_volume,
    make_capacity,
    make_claim,
    make_csi_driver,
    make_storage_class,
    make_volume,
)

DRIVER = "disk.example.com"
ZONE = "topology.kubernetes.io/zone"


class Storage:
    """A cluster with a volume controller and a manual clock."""

    def __init__(self, *objects: Any, **provisioning: Any) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.cluster = MemoryCluster(self.clock, self.timers)
        for obj in objects:
            self.cluster.add(obj)
        settings = Provisioning(**provisioning)
        self.controller = VolumeController(self.cluster, settings, self.timers)
        self.cluster.watch(self.controller)
        self.controller.run()

    def add(self, *objects: Any) -> None:
        for obj in objects:
            self.cluster.add(obj)
        self.controller.run()

    def select(self, node: str, name: str = "claim") -> None:
        """Simulate the scheduler's PreBind."""
        self.cluster.update(with_annotation(self.claim(name), SELECTED_NODE, node))
        self.controller.run()

    def delete(self, obj: Any) -> None:
        self.cluster.delete(obj)
        self.controller.run()

    def advance(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while (due := self.timers.next()) is not None and due <= until:
            self.clock.advance(due - self.clock.monotonic())
            self.timers.fire_due()
        self.clock.advance(until - self.clock.monotonic())

    def claim(self, name: str = "claim") -> PersistentVolumeClaim:
        found = self.cluster.get("PersistentVolumeClaim", "default", name)
        assert isinstance(found, PersistentVolumeClaim)
        return found

    def volume(self, name: str) -> PersistentVolume | None:
        found: PersistentVolume | None = self.cluster.get("PersistentVolume", "", name)
        return found

    def made(self, name: str = "claim") -> PersistentVolume:
        """The volume of a claim."""
        found = self.volume(self.claim(name).spec.volume_name)
        assert found is not None
        return found


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


# Binding


@pytest.mark.parametrize(
    ("volumes", "chosen"),
    [
        pytest.param([make_volume("a", size="3Gi"), make_volume("b", size="2Gi")], "b", id="small"),
        pytest.param([make_volume("a"), make_volume("b")], "a", id="the first of equals"),
        pytest.param(
            [
                make_volume("a", access_modes=("ReadWriteOnce", "ReadOnlyMany")),
                make_volume("b", size="5Gi"),
            ],
            "b",
            id="fewer access modes go before size",
        ),
        pytest.param(
            [make_volume("a", class_name="other"), make_volume("b")], "b", id="of the right class"
        ),
        pytest.param(
            [make_volume("a", spec={"volumeMode": "Block"}), make_volume("b")], "b", id="mode"
        ),
        pytest.param([make_volume("a", terminating=True), make_volume("b")], "b", id="not leaving"),
        pytest.param(
            [
                make_volume("a"),
                make_volume("b", size="9Gi", claim_ref={"namespace": "default", "name": "claim"}),
            ],
            "b",
            id="one that is kept for it",
        ),
        pytest.param([make_volume("a", size="1Mi")], "", id="none is large enough"),
        pytest.param(
            [make_volume("a", access_modes=("ReadOnlyMany",))], "", id="none can be written"
        ),
    ],
)
def test_an_immediate_claim_gets_the_best_volume(
    volumes: list[PersistentVolume], chosen: str
) -> None:
    storage = Storage(make_storage_class(waits=False), *volumes, make_claim())

    claim = storage.claim()
    assert claim.spec.volume_name == chosen
    assert claim.status.phase == ("Bound" if chosen else "Pending")


def test_the_binding_is_written_on_both_sides() -> None:
    storage = Storage(make_storage_class(waits=False), make_volume("v", size="2Gi"), make_claim())

    claim, volume = storage.claim(), storage.made()
    assert claim.annotations == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert claim.status.capacity == {"storage": "2Gi"}
    assert volume.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert volume.status.phase == "Bound"
    assert volume.spec.claim_ref == claim.reference or volume.is_bound_to(claim)


def test_a_claim_is_bound_when_its_volume_is_added_later() -> None:
    storage = Storage(make_storage_class(waits=False), make_claim())
    assert storage.claim().status.phase == "Pending"

    storage.add(make_volume("v", phase="Pending"))

    assert storage.claim().spec.volume_name == "v"


def test_a_wait_for_first_consumer_binding_is_started_by_the_scheduler_and_completed_by_the_controller() -> (
    None
):
    storage = Storage(make_storage_class(), make_volume("v"), make_claim())
    assert not storage.claim().spec.volume_name

    volume = storage.volume("v")
    assert volume is not None
    storage.cluster.update(volume.bound_to(storage.claim()))
    storage.controller.run()

    assert storage.claim().is_fully_bound
    assert storage.made().status.phase == "Bound"


@pytest.mark.parametrize("size", ["1Gi", "8Gi"])
def test_a_claim_that_names_its_volume_gets_that_one_if_it_matches(size: str) -> None:
    wanted = make_claim(volume="v", bound=False, size=size, phase="Pending")
    storage = Storage(make_storage_class(waits=False), make_volume("v"), make_volume("w"), wanted)

    claim = storage.claim()
    assert claim.is_fully_bound is (size == "1Gi")
    assert BOUND_BY_CONTROLLER not in claim.annotations


def test_a_volume_reserved_for_a_claim_that_has_another_is_released() -> None:
    storage = Storage(make_storage_class(waits=False), make_volume("v"), make_claim())
    storage.add(make_volume("w"))
    other = storage.volume("w")
    assert other is not None

    storage.cluster.update(other.bound_to(storage.claim()))
    storage.controller.run()

    freed = storage.volume("w")
    assert freed is not None
    assert (freed.spec.claim_ref, freed.annotations) == (None, {})
    assert freed.status.phase == "Available"


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    made = make_object(
        "StorageClass", "std", metadata=default, provisioner=DRIVER, volumeBindingMode="Immediate"
    )
    storage = Storage(
        make_node("n"), made, make_claim(class_name=None), make_claim("no", class_name="")
    )

    assert storage.claim().spec.storage_class_name == "std"
    assert storage.claim().is_fully_bound
    assert not storage.claim("no").is_fully_bound


# Reclaiming


@pytest.mark.parametrize(
    ("policy", "phase"), [("Retain", "Released"), ("Recycle", "Available"), ("Delete", None)]
)
def test_a_volume_whose_claim_is_deleted_is_reclaimed_by_its_policy(
    policy: str, phase: str | None
) -> None:
    volume = make_volume("v", spec={"persistentVolumeReclaimPolicy": policy})
    storage = Storage(make_storage_class(waits=False), volume, make_claim())

    storage.delete(storage.claim())

    left = storage.volume("v")
    assert (left.status.phase if left else None) == phase


def test_a_claim_whose_volume_is_deleted_is_lost() -> None:
    storage = Storage(make_storage_class(waits=False), make_volume("v"), make_claim())

    storage.delete(storage.made())

    assert storage.claim().status.phase == "Lost"


def test_half_bound_objects_of_the_input_stay() -> None:
    claim, volume = (
        make_claim("half", volume="elsewhere"),
        make_volume("v", claim=make_claim("gone")),
    )
    storage = Storage(claim, volume)

    assert storage.claim("half").status.phase == "Bound"
    kept = storage.volume("v")
    assert kept is not None
    assert kept.status.phase == "Bound"


NOW = "2000-01-01T00:00:10Z"


def test_a_claim_in_use_is_terminating_until_its_pod_is_deleted() -> None:
    pod = make_pod("p", node_name="n", spec={"volumes": [claim_volume()]})
    volume = make_volume("v", spec={"persistentVolumeReclaimPolicy": "Delete"})
    storage = Storage(make_storage_class(waits=False), volume, make_claim(), pod)

    storage.controller.delete(storage.claim(), NOW)
    assert storage.claim().is_terminating
    assert storage.made().status.phase == "Bound"
    storage.delete(storage.cluster.get("Pod", "default", "p"))
    assert storage.cluster.count("PersistentVolumeClaim") == 0
    assert storage.volume("v") is None


def test_a_claim_whose_pod_has_no_node_is_deleted_at_once() -> None:
    pod = make_pod("p", spec={"volumes": [claim_volume()]})
    storage = Storage(make_storage_class(), make_claim(), pod)

    storage.controller.delete(storage.claim(), NOW)

    assert storage.cluster.count("PersistentVolumeClaim") == 0


def test_a_bound_volume_is_terminating_until_its_claim_is_deleted() -> None:
    storage = Storage(make_storage_class(waits=False), make_volume("v"), make_claim())

    storage.controller.delete(storage.made(), NOW)
    assert storage.made().is_terminating
    storage.controller.delete(storage.claim(), NOW)
    assert storage.volume("v") is None


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

    pod, claim = storage.cluster.get("Pod", "default", "p"), storage.claim("p-tmp")
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
