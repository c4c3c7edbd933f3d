"""VolumeBinding at PreFilter and Filter: which nodes have, or can get, the volumes of a pod."""

from typing import Any

import pytest

from bayplan.framework import SKIP, SUCCESS, Code, CycleState, Status
from bayplan.plugins.volume_binding.plugin import (
    REASON_BIND_CONFLICT,
    REASON_NODE_CONFLICT,
    REASON_VOLUME_MISSING,
    VolumeBinding,
)
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from bayplan.testing.storage import (
    ephemeral_volume,
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
)
from tests.plugins.volume_binding_world import CSI, TABLE, ZONE, judge, make_plugin, using

ABC = [True, True, True]


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
            id="a claim that is being deleted",
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
    assert plugin.settled(pod.spec).pre_filter == SKIP
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
            make_volume("v", affinity={"nodeSelectorTerms": []}),
            [False] * 3,
            id="no terms: nowhere",
        ),
        pytest.param(make_volume("v", spec={"nodeAffinity": {}}), ABC, id="nothing required"),
        pytest.param(
            make_volume(
                "v",
                affinity={
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["x"]}
                            ]
                        }
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
        pytest.param(
            AWS, {ZONE: "z1"}, [True, True], id="the zone of its labels, and the driver's"
        ),
        pytest.param(
            AWS, {ZONE: "z2"}, [True, False], id="another zone, where the driver serves it"
        ),
        pytest.param({"nfs": {}}, {ZONE: "z2"}, [True, True], id="a kind that is not migrated"),
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


# Claims that wait for the node: existing volumes


@pytest.mark.parametrize(
    ("claim", "volume", "fits"),
    [
        pytest.param({}, {}, True, id="all as asked for"),
        pytest.param({"size": "2Gi"}, {"size": "1Gi"}, False, id="too small"),
        pytest.param({"size": None}, {"size": "1Gi"}, True, id="any size will do"),
        pytest.param({}, {"class_name": "other"}, False, id="of another class"),
        pytest.param({}, {"phase": "Released"}, False, id="not available"),
        pytest.param({}, {"terminating": True}, False, id="being deleted"),
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
def test_a_volume_that_is_there(claim: dict[str, Any], volume: dict[str, Any], fits: bool) -> None:
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
    claims = [make_claim("large", size="2Gi"), make_claim("small", size="1Gi")]
    volumes = [make_volume("v", size="2Gi"), make_volume("w", size="3Gi")]
    plugin = make_plugin(*claims, *volumes, make_storage_class())
    state, pod = CycleState(), using("large", "small")
    plugin.pre_filter(state, pod, TABLE)
    plugin.filter_rows(state, pod, TABLE, ALL)

    plugin.reserve(state, pod, "a")

    given = state.read("VolumeBinding").given.bindings
    assert {claim.name: volume.name for volume, claim in given} == {"small": "v", "large": "w"}


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
