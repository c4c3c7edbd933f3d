"""VolumeRestrictions: disks that pods on one node cannot share, claims for one pod."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SKIP, SUCCESS, Code, CycleState, Status
from bayplan.plugins.volume_restrictions import REASON_DISK, VolumeRestrictions
from bayplan.releases.release import DEFAULT_RELEASE
from bayplan.table import ALL
from bayplan.table.what_if import WhatIf
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume
from tests.rig.scenarios import Scenario

ONE_POD = ("ReadWriteOncePod",)

REASON_ONE_POD = DEFAULT_RELEASE.one_pod_claim_reason


def using(name: str, *volumes: dict[str, Any], **fields: Any) -> Pod:
    return make_pod(name, spec={"volumes": list(volumes)}, **fields)


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"iscsi": {"iqn": name, "lun": lun, "readOnly": read_only}}


def rbd(
    monitors: str, image: str = "i", pool: str = "p", read_only: bool = False
) -> dict[str, Any]:
    source = {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}
    return {"rbd": source}


@pytest.mark.parametrize(
    ("wanted", "there", "fits"),
    [
        pytest.param(gce("d"), gce("d"), False, id="GCE: the same disk"),
        pytest.param(gce("d"), gce("e"), True, id="GCE: another disk"),
        pytest.param(gce("d", True), gce("d", True), True, id="GCE: two readers"),
        pytest.param(gce("d", True), gce("d"), False, id="GCE: a reader and a writer"),
        pytest.param(gce("d"), gce("d", True), False, id="GCE: a writer and a reader"),
        pytest.param(aws("d"), aws("d"), False, id="AWS: the same disk"),
        pytest.param(aws("d", True), aws("d", True), False, id="AWS: not even two readers"),
        pytest.param(aws("d"), gce("d"), True, id="disks of two clouds with one name"),
        pytest.param(iscsi("q"), iscsi("q", lun=1), False, id="iSCSI: the unit does not matter"),
        pytest.param(iscsi("q", True), iscsi("q", True), True, id="iSCSI: two readers"),
        pytest.param(rbd("ab"), rbd("bc"), False, id="RBD: one monitor in common"),
        pytest.param(rbd("a"), rbd("b"), True, id="RBD: no monitor in common"),
        pytest.param(rbd("a"), rbd("a", image="j"), True, id="RBD: another image"),
        pytest.param(rbd("a"), rbd("a", pool="q"), True, id="RBD: another pool"),
        pytest.param(rbd("a", read_only=True), rbd("a", read_only=True), True, id="RBD: readers"),
        pytest.param(rbd(""), rbd(""), True, id="RBD: no monitors at all"),
    ],
)
def test_disks(wanted: dict[str, Any], there: dict[str, Any], fits: bool) -> None:
    table = make_table(
        make_node("a"), make_node("b"), pods=[using("old", there, node_name="a", namespace="other")]
    )
    plugin, state, pod = VolumeRestrictions(), CycleState(), using("new", wanted)
    plugin.handle = make_handle(table)

    assert plugin.pre_filter(state, pod, table) == SUCCESS
    verdict = plugin.filter_rows(state, pod, table, ALL)

    assert verdict.feasible.tolist() == [fits, True]
    if not fits:
        assert verdict.status(0) == Status(Code.Unschedulable, (REASON_DISK,))


def test_a_disk_is_free_once_all_its_pods_are_gone() -> None:
    first, second = (using(name, gce("d", True), node_name="a") for name in ("x", "y"))
    table = make_table(make_node("a"), pods=[first, second])
    plugin, state, pod = VolumeRestrictions(), CycleState(), using("new", gce("d"))
    plugin.handle = make_handle(table)
    plugin.pre_filter(state, pod, table)
    writer = TableWriter(table)

    seen = []
    for gone in (first, second):
        writer.remove_pod(gone)
        seen += plugin.filter_rows(state, pod, table, ALL).feasible.tolist()

    assert seen == [False, True]


def test_what_if_without_the_pod_that_has_the_disk() -> None:
    old = using("old", gce("d"), node_name="a")
    table = make_table(make_node("a"), pods=[old])
    plugin, state, pod = VolumeRestrictions(), CycleState(), using("new", gce("d"))
    plugin.handle = make_handle(table)
    plugin.pre_filter(state, pod, table)
    what_if = WhatIf(table, 0)

    what_if.remove_pod(old)
    assert plugin.filter_node(state, pod, what_if.node) == SUCCESS
    nested = WhatIf(what_if.node.table, 0)
    nested.add_pod(using("other", gce("d", True)))
    assert plugin.filter_node(state, pod, nested.node).reasons == (REASON_DISK,)

    assert plugin.filter_node(state, pod, what_if.node) == SUCCESS
    assert plugin.filter_node(state, pod, table.node_at(0)).reasons == (REASON_DISK,)


# Claims for one pod


def plugin_with(table: Any, *objects: Any) -> VolumeRestrictions:
    return VolumeRestrictions.from_args(None, make_handle(table, objects))


@pytest.mark.parametrize(
    ("modes", "holder", "used"),
    [
        pytest.param(ONE_POD, {"node_name": "a"}, True, id="a pod on a node uses it"),
        pytest.param(ONE_POD, {"node_name": "a", "namespace": "other"}, False, id="a namesake"),
        pytest.param(("ReadWriteOnce",), {"node_name": "a"}, False, id="a claim for many pods"),
        pytest.param(ONE_POD, None, False, id="no pod uses it"),
        pytest.param(ONE_POD, {"node_name": "gone"}, False, id="its user is on no node there is"),
    ],
)
def test_a_claim_for_one_pod(
    modes: tuple[str, ...], holder: dict[str, str] | None, used: bool
) -> None:
    pods = [] if holder is None else [using("old", claim_volume("c"), **holder)]
    table = make_table(make_node("a"), make_node("b"), pods=pods)
    plugin = plugin_with(table, make_claim("c", access_modes=modes))
    state, pod = CycleState(), using("new", claim_volume("c"))

    status = plugin.pre_filter(state, pod, table)

    assert status == (SUCCESS if used else SKIP)
    if used:
        verdict = plugin.filter_rows(state, pod, table, ALL)
        assert [verdict.status(row) for row in (0, 1)] == [
            Status(Code.Unschedulable, (REASON_ONE_POD,))
        ] * 2


def test_a_claim_that_does_not_exist_refuses_the_pod() -> None:
    table = make_table(make_node("a"))

    status = plugin_with(table).pre_filter(CycleState(), using("new", claim_volume("c")), table)

    expected = 'persistentvolumeclaim "c" not found'
    assert status == Status(Code.UnschedulableAndUnresolvable, (expected,))


def test_only_the_disk_is_named_where_both_clash() -> None:
    old = using("old", claim_volume("c"), gce("d"), node_name="a")
    table = make_table(make_node("a"), make_node("b"), pods=[old])
    plugin = plugin_with(table, make_claim("c", access_modes=ONE_POD))
    state, pod = CycleState(), using("new", claim_volume("c"), gce("d"))
    plugin.pre_filter(state, pod, table)

    verdict = plugin.filter_rows(state, pod, table, ALL)

    assert verdict.status(0).reasons == (REASON_DISK,)
    assert verdict.status(1).reasons == (REASON_ONE_POD,)


def test_removing_the_holder_helps_on_every_node_and_adding_it_back_does_not() -> None:
    old = using("old", claim_volume("c"), node_name="a")
    table = make_table(make_node("a"), make_node("b"), pods=[old])
    plugin = plugin_with(table, make_claim("c", access_modes=ONE_POD))
    state, pod = CycleState(), using("new", claim_volume("c"))
    plugin.pre_filter(state, pod, table)
    what_if, copy = WhatIf(table, 0), state.clone()

    assert plugin.remove_pod(copy, pod, old, what_if.node) == SUCCESS
    assert plugin.filter_node(copy, pod, table.node_at(1)) == SUCCESS
    assert plugin.add_pod(copy, pod, old, what_if.node) == SUCCESS
    assert plugin.filter_node(copy, pod, table.node_at(1)).reasons == (REASON_ONE_POD,)
    assert plugin.filter_node(state, pod, table.node_at(0)).reasons == (REASON_ONE_POD,)


def test_without_its_pre_filter_the_filter_fails() -> None:
    table = make_table(make_node("a"))

    verdict = plugin_with(table).filter_rows(CycleState(), using("p", gce("d")), table, ALL)

    assert verdict.error is not None
    assert verdict.error.message == 'cannot read "PreFilterVolumeRestrictions" from cycleState'
    status = plugin_with(table).add_pod(
        CycleState(), using("p", gce("d")), make_pod("q"), table.node_at(0)
    )
    assert status.code is Code.Error


def test_preemption_evicts_the_holder_of_the_claim() -> None:
    claim = make_claim("c", volume="v", access_modes=ONE_POD)
    scenario = Scenario(
        make_node("a"), make_node("b"), claim, make_volume("v", claim=claim), make_storage_class()
    )
    scenario.add(using("low", claim_volume("c"), node_name="a", priority=1))
    scenario.add(using("high", claim_volume("c"), priority=100))

    scenario.settle()

    assert scenario.pod("high").node_name == "a"
    assert scenario.cluster.get("Pod", "default", "low") is None


def test_conformance() -> None:
    pods = [
        using("x", gce("d"), claim_volume("c"), node_name="a"),
        using("y", rbd("m"), node_name="b"),
    ]
    table = make_table(make_node("a"), make_node("b"), make_node("c"), pods=pods)
    wanted = [using("p", gce("d")), using("q", rbd("mn"), claim_volume("c")), make_pod("r")]

    check_conformance(
        VolumeRestrictions, wanted, table, objects=[make_claim("c", access_modes=ONE_POD)]
    )
