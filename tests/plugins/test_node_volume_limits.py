"""NodeVolumeLimits: distinct volumes of a driver on a node, and how many it can attach."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SKIP, SUCCESS, Code, CycleState, Handle, Status
from bayplan.plugins.node_volume_limits.plugin import REASON, NodeVolumeLimits
from bayplan.table import ALL
from bayplan.table.what_if import WhatIf
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import ObjectLister, make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from bayplan.testing.storage import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_storage_class,
    make_volume,
)

CSI = "csi.example.com"
GCE, AWS, PORTWORX = "pd.csi.storage.gke.io", "ebs.csi.aws.com", "pxd.portworx.com"


def using(name: str, *volumes: Any, **fields: Any) -> Pod:
    """A pod with volumes in Kubernetes' own form, or claims by name."""
    given = [claim_volume(v) if isinstance(v, str) else v for v in volumes]
    return make_pod(name, spec={"volumes": given}, **fields)


def bound(name: str, **fields: Any) -> list[Any]:
    """A claim and its volume, called `v-` and the name of the claim; of driver CSI by default."""
    fields = fields or {"driver": CSI}
    return [make_claim(name, volume=f"v-{name}"), make_volume(f"v-{name}", **fields)]


def judge(
    pod: Pod,
    *objects: Any,
    there: list[Pod] | None = None,
    limits: dict[str, int | None] | None = None,
    gates: dict[str, bool] | None = None,
) -> Status:
    """Status of node `a`, which has a CSINode unless `limits` is empty."""
    table = make_table(make_node("a"), pods=there or [])
    listed = [*objects, *([make_csi_node("a", limits)] if limits else [])]
    plugin = NodeVolumeLimits.from_args(None, make_handle(table, listed, feature_gates=gates))
    verdict = plugin.filter_rows(CycleState(), pod, table, ALL)
    alone = plugin.filter_node(CycleState(), pod, table.node_at(0))
    assert alone.message == verdict.status(0).message
    return verdict.status(0)


FULL = Status(Code.Unschedulable, (REASON,))


@pytest.mark.parametrize(
    ("wanted", "there", "limit", "expected"),
    [
        pytest.param(["a"], [], 1, SUCCESS, id="room for one"),
        pytest.param(["a"], [["b"]], 1, FULL, id="the only place is taken"),
        pytest.param(["a"], [["b"]], 2, SUCCESS, id="the second place is free"),
        pytest.param(["a", "b"], [], 1, FULL, id="two volumes need two places"),
        pytest.param(["a", "a"], [], 1, SUCCESS, id="one volume twice needs one place"),
        pytest.param(["a"], [["a"]], 1, SUCCESS, id="the volume is there already"),
        pytest.param(["a"], [["a", "b"]], 1, SUCCESS, id="over the limit, and nothing new"),
        pytest.param(["a", "c"], [["a", "b"]], 2, FULL, id="one there, one new"),
        pytest.param(["a"], [["b"], ["b"]], 2, SUCCESS, id="pods that share a volume"),
        pytest.param(["a"], [], 0, FULL, id="a limit of nothing"),
        pytest.param(["a"], [["b", "c"]], None, SUCCESS, id="a driver that does not say"),
        pytest.param(["missing"], [], 9, None, id="a claim that does not exist"),
        pytest.param(["a"], [["missing"]], 1, SUCCESS, id="a claim of another pod that is gone"),
    ],
)
def test_volumes_of_claims(
    wanted: list[str], there: list[list[str]], limit: int | None, expected: Status | None
) -> None:
    objects = [*bound("a"), *bound("b"), *bound("c")]
    pods = [using(f"p{i}", *names, node_name="a") for i, names in enumerate(there)]

    status = judge(using("new", *wanted), *objects, there=pods, limits={CSI: limit, "x": 7})

    if expected is None:
        text = 'looking up PVC default/missing: persistentvolumeclaim "missing" not found'
        expected = Status(Code.UnschedulableAndUnresolvable, (text,))
    assert status == expected


def gce_disk(name: str) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name}}


ZONE = "topology.kubernetes.io/zone"
REGIONAL = {ZONE: "us-east1-b__us-east1-c"}


@pytest.mark.parametrize(
    ("wanted", "objects", "driver", "counts"),
    [
        pytest.param("c", [make_claim("c")], CSI, False, id="no volume, no such class"),
        pytest.param("c", [make_claim("c", class_name=None)], CSI, False, id="no volume, no class"),
        pytest.param(
            "c",
            [make_claim("c"), make_storage_class(provisioner=CSI)],
            CSI,
            True,
            id="a volume that the driver of the class will make",
        ),
        pytest.param(
            "c",
            [make_claim("c", volume="gone"), make_storage_class(provisioner=CSI)],
            CSI,
            True,
            id="a volume that is gone counts as its class does",
        ),
        pytest.param(
            "c",
            [make_claim("c"), make_storage_class(provisioner="kubernetes.io/gce-pd")],
            GCE,
            True,
            id="a class of an in-tree kind that was switched over",
        ),
        pytest.param(
            "c",
            [make_claim("c"), make_storage_class(provisioner="kubernetes.io/azure-file")],
            "file.csi.azure.com",
            False,
            id="a class of an in-tree kind that was left behind",
        ),
        pytest.param("c", bound("c", spec={"nfs": {"server": "s"}}), CSI, False, id="an NFS share"),
        pytest.param(
            "c",
            bound("c", spec={"csi": {"driver": CSI}}),
            CSI,
            False,
            id="a volume without a handle",
        ),
        pytest.param(
            "c",
            bound("c", spec={"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}),
            AWS,
            True,
            id="an in-tree volume",
        ),
        pytest.param(
            "c",
            bound("c", spec={"awsElasticBlockStore": {"volumeID": "aws://z/1"}}),
            AWS,
            False,
            id="an in-tree volume that its driver cannot know",
        ),
        pytest.param(
            "c",
            bound("c", spec={"gcePersistentDisk": {"pdName": "d"}}, labels=REGIONAL),
            GCE,
            True,
            id="a regional disk",
        ),
        pytest.param(
            "c",
            bound("c", spec={"gcePersistentDisk": {"pdName": "d"}}, labels={ZONE: "a__b"}),
            GCE,
            False,
            id="a disk in zones of no region",
        ),
        pytest.param(gce_disk("d"), [], GCE, True, id="a disk written into the pod"),
        pytest.param(
            {"portworxVolume": {"volumeID": ""}}, [], PORTWORX, True, id="one without a name, too"
        ),
        pytest.param(
            {"azureFile": {"shareName": "s"}},
            [],
            "file.csi.azure.com",
            False,
            id="a kind left behind, written into the pod",
        ),
        pytest.param({"csi": {"driver": CSI}}, [], CSI, False, id="a volume made inline"),
    ],
)
def test_what_takes_up_a_place(wanted: Any, objects: list[Any], driver: str, counts: bool) -> None:
    status = judge(using("new", wanted), *objects, limits={driver: 0})

    assert status == (FULL if counts else SUCCESS)


@pytest.mark.parametrize(
    "disk",
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "aws://z/1"}}, id="no AWS volume"),
        pytest.param({"azureDisk": {"diskURI": "u", "kind": "Shared"}}, id="an unmanaged disk"),
    ],
)
def test_a_disk_that_its_driver_cannot_know_fails_where_there_is_a_csi_node(disk: Any) -> None:
    assert judge(using("new", disk), limits={CSI: 1}).code is Code.Error
    assert judge(using("new", disk)) == SUCCESS


def test_ephemeral_volumes_count_when_they_are_the_pods_own() -> None:
    pod = using("new", ephemeral_volume("e"))
    claim = {"volume": "v", "owner_uid": "default/new"}
    volume = make_volume("v", driver=CSI)

    assert judge(pod, make_claim("new-e", **claim), volume, limits={CSI: 0}) == FULL  # type: ignore[arg-type]
    status = judge(pod, make_claim("new-e", volume="v"), volume, limits={CSI: 9})

    text = "PVC default/new-e was not created for pod default/new (pod is not owner)"
    assert (status.code, status.message) == (Code.Error, text)


def test_a_pod_there_with_a_claim_that_is_not_its_own_fails_the_attempt() -> None:
    there = [using("old", ephemeral_volume("e"), node_name="a")]
    objects = [*bound("c"), make_claim("old-e", volume="v")]

    assert judge(using("new", "c"), *objects, there=there, limits={CSI: 9}).code is Code.Error
    assert judge(using("new", "c"), *objects, there=there) == SUCCESS
    assert judge(make_pod("none"), *objects, there=there, limits={CSI: 9}) == SUCCESS


@pytest.mark.parametrize(
    ("attachments", "limit", "expected"),
    [
        pytest.param([("x", "a", CSI)], 2, SUCCESS, id="one attached, one new, two places"),
        pytest.param([("x", "a", CSI)], 1, FULL, id="the place is taken by what is attached"),
        pytest.param([("x", "b", CSI)], 1, SUCCESS, id="attached elsewhere"),
        pytest.param([("x", "a", "")], 1, SUCCESS, id="attached by no pod"),
        pytest.param([(None, "a", CSI)], 1, SUCCESS, id="no volume named"),
        pytest.param([("nfs", "a", CSI)], 1, SUCCESS, id="not a volume of a CSI driver"),
        pytest.param([("gone", "a", CSI)], 1, SUCCESS, id="a volume that does not exist"),
        pytest.param([("x", "a", CSI), ("x", "a", CSI)], 2, SUCCESS, id="twice the same volume"),
        pytest.param([("v-there", "a", CSI)], 2, SUCCESS, id="what a pod there uses counts once"),
        pytest.param([("v-new", "a", CSI)], 1, FULL, id="what the pod brings counts twice"),
    ],
)
def test_volume_attachments(attachments: list[Any], limit: int, expected: Status) -> None:
    objects = [
        *bound("new"),
        *bound("there"),
        make_volume("x", driver=CSI),
        make_volume("nfs", spec={"nfs": {}}),
        *(make_attachment(f"va{i}", *parts) for i, parts in enumerate(attachments)),
    ]
    pods = [using("p", "there", node_name="a")] if attachments[0][0] == "v-there" else []

    assert judge(using("new", "new"), *objects, there=pods, limits={CSI: limit}) == expected


def test_limits_are_those_of_each_node() -> None:
    table = make_table(make_node("none"), make_node("one"), make_node("zero"))
    nodes = [make_csi_node("one", {CSI: 1}), make_csi_node("zero", {CSI: 0, "other": 5})]
    plugin = NodeVolumeLimits.from_args(None, make_handle(table, [*bound("c"), *nodes]))

    verdict = plugin.filter_rows(CycleState(), using("p", "c"), table, ALL)

    assert verdict.feasible.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), SKIP, id="no volumes"),
        pytest.param(using("p", {"csi": {"driver": CSI}}), SKIP, id="a volume made inline"),
        pytest.param(using("p", "c"), SUCCESS, id="a claim"),
        pytest.param(using("p", ephemeral_volume()), SUCCESS, id="an ephemeral volume"),
        pytest.param(using("p", gce_disk("d")), SUCCESS, id="a migrated disk"),
        pytest.param(using("p", {"rbd": {"image": "i"}}), SKIP, id="a disk that is not migrated"),
    ],
)
def test_pre_filter(pod: Pod, expected: Status) -> None:
    table = make_table(make_node("a"))

    assert NodeVolumeLimits().pre_filter(CycleState(), pod, table) == expected


# The driver must be there (feature gate VolumeLimitScaling)


@pytest.mark.parametrize(
    ("driver", "limits", "gate", "fits"),
    [
        pytest.param({"preventPodSchedulingIfMissing": True}, {"x": 1}, True, False, id="missing"),
        pytest.param({"preventPodSchedulingIfMissing": True}, {}, True, False, id="no CSINode"),
        pytest.param({"preventPodSchedulingIfMissing": True}, {CSI: None}, True, True, id="there"),
        pytest.param({"preventPodSchedulingIfMissing": True}, {"x": 1}, False, True, id="gate off"),
        pytest.param({}, {"x": 1}, True, True, id="the driver does not ask for it"),
        pytest.param(None, {"x": 1}, True, True, id="no such driver is known"),
    ],
)
def test_nodes_that_lack_the_driver(
    driver: dict[str, Any] | None, limits: dict[str, int | None], gate: bool, fits: bool
) -> None:
    objects = [*bound("c"), *([] if driver is None else [make_csi_driver(CSI, **driver)])]

    status = judge(using("p", "c"), *objects, limits=limits, gates={"VolumeLimitScaling": gate})

    text = f"{CSI} CSI driver is not installed on the node"
    assert status == (SUCCESS if fits else Status(Code.Unschedulable, (text,)))


# The counts follow the cluster


class World:
    """A table, its objects and the plugin over them."""

    def __init__(self, *objects: Any) -> None:
        self.table = make_table(make_node("a"), make_node("b"))
        self.writer = TableWriter(self.table)
        self.handle: Handle = make_handle(self.table, objects)
        assert isinstance(self.handle.lister, ObjectLister)
        self.lister = self.handle.lister
        self.plugin = NodeVolumeLimits.from_args(None, self.handle)

    def fits(self, *volumes: Any) -> list[bool]:
        verdict = self.plugin.filter_rows(CycleState(), using("new", *volumes), self.table, ALL)
        return [bool(f) for f in verdict.feasible]


@pytest.fixture
def world() -> World:
    limits = {CSI: 1}
    nodes = [make_csi_node("a", limits), make_csi_node("b", limits)]
    world = World(*bound("c"), *bound("d"), *nodes, make_storage_class(provisioner=CSI))
    assert world.fits("c") == [True, True]
    return world


def test_a_pod_comes_and_goes(world: World) -> None:
    pod = using("p", "d", node_name="a")

    world.writer.add_pod(pod)
    assert world.fits("c") == [False, True]
    world.writer.remove_pod(pod)
    assert world.fits("c") == [True, True]


def test_nothing_is_remembered_of_pods_that_are_gone(world: World) -> None:
    pod = using("p", "d", gce_disk("x"), node_name="a")
    world.writer.add_pod(pod)
    world.fits("c")

    world.writer.remove_pod(pod)
    world.fits("c")

    kept = world.plugin._facts
    assert kept is not None
    assert not kept.attached._known
    assert not kept.attached._dependents


def test_a_claim_gets_its_volume(world: World) -> None:
    world.lister.add(make_claim("late"))
    world.writer.add_pod(using("p", "late", node_name="a"))
    assert world.fits("c") == [False, True]

    world.lister.add(make_claim("late", volume="v-c"))  # the volume of c: the two share it now

    assert world.fits("c") == [True, True]
    assert world.fits("d") == [False, True]


def test_a_claim_comes_after_its_pod(world: World) -> None:
    world.writer.add_pod(using("p", "later", node_name="b"))
    assert world.fits("c") == [True, True]

    world.lister.add(make_claim("later", volume="v-d"))
    assert world.fits("c") == [True, False]
    world.lister.remove(make_claim("later"))
    assert world.fits("c") == [True, True]


def test_a_volume_and_a_class_come_and_change(world: World) -> None:
    world.lister.add(make_claim("odd", volume="odd", class_name="new"))
    world.writer.add_pod(using("p", "odd", node_name="a"))
    assert world.fits("c") == [True, True]

    world.lister.add(make_storage_class("new", provisioner=CSI))
    assert world.fits("c") == [False, True]
    world.lister.add(make_volume("odd", spec={"nfs": {}}))
    assert world.fits("c") == [True, True]
    world.lister.add(make_volume("odd", driver=CSI))
    assert world.fits("c") == [False, True]


def test_an_attachment_comes_moves_and_goes(world: World) -> None:
    world.lister.add(make_attachment("va", "v-d", "a", CSI))
    assert world.fits("c") == [False, True]
    world.lister.add(make_attachment("va", "v-d", "b", CSI))
    assert world.fits("c") == [True, False]
    world.lister.add(make_volume("v-d", spec={"nfs": {}}))
    assert world.fits("c") == [True, True]
    world.lister.add(make_volume("v-d", driver=CSI))
    world.lister.remove(make_attachment("va", "v-d", "b", CSI))
    assert world.fits("c") == [True, True]


def test_an_attachment_may_come_before_its_node(world: World) -> None:
    world.lister.add(make_attachment("va", "v-d", "late", CSI))
    world.lister.add(make_csi_node("late", {CSI: 1}))
    assert world.fits("c") == [True, True]

    world.writer.set_node(make_node("late"))

    assert world.fits("c") == [True, True, False]


def test_a_row_that_another_node_takes_has_that_nodes_volumes_and_limits(world: World) -> None:
    world.lister.add(make_attachment("va", "v-d", "a", CSI))
    assert world.fits("c") == [False, True]

    world.writer.remove_node("a")
    world.writer.set_node(make_node("new"))
    assert world.table.row_of["new"] == 0
    assert world.fits("c") == [True, True]
    world.lister.add(make_csi_node("new", {CSI: 0}))
    assert world.fits("c") == [False, True]
    world.lister.remove(make_csi_node("new"))
    assert world.fits("c") == [True, True]


def test_changes_between_two_reads_are_counted_in_order(world: World) -> None:
    """A claim is bound while its pods come and go: each is removed with the identity of its addition."""
    first, second = using("x", "mix", node_name="a"), using("y", "mix", node_name="b")
    world.lister.add(make_claim("mix"))
    world.writer.add_pod(first)
    assert world.fits("c") == [False, True]

    world.writer.add_pod(second)
    world.lister.add(make_claim("mix", volume="v-d"))
    world.writer.remove_pod(first)
    world.writer.remove_pod(second)

    assert world.fits("c") == [True, True]
    assert world.fits("d") == [True, True]


def test_what_ifs_count_what_is_on_the_copy(world: World) -> None:
    old = using("old", "d", node_name="a")
    world.writer.add_pod(old)
    pod, state = using("new", "c"), CycleState()
    assert world.fits("c") == [False, True]
    what_if = WhatIf(world.table, 0)

    what_if.remove_pod(old)
    assert world.plugin.filter_node(state, pod, what_if.node) == SUCCESS
    nested = WhatIf(what_if.node.table, 0)
    nested.add_pod(using("rival", "d"))
    assert world.plugin.filter_node(state, pod, nested.node) == FULL
    nested.add_pod(using("sharer", "c"))
    assert world.plugin.filter_node(state, pod, nested.node) == SUCCESS

    assert world.plugin.filter_node(state, pod, what_if.node) == SUCCESS
    assert world.fits("c") == [False, True]


def test_conformance() -> None:
    pods = [using("x", "a", "b", node_name="n0"), using("y", gce_disk("d"), node_name="n1")]
    table = make_table(*(make_node(f"n{i}") for i in range(4)), pods=pods)
    nodes = [make_csi_node(f"n{i}", {CSI: 2, GCE: i}) for i in range(3)]
    wanted = [using("p", "a", "c"), using("q", gce_disk("e"), "b"), using("r", "nope"), make_pod()]

    objects = [*bound("a"), *bound("b"), *bound("c"), *nodes]
    check_conformance(NodeVolumeLimits, wanted, table, objects=objects)
