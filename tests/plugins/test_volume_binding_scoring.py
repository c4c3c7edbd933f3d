"""VolumeBinding at Score, with the feature gate StorageCapacityScoring."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from bayplan.framework import SKIP, SUCCESS, CycleState
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_rows_agree
from bayplan.testing.storage import (
    claim_volume,
    make_capacity,
    make_claim,
    make_csi_driver,
    make_storage_class,
    make_volume,
)

CSI = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
IN_Z1 = {"matchLabels": {ZONE: "z1"}}
TABLE = make_table(make_node("a", zone="z1"), make_node("b", zone="z2"), make_node("c"))


def using(*claims: str) -> Pod:
    return make_pod("p", spec={"volumes": [claim_volume(claim) for claim in claims]})


def scores(pod: Pod, *objects: Any, shape: list[tuple[int, int]] | None = None) -> list[int]:
    points = [UtilizationShapePoint(*point) for point in shape or ()]
    handle = make_handle(TABLE, objects, feature_gates={"StorageCapacityScoring": True})
    args = VolumeBindingArgs(shape=tuple(points) or None)
    plugin, state = VolumeBinding.from_args(args, handle), CycleState()
    plugin.pre_filter(state, pod, TABLE)
    plugin.filter_rows(state, pod, TABLE, ALL)
    assert plugin.pre_score(state, pod, TABLE, ALL) == SUCCESS
    result: list[int] = plugin.score_rows(state, pod, TABLE, ALL).tolist()
    return result


def test_without_the_gate_nothing_is_scored() -> None:
    plugin = VolumeBinding.from_args(None, make_handle(TABLE))
    state = CycleState()

    assert plugin.pre_score(state, using("c"), TABLE, ALL) == SKIP
    assert plugin.settled(using("c").spec).pre_score == SKIP
    assert plugin.score_rows(state, using("c"), TABLE, ALL).tolist() == [0, 0, 0]


def test_the_fuller_a_volume_becomes_the_less_it_scores_by_default() -> None:
    volumes = [
        make_volume("v", size="4Gi", hosts=["a"]),
        make_volume("w", size="3Gi", hosts=["b"]),
        make_volume("x", size="1Gi", hosts=["c"]),
    ]

    assert scores(using("c"), make_claim("c"), *volumes, make_storage_class()) == [75, 67, 0]


def test_a_shape_may_prefer_tight_fits() -> None:
    volumes = [make_volume("v", size="4Gi", hosts=["a"]), make_volume("w", hosts=["b", "c"])]
    objects = [make_claim("c"), *volumes, make_storage_class()]

    assert scores(using("c"), *objects, shape=[(0, 0), (100, 10)]) == [25, 100, 100]


def test_classes_count_alike_and_claims_of_one_add_up() -> None:
    claims = [
        make_claim("c"),
        make_claim("d", size="2Gi"),
        make_claim("e", class_name="other"),
    ]
    volumes = [
        make_volume("v", size="2Gi"),
        make_volume("w", size="4Gi"),
        make_volume("x", size="4Gi", class_name="other"),
    ]
    classes = [make_storage_class(), make_storage_class("other")]

    # 3 of 6 GiB of one class: 50; 1 of 4 of the other: 75; 62.5 is rounded up
    assert scores(using("c", "d", "e"), *claims, *volumes, *classes) == [63] * 3


def test_the_room_for_new_volumes_counts_where_none_is_taken() -> None:
    objects = [
        make_claim("c"),
        make_claim("d"),
        make_storage_class(provisioner=CSI),
        make_csi_driver(CSI, storageCapacity=True),
        make_capacity("s1", capacity="4Gi", topology=IN_Z1),
        make_capacity("s2", capacity="20Gi", topology={"matchLabels": {ZONE: "z2"}}),
        make_volume("v", size="10Gi", hosts=["c"]),
    ]

    # On c one claim takes the volume: 1 of 10 GiB; elsewhere both share the room: 2 of 4, 2 of 20.
    assert scores(using("c", "d"), *objects)[:2] == [50, 90]
    assert scores(using("c"), *objects) == [75, 95, 90]
    assert scores(using("c"), *objects[:-1]) == [75, 95, 0]


def test_pods_without_claims_to_place_score_nothing() -> None:
    assert scores(make_pod()) == [0, 0, 0]
    assert scores(using("c"), make_claim("c", volume="v"), make_volume("v")) == [0, 0, 0]


def test_conformance() -> None:
    objects = [
        make_claim("c"),
        make_claim("d"),
        make_volume("w", hosts=["a"], size="3Gi"),
        make_volume("x", hosts=["a", "b"]),
        make_storage_class(provisioner=CSI),
    ]
    handle = make_handle(TABLE, objects, feature_gates={"StorageCapacityScoring": True})
    plugin = VolumeBinding.from_args(None, handle)

    for pod in (using("c"), using("c", "d"), make_pod("none")):
        check_rows_agree(plugin, pod, TABLE)
