"""VolumeZone: the labels of volumes against those of nodes."""

from typing import Any

import pytest

from bayplan.framework import SKIP, SUCCESS, Code, CycleState, Status
from bayplan.plugins.volume_zone import REASON, VolumeZone
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
POD = make_pod("p", spec={"volumes": [claim_volume("c")]})


def make_plugin(*objects: Any, table: Any = None) -> VolumeZone:
    return VolumeZone.from_args(None, make_handle(table, objects))


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: "a __ b"}, {ZONE: "b"}, True, id="spaces around zones do not matter"),
        pytest.param({ZONE: "a__"}, {ZONE: "b"}, True, id="a list with a gap says nothing"),
        pytest.param({ZONE: "a"}, {}, True, id="a node that does not say where it is"),
        pytest.param({ZONE: "a"}, {REGION: "a"}, False, id="a node that says its region only"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="old label, new node"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="new label, old node"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the old one counts"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="old region, new node"),
        pytest.param(
            {ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="every label must match"
        ),
    ],
)
def test_filter(volume_labels: dict[str, str], node_labels: dict[str, str], fits: bool) -> None:
    table = make_table(make_node("n", labels=node_labels))
    objects = [make_claim("c", volume="v"), make_volume("v", labels=volume_labels)]
    plugin, state = make_plugin(*objects, table=table), CycleState()

    status = plugin.pre_filter(state, POD, table)
    verdict = plugin.filter_rows(state, POD, table, ALL)

    assert status in (SUCCESS, SKIP)
    assert verdict.feasible.tolist() == [fits]
    if not fits:
        assert verdict.status(0) == Status(Code.UnschedulableAndUnresolvable, (REASON,))


@pytest.mark.parametrize(
    ("name", "objects", "expected"),
    [
        pytest.param("", [], "PersistentVolumeClaim had no name", id="a claim without a name"),
        pytest.param("c", [], 'persistentvolumeclaim "c" not found', id="no such claim"),
        pytest.param(
            "c", [make_claim("c", volume="v")], 'persistentvolume "v" not found', id="no volume"
        ),
        pytest.param(
            "c",
            [make_claim("c", class_name=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            "c",
            [make_claim("c", class_name="x")],
            'storageclass.storage.k8s.io "x" not found',
            id="no such class",
        ),
        pytest.param(
            "c",
            [make_claim("c", class_name="x"), make_storage_class("x", waits=None)],
            'VolumeBindingMode not set for StorageClass "x"',
            id="a class that does not say when",
        ),
        pytest.param(
            "c",
            [make_claim("c", class_name="x"), make_storage_class("x", waits=False)],
            "PersistentVolume had no name",
            id="a claim that should be bound by now",
        ),
    ],
)
def test_a_pod_whose_volumes_are_not_there_is_refused(
    name: str, objects: list[Any], expected: str
) -> None:
    pod = make_pod("p", spec={"volumes": [{"persistentVolumeClaim": {"claimName": name}}]})
    table = make_table(make_node("n"))

    status = make_plugin(*objects, table=table).pre_filter(CycleState(), pod, table)

    assert status == Status(Code.UnschedulableAndUnresolvable, (expected,))


@pytest.mark.parametrize(
    ("volumes", "objects"),
    [
        pytest.param(
            [claim_volume("c")],
            [make_claim("c", class_name="x"), make_storage_class("x")],
            id="the scheduler is to choose the volume",
        ),
        pytest.param(
            [claim_volume("c")],
            [make_claim("c", volume="v"), make_volume("v")],
            id="a volume without zones",
        ),
        pytest.param([{"name": "e", "ephemeral": {}}], [], id="a claim made for the pod"),
        pytest.param([{"name": "d", "iscsi": {"iqn": "q"}}], [], id="a disk in the pod"),
    ],
)
def test_pods_that_no_zone_binds_are_skipped(volumes: list[Any], objects: list[Any]) -> None:
    table = make_table(make_node("n", zone="a"))

    plugin = make_plugin(*objects, table=table)

    pod = make_pod("p", spec={"volumes": volumes})
    assert plugin.pre_filter(CycleState(), pod, table) == SKIP
    if not any("persistentVolumeClaim" in volume for volume in volumes):
        assert plugin.settled(pod.spec).pre_filter == SKIP


def test_without_its_pre_filter_the_filter_computes_its_state() -> None:
    table = make_table(make_node("in", zone="a"), make_node("out", zone="b"))
    volume = make_volume("v", labels={ZONE: "a"})
    plugin = make_plugin(make_claim("c", volume="v"), volume, table=table)

    verdict = plugin.filter_rows(CycleState(), POD, table, ALL)

    assert verdict.feasible.tolist() == [True, False]
    missing = make_plugin(table=table).filter_rows(CycleState(), POD, table, ALL)
    assert missing.histogram() == {'persistentvolumeclaim "c" not found': 2}


def test_conformance() -> None:
    table = make_table(
        make_node("a", zone="a"), make_node("b", labels={BETA_ZONE: "b"}), make_node("c")
    )
    objects = [make_claim("c", volume="v"), make_volume("v", labels={BETA_ZONE: "a__b"})]

    check_conformance(VolumeZone, [POD, make_pod("q")], table, objects=objects)
