"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: disks of one cloud, as older configurations count them."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SUCCESS, Code, CycleState, Status
from bayplan.plugins.in_tree import IN_TREE
from bayplan.plugins.node_volume_limits.clouds import (
    AzureDiskLimits,
    CinderLimits,
    CloudLimits,
    EBSLimits,
    GCEPDLimits,
)
from bayplan.plugins.node_volume_limits.plugin import REASON
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from bayplan.testing.storage import (
    claim_volume,
    ephemeral_volume,
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
)

SOURCES: dict[type[CloudLimits], tuple[str, str]] = {
    EBSLimits: ("awsElasticBlockStore", "volumeID"),
    GCEPDLimits: ("gcePersistentDisk", "pdName"),
    AzureDiskLimits: ("azureDisk", "diskName"),
    CinderLimits: ("cinder", "volumeID"),
}
FULL = Status(Code.Unschedulable, (REASON,))


def disk(plugin: type[CloudLimits], name: str) -> dict[str, Any]:
    field, key = SOURCES[plugin]
    return {field: {key: name}}


def using(name: str, *volumes: Any, **fields: Any) -> Pod:
    return make_pod(name, spec={"volumes": list(volumes)}, **fields)


def judge(
    kind: type[CloudLimits],
    pod: Pod,
    *objects: Any,
    there: int = 0,
    node: Any = None,
    limit: int | None = None,
) -> Status:
    """Status of a node with so many disks."""
    old = using("old", *(disk(kind, f"d{i}") for i in range(there)), node_name="a")
    table = make_table(node or make_node("a"), pods=[old])
    plugin = kind(limit)
    plugin.handle = make_handle(table, objects)
    return plugin.filter_rows(CycleState(), pod, table, ALL).status(0)


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(EBSLimits, 39), (GCEPDLimits, 16), (AzureDiskLimits, 16), (CinderLimits, 256)],
)
def test_default_limits(kind: type[CloudLimits], limit: int) -> None:
    pod = using("new", disk(kind, "new"))

    assert judge(kind, pod, there=limit - 1) == SUCCESS
    assert judge(kind, pod, there=limit) == FULL
    assert judge(kind, using("new", disk(kind, "d0")), there=limit) == SUCCESS
    assert judge(kind, make_pod("new"), there=limit + 1) == SUCCESS


@pytest.mark.parametrize(
    "label", ["beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"]
)
@pytest.mark.parametrize(
    ("machine", "limit"), [("m5.large", 25), ("t3.nano", 25), ("m4.large", 39), ("z1d", 25)]
)
def test_newer_machines_of_aws_attach_fewer(label: str, machine: str, limit: int) -> None:
    node, pod = make_node("a", labels={label: machine}), using("new", disk(EBSLimits, "new"))

    assert judge(EBSLimits, pod, there=limit - 1, node=node) == SUCCESS
    assert judge(EBSLimits, pod, there=limit, node=node) == FULL


def test_a_node_may_say_how_many_and_a_configuration_may_too() -> None:
    pod = using("new", disk(GCEPDLimits, "new"))
    node = make_node("a", extended={"attachable-volumes-gce-pd": 2})

    assert judge(GCEPDLimits, pod, there=2, node=node) == FULL
    assert judge(GCEPDLimits, pod, there=1, node=node, limit=1) == SUCCESS
    assert judge(GCEPDLimits, pod, there=1, limit=1) == FULL


OWN = "kubernetes.io/gce-pd"


@pytest.mark.parametrize(
    ("volume", "objects", "counts"),
    [
        pytest.param(disk(GCEPDLimits, "x"), [], True, id="a disk in the pod"),
        pytest.param(disk(EBSLimits, "x"), [], False, id="a disk of another cloud"),
        pytest.param(
            claim_volume("c"),
            [make_claim("c", volume="v"), make_volume("v", spec=disk(GCEPDLimits, "x"))],
            True,
            id="a claim on a disk",
        ),
        pytest.param(
            claim_volume("c"),
            [make_claim("c", volume="v"), make_volume("v", driver="csi")],
            False,
            id="a claim on something else",
        ),
        pytest.param(claim_volume("c"), [], False, id="a claim that does not exist"),
        pytest.param(
            claim_volume("c"),
            [make_claim("c"), make_storage_class(provisioner=OWN)],
            True,
            id="a claim without a volume, of a class of this cloud",
        ),
        pytest.param(
            claim_volume("c"),
            [make_claim("c", volume="gone"), make_storage_class(provisioner=OWN)],
            True,
            id="a claim whose volume is gone",
        ),
        pytest.param(
            claim_volume("c"),
            [make_claim("c"), make_storage_class(provisioner="other")],
            False,
            id="a claim of another class",
        ),
        pytest.param(ephemeral_volume(), [], False, id="ephemeral volumes are not looked at"),
        pytest.param(
            disk(GCEPDLimits, "x"), [make_csi_node("a", migrated=[OWN])], False, id="migrated there"
        ),
        pytest.param(disk(GCEPDLimits, "x"), [make_csi_node("a")], True, id="not migrated there"),
    ],
)
def test_what_counts(volume: Any, objects: list[Any], counts: bool) -> None:
    status = judge(GCEPDLimits, using("new", volume), *objects, limit=0)

    assert status == (FULL if counts else SUCCESS)


def test_a_claim_without_a_name_is_an_error() -> None:
    pod = using("new", {"persistentVolumeClaim": {"claimName": ""}})

    status = judge(GCEPDLimits, pod)

    assert (status.code, status.message) == (Code.Error, "PersistentVolumeClaim had no name")


@pytest.mark.parametrize("kind", list(SOURCES))
def test_conformance(kind: type[CloudLimits]) -> None:
    old = using("old", *(disk(kind, f"d{i}") for i in range(40)), node_name="a")
    table = make_table(make_node("a"), make_node("b"), pods=[old])
    pods = [
        using("p", disk(kind, "d0"), disk(kind, "n")),
        using("q", claim_volume("c")),
        make_pod(),
    ]

    check_conformance(kind, pods, table)
    assert kind in IN_TREE
