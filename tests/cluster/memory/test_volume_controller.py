"""The embedded volume controller: binding, provisioning and reclaiming."""

import pytest

from bayplan.api.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PersistentVolume,
)
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume
from tests.cluster.memory.volume_bench import DRIVER, Storage

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
