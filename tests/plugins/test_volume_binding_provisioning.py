"""VolumeBinding at Filter: where the volumes of a pod can be made."""

from typing import Any

import pytest

from bayplan.framework import SUCCESS, CycleState
from bayplan.plugins.volume_binding.plugin import (
    REASON_BIND_CONFLICT,
    REASON_NODE_CONFLICT,
    REASON_NOT_ENOUGH_SPACE,
    VolumeBinding,
)
from bayplan.table import ALL
from bayplan.testing.builders import make_handle
from bayplan.testing.storage import (
    make_capacity,
    make_claim,
    make_csi_driver,
    make_storage_class,
    make_volume,
)
from tests.plugins.volume_binding_world import CSI, TABLE, ZONE, judge, using

ABC = [True, True, True]


@pytest.mark.parametrize(
    ("storage_class", "feasible"),
    [
        pytest.param(make_storage_class(provisioner=CSI), ABC, id="anywhere"),
        pytest.param(make_storage_class(), [False] * 3, id="no provisioner makes them"),
        pytest.param(make_storage_class(provisioner=""), [False] * 3, id="no provisioner is named"),
        pytest.param(
            make_storage_class(provisioner=CSI, topologies=[{ZONE: ["z2"]}]),
            [False, True, False],
            id="in one zone",
        ),
        pytest.param(
            make_storage_class(provisioner=CSI, topologies=[{ZONE: ["z2"]}, {ZONE: ["z1"]}]),
            [True, True, False],
            id="in one zone or the other",
        ),
        pytest.param(
            make_storage_class(provisioner=CSI, topologies=[{ZONE: ["z1"], "x": ["y"]}]),
            [False] * 3,
            id="every label of an alternative must match",
        ),
        pytest.param(
            make_storage_class(provisioner=CSI, topologies=[{}]), [False] * 3, id="an empty term"
        ),
    ],
)
def test_volumes_to_be_made(storage_class: Any, feasible: list[bool]) -> None:
    verdict = judge(using("c"), make_claim("c"), storage_class)

    assert verdict.feasible.tolist() == feasible


@pytest.mark.parametrize(
    ("selected", "feasible"),
    [
        pytest.param("b", [False, True, False], id="it is to be made on b"),
        pytest.param("gone", [False] * 3, id="on a node that is gone"),
        pytest.param("", [False] * 3, id="on a node without a name"),
    ],
)
def test_a_claim_whose_node_was_chosen_is_not_matched_again(
    selected: str, feasible: list[bool]
) -> None:
    claim = make_claim("c", selected_node=selected)

    verdict = judge(using("c"), claim, make_volume("v"), make_storage_class(provisioner=CSI))

    assert verdict.feasible.tolist() == feasible


def test_a_claim_whose_node_was_chosen_must_be_made_though_a_volume_is_there() -> None:
    verdict = judge(
        using("c"), make_claim("c", selected_node="a"), make_volume("v"), make_storage_class()
    )

    assert verdict.feasible.tolist() == [False] * 3


IN_Z1 = {"matchLabels": {ZONE: "z1"}}


@pytest.mark.parametrize(
    ("capacities", "driver", "size", "feasible"),
    [
        pytest.param([], True, "1Gi", [False] * 3, id="nothing announced"),
        pytest.param([], False, "1Gi", ABC, id="the driver does not tell"),
        pytest.param([], None, "1Gi", ABC, id="not a CSI driver"),
        pytest.param([], True, None, ABC, id="a claim that does not say how much"),
        pytest.param([{"topology": IN_Z1}], True, "1Gi", [True, False, False], id="room in a zone"),
        pytest.param([{"topology": {}}], True, "1Gi", ABC, id="room everywhere"),
        pytest.param([{"topology": None}], True, "1Gi", [False] * 3, id="room nowhere"),
        pytest.param([{"topology": {}}], True, "2Gi", [False] * 3, id="too little room"),
        pytest.param(
            [{"topology": {}, "capacity": None}], True, "1Gi", [False] * 3, id="room unknown"
        ),
        pytest.param(
            [{"topology": {}, "capacity": "9Gi", "maximum": "1Gi"}],
            True,
            "2Gi",
            [False] * 3,
            id="no volume that large",
        ),
        pytest.param(
            [{"topology": {}, "capacity": "1Gi", "maximum": "4Gi"}],
            True,
            "2Gi",
            ABC,
            id="the largest volume goes before the capacity",
        ),
        pytest.param(
            [{"topology": {}, "class_name": "other"}], True, "1Gi", [False] * 3, id="another class"
        ),
        pytest.param(
            [{"topology": {"matchExpressions": [{"key": ZONE, "operator": "DoesNotExist"}]}}],
            True,
            "1Gi",
            [False, False, True],
            id="any kind of selector",
        ),
    ],
)
def test_storage_capacity(
    capacities: list[dict[str, Any]], driver: bool | None, size: str | None, feasible: list[bool]
) -> None:
    objects: list[Any] = [make_capacity(f"s{i}", **c) for i, c in enumerate(capacities)]
    if driver is not None:
        objects.append(make_csi_driver(CSI, storageCapacity=driver))

    verdict = judge(
        using("c"), make_claim("c", size=size), make_storage_class(provisioner=CSI), *objects
    )

    assert verdict.feasible.tolist() == feasible
    short = feasible.count(False)
    assert verdict.histogram() == ({REASON_NOT_ENOUGH_SPACE: short} if short else {})


def test_all_that_is_wrong_is_said() -> None:
    claims = [make_claim("c", volume="v"), make_claim("d")]
    volume = make_volume("v", hosts=["a"], claim=claims[0])

    verdict = judge(using("c", "d"), *claims, volume, make_storage_class())

    assert verdict.status(0).reasons == (REASON_BIND_CONFLICT,)
    assert verdict.status(1).reasons == (REASON_NODE_CONFLICT, REASON_BIND_CONFLICT)


def test_where_one_claim_finds_no_volume_it_gets_a_new_one() -> None:
    objects = [make_volume("v", hosts=["a"]), make_storage_class(provisioner=CSI)]

    assert judge(using("c"), make_claim("c"), *objects).feasible.tolist() == ABC


def test_the_capacities_follow_the_cluster() -> None:
    objects = [make_claim("c"), make_storage_class(provisioner=CSI)]
    handle = make_handle(TABLE, [*objects, make_csi_driver(CSI, storageCapacity=True)])
    plugin: VolumeBinding = VolumeBinding.from_args(None, handle)
    lister: Any = handle.lister

    def fits() -> list[bool]:
        state = CycleState()
        assert plugin.pre_filter(state, using("c"), TABLE) == SUCCESS
        return [bool(f) for f in plugin.filter_rows(state, using("c"), TABLE, ALL).feasible]

    assert fits() == [False, False, False]
    lister.add(make_capacity("s", topology=IN_Z1))
    assert fits() == [True, False, False]
    lister.add(make_capacity("s", topology={"matchLabels": {ZONE: "z2"}}))
    assert fits() == [False, True, False]
    lister.add(make_capacity("s", topology=None))
    assert fits() == [False, False, False]
    lister.add(make_capacity("s", topology={}))
    lister.add(make_capacity("s", topology={}, class_name="other"))
    assert fits() == [False, False, False]
    lister.add(make_capacity("t", topology=IN_Z1))
    lister.remove(make_capacity("t"))
    assert fits() == [False, False, False]
    lister.add(make_capacity("u", topology={}))
    assert fits() == [True, True, True]
