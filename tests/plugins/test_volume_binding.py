"""VolumeBinding at PreFilter, Filter and Score: which nodes have, or can get, the volumes of a pod."""

from typing import Any

import pytest

from mooring.api.pod import Pod
from mooring.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from mooring.framework import SKIP, SUCCESS, Code, CycleState, Status, Verdict
from mooring.plugins.volume_binding import (
    REASON_BIND_CONFLICT,
    REASON_NODE_CONFLICT,
    REASON_NOT_ENOUGH_SPACE,
    REASON_VOLUME_MISSING,
    VolumeBinding,
)
from mooring.table import ALL, NodeTable
from mooring.testing.builders import make_handle, make_node, make_pod, make_table
from mooring.testing.conformance import check_conformance, check_rows_agree
from mooring.testing.storage import (
    claim_volume,
    ephemeral_volume,
    make_capacity,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_storage_class,
    make_volume,
)

CSI = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
TABLE = make_table(make_node("a", zone="z1"), make_node("b", zone="z2"), make_node("c"))
ABC = [True, True, True]


def using(*claims: str, name: str = "p", **fields: Any) -> Pod:
    return make_pod(name, spec={"volumes": [claim_volume(claim) for claim in claims]}, **fields)


def make_plugin(*objects: Any, table: NodeTable = TABLE, **options: Any) -> VolumeBinding:
    return VolumeBinding.from_args(None, make_handle(table, objects, **options))


def judge(pod: Pod, *objects: Any, table: NodeTable = TABLE) -> Verdict:
    plugin, state = make_plugin(*objects, table=table), CycleState()
    assert plugin.pre_filter(state, pod, table) == SUCCESS
    verdict = plugin.filter_rows(state, pod, table, ALL)
    for node in table.nodes_at(ALL):
        assert plugin.filter_node(state, pod, node) == verdict.status(node.row)
    return verdict


# PreFilter


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="no such claim"),
        pytest.param(
            [make_claim("c", volume="v", phase="Lost")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="a claim that lost its volume",
        ),
        pytest.param(
            [make_claim("c", volume="v", terminating=True)],
            'persistentvolumeclaim "c" is being deleted',
            id="a claim on its way out",
        ),
        pytest.param(
            [make_claim("c"), make_storage_class(waits=False)],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim that is bound without the scheduler",
        ),
        pytest.param(
            [make_claim("c")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim of a class that does not exist",
        ),
        pytest.param(
            [make_claim("c", class_name=None), make_storage_class()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim of no class",
        ),
        pytest.param(
            [make_claim("c", volume="v", bound=False), make_storage_class()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim that names its volume, and waits for the controller",
        ),
    ],
)
def test_a_pod_that_must_wait_for_others_is_refused(objects: list[Any], expected: str) -> None:
    status = make_plugin(*objects).pre_filter(CycleState(), using("c"), TABLE)

    assert status == Status(Code.UnschedulableAndUnresolvable, (expected,))


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"',
            id="its claim is yet to be made",
        ),
        pytest.param(
            [make_claim("p-scratch", volume="v", owner_uid="another")],
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
            id="a claim of its name is another's",
        ),
    ],
)
def test_ephemeral_volumes_wait_for_their_claim(objects: list[Any], expected: str) -> None:
    pod = make_pod("p", spec={"volumes": [ephemeral_volume()]})

    status = make_plugin(*objects).pre_filter(CycleState(), pod, TABLE)

    assert status == Status(Code.UnschedulableAndUnresolvable, (expected,))


def test_a_pod_without_claims_is_skipped_and_never_in_the_way() -> None:
    plugin, pod, state = make_plugin(), make_pod(), CycleState()

    assert plugin.pre_filter(state, pod, TABLE) == SKIP
    assert plugin.pre_filter_spec(pod.spec) == SKIP
    assert plugin.filter_rows(state, pod, TABLE, ALL).feasible.tolist() == ABC
    assert plugin.reserve(state, pod, "a") == SUCCESS
    assert plugin.pre_bind_pre_flight(state, pod, "a") == SKIP
    plugin.unreserve(state, pod, "a")


def test_a_class_that_does_not_say_when_is_an_error() -> None:
    plugin = make_plugin(make_claim("c"), make_storage_class(waits=None))

    status = plugin.pre_filter(CycleState(), using("c"), TABLE)

    expected = 'VolumeBindingMode not set for StorageClass "late"'
    assert (status.code, status.message) == (Code.Error, expected)


# Claims that are bound


@pytest.mark.parametrize(
    ("volume", "reached"),
    [
        pytest.param(make_volume("v"), ABC, id="no affinity: from everywhere"),
        pytest.param(make_volume("v", hosts=["b"]), [False, True, False], id="from one host"),
        pytest.param(make_volume("v", zones=["z1", "z2"]), [True, True, False], id="from zones"),
        pytest.param(
            make_volume("v", affinity={"nodeSelectorTerms": []}), [False] * 3, id="no terms: nowhere"
        ),
        pytest.param(make_volume("v", spec={"nodeAffinity": {}}), ABC, id="nothing required"),
        pytest.param(
            make_volume(
                "v",
                affinity={
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}
                    ]
                },
            ),
            ABC,
            id="names of nodes are not looked at",
        ),
    ],
)
def test_bound_volumes(volume: Any, reached: list[bool]) -> None:
    verdict = judge(using("c"), make_claim("c", volume="v"), volume)

    assert verdict.feasible.tolist() == reached
    assert verdict.histogram() in ({}, {REASON_NODE_CONFLICT: reached.count(False)})
    assert all(verdict.status(i).code is not Code.Unschedulable for i in range(3))


def test_a_missing_volume_is_named_where_no_other_fault_came_first() -> None:
    claims = [make_claim("c", volume="v"), make_claim("d", volume="gone")]

    verdict = judge(using("c", "d"), *claims, make_volume("v", hosts=["a"]))

    assert verdict.status(0).reasons == (REASON_VOLUME_MISSING,)
    assert verdict.status(1).reasons == (REASON_NODE_CONFLICT,)


AWS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
AWS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("spec", "labels", "reached"),
    [
        pytest.param(AWS, {}, [True, True], id="nothing said"),
        pytest.param(AWS, {ZONE: "z1"}, [True, True], id="the zone of its labels, and the driver's"),
        pytest.param(AWS, {ZONE: "z2"}, [True, False], id="another zone, where the driver serves it"),
        pytest.param({"nfs": {}}, {ZONE: "z2"}, [True, True], id="a kind nobody took over"),
    ],
)
def test_in_tree_volumes_are_reached_as_the_driver_does_where_it_serves_them(
    spec: dict[str, Any], labels: dict[str, str], reached: list[bool]
) -> None:
    table = make_table(make_node("old"), make_node("new", labels={AWS_ZONE: "z1"}))
    nodes = [make_csi_node("new", migrated=["kubernetes.io/aws-ebs"]), make_csi_node("old")]
    volume = make_volume("v", spec=spec, labels=labels)

    verdict = judge(using("c"), make_claim("c", volume="v"), volume, *nodes, table=table)

    assert verdict.feasible.tolist() == reached


# Claims that wait for the node: volumes that are there


@pytest.mark.parametrize(
    ("claim", "volume", "fits"),
    [
        pytest.param({}, {}, True, id="all as asked for"),
        pytest.param({"size": "2Gi"}, {"size": "1Gi"}, False, id="too small"),
        pytest.param({"size": None}, {"size": "1Gi"}, True, id="any size will do"),
        pytest.param({}, {"class_name": "other"}, False, id="of another class"),
        pytest.param({}, {"phase": "Released"}, False, id="not available"),
        pytest.param({}, {"terminating": True}, False, id="on its way out"),
        pytest.param({"access_modes": ["ReadWriteMany"]}, {}, False, id="another access mode"),
        pytest.param(
            {"access_modes": ["ReadOnlyMany"]},
            {"access_modes": ["ReadOnlyMany", "ReadWriteOnce"]},
            True,
            id="more access modes than asked for",
        ),
        pytest.param({"spec": {"volumeMode": "Block"}}, {}, False, id="a file system, not a block"),
        pytest.param(
            {}, {"spec": {"volumeMode": "Filesystem"}}, True, id="a file system, said or not"
        ),
        pytest.param(
            {"spec": {"volumeAttributesClassName": "fast"}}, {}, False, id="other attributes"
        ),
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"x": "y"}}}}, {}, False, id="without the labels"
        ),
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"x": "y"}}}},
            {"labels": {"x": "y"}},
            True,
            id="with the labels",
        ),
        pytest.param({}, {"claim_ref": {"name": "other"}}, False, id="kept for another claim"),
        pytest.param(
            {},
            {"claim_ref": {"namespace": "default", "name": "c"}, "phase": "Released"},
            True,
            id="kept for the claim: available or not",
        ),
        pytest.param(
            {},
            {"claim_ref": {"namespace": "default", "name": "c", "uid": "an older one"}},
            False,
            id="kept for an older claim of that name",
        ),
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"x": "y"}}}},
            {"claim_ref": {"namespace": "default", "name": "c"}},
            True,
            id="kept for the claim: labels or not",
        ),
        pytest.param(
            {"size": "2Gi"},
            {"claim_ref": {"namespace": "default", "name": "c"}},
            False,
            id="kept for the claim, but too small",
        ),
    ],
)
def test_a_volume_that_is_there(
    claim: dict[str, Any], volume: dict[str, Any], fits: bool
) -> None:
    verdict = judge(
        using("c"), make_claim("c", **claim), make_volume("v", **volume), make_storage_class()
    )

    assert verdict.feasible.all() == fits
    assert verdict.histogram() == ({} if fits else {REASON_BIND_CONFLICT: 3})


def test_volumes_that_are_there_only_suit_nodes_that_reach_them() -> None:
    volumes = [make_volume("v", hosts=["a"]), make_volume("w", zones=["z2"])]

    verdict = judge(using("c"), make_claim("c"), *volumes, make_storage_class())

    assert verdict.feasible.tolist() == [True, True, False]


def test_a_volume_kept_for_the_claim_leaves_no_choice() -> None:
    kept = make_volume("kept", hosts=["a"], claim_ref={"namespace": "default", "name": "c"})

    verdict = judge(using("c"), make_claim("c"), kept, make_volume("v"), make_storage_class())

    assert verdict.feasible.tolist() == [True, False, False]


def test_no_volume_is_used_twice() -> None:
    claims = [make_claim("c"), make_claim("d")]
    volumes = [
        make_volume("v", hosts=["a"]),
        make_volume("w", hosts=["a", "b"], size="5Gi"),
    ]

    verdict = judge(using("c", "d"), *claims, *volumes, make_storage_class())

    assert verdict.feasible.tolist() == [True, False, False]


def test_small_claims_choose_first() -> None:
    """In the order of the pod the large claim would take the only volume that is large enough, too."""
    claims = [make_claim("large", size="1Gi"), make_claim("small", size="3Gi")]
    volumes = [make_volume("v", size="2Gi"), make_volume("w", size="3Gi")]

    verdict = judge(using("small", "large"), *claims, *volumes, make_storage_class())

    assert verdict.feasible.tolist() == ABC


# Claims that wait for the node: volumes to be made


@pytest.mark.parametrize(
    ("storage_class", "feasible"),
    [
        pytest.param(make_storage_class(provisioner=CSI), ABC, id="anywhere"),
        pytest.param(make_storage_class(), [False] * 3, id="nobody makes them"),
        pytest.param(make_storage_class(provisioner=""), [False] * 3, id="nobody is named"),
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

    verdict = judge(
        using("c"), claim, make_volume("v"), make_storage_class(provisioner=CSI)
    )

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


def test_the_columns_follow_the_cluster() -> None:
    table = make_table(make_node("a"), make_node("b"))
    handle = make_handle(table, [make_claim("c"), make_storage_class()])
    plugin: VolumeBinding = VolumeBinding.from_args(None, handle)
    lister: Any = handle.lister

    def fits() -> list[bool]:
        state = CycleState()
        assert plugin.pre_filter(state, using("c"), table) == SUCCESS
        return [bool(f) for f in plugin.filter_rows(state, using("c"), table, ALL).feasible]

    assert fits() == [False, False]
    lister.add(make_volume("v", hosts=["b"]))
    assert fits() == [False, True]
    lister.add(make_volume("w", hosts=["a"]))
    assert fits() == [True, True]
    lister.add(make_volume("v", hosts=["b"], phase="Bound", claim=make_claim("other")))
    assert fits() == [True, False]
    lister.remove(make_volume("w"))
    assert fits() == [False, False]
    lister.add(make_volume("x", size="100Mi", hosts=["a"]))
    lister.add(make_volume("x", size="1Gi", hosts=["a"]))
    assert fits() == [True, False]


# Score (feature gate StorageCapacityScoring)


def scores(
    pod: Pod, *objects: Any, shape: list[tuple[int, int]] | None = None
) -> list[int]:
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
    plugin, state = make_plugin(), CycleState()

    assert plugin.pre_score(state, using("c"), TABLE, ALL) == SKIP
    assert plugin.pre_score_spec(using("c").spec) == SKIP
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


def test_pods_without_claims_to_place_score_nothing() -> None:
    assert scores(make_pod()) == [0, 0, 0]
    assert scores(using("c"), make_claim("c", volume="v"), make_volume("v")) == [0, 0, 0]


def test_conformance() -> None:
    objects = [
        make_claim("c", volume="v"),
        make_claim("d"),
        make_claim("e"),
        make_volume("v", zones=["z1", "z2"]),
        make_volume("w", hosts=["a"]),
        make_volume("x", hosts=["a", "b"]),
        make_storage_class(provisioner=CSI, topologies=[{ZONE: ["z1", "z2"]}]),
    ]
    pods = [using("c", name="x"), using("c", "d", "e", name="y"), make_pod("z"), using("nope")]

    check_conformance(VolumeBinding, pods, TABLE, objects=objects)
    scoring = make_plugin(*objects, feature_gates={"StorageCapacityScoring": True})
    for pod in pods[:3]:
        check_rows_agree(scoring, pod, TABLE)
