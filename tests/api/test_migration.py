from typing import Any

import pytest

from bayplan.api.migration import (
    PLUGIN_NAMED,
    inline_csi_driver,
    inline_handle,
    is_inline_migrated,
    migrated_node_selector,
    volume_handle,
)
from bayplan.api.volumes import Volume
from bayplan.errors import InputError
from bayplan.testing.builders import make_pod
from bayplan.testing.storage import make_volume


def volume(**source: Any) -> Volume:
    (made,) = make_pod(spec={"volumes": [{"name": "v", **source}]}).spec.volumes or ()
    return made


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        pytest.param({"gcePersistentDisk": {"pdName": "x"}}, "pd.csi.storage.gke.io", id="GCE"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "x"}}, "ebs.csi.aws.com", id="AWS"),
        pytest.param({"cinder": {"volumeID": "x"}}, "cinder.csi.openstack.org", id="Cinder"),
        pytest.param({"azureDisk": {"diskName": "x"}}, "disk.csi.azure.com", id="Azure disk"),
        pytest.param({"azureFile": {"shareName": "x"}}, "file.csi.azure.com", id="Azure file"),
        pytest.param(
            {"vsphereVolume": {"volumePath": "x"}}, "csi.vsphere.vmware.com", id="vSphere"
        ),
        pytest.param({"portworxVolume": {"volumeID": "x"}}, "pxd.portworx.com", id="Portworx"),
        pytest.param({"rbd": {"image": "x", "monitors": []}}, None, id="Ceph is not migrated"),
        pytest.param({"iscsi": {"iqn": "x"}}, None, id="iSCSI has no driver"),
        pytest.param({"csi": {"driver": "x"}}, None, id="a CSI volume"),
    ],
)
def test_driver(source: dict[str, Any], driver: str | None) -> None:
    assert inline_csi_driver(volume(**source)) == driver
    assert is_inline_migrated(volume(**source)) is (driver is not None)


@pytest.mark.parametrize(
    ("volume_id", "usable"),
    [
        pytest.param("vol-1", True, id="bare"),
        pytest.param("anything", True, id="bare, not checked"),
        pytest.param("aws://eu-1a/vol-1", True, id="with its zone"),
        pytest.param("aws:///vol-1", True, id="without its zone"),
        pytest.param("aws://eu-1a/vol-1?x=y", True, id="with a query"),
        pytest.param("aws://vol-1", False, id="the zone only"),
        pytest.param("aws://eu-1a/disk-1", False, id="no volume"),
        pytest.param("aws://eu-1a/b/vol-1", False, id="too deep"),
    ],
)
def test_aws_volume_id(volume_id: str, usable: bool) -> None:
    disk = volume(awsElasticBlockStore={"volumeID": volume_id})

    assert is_inline_migrated(disk)
    if usable:
        assert inline_csi_driver(disk) == "ebs.csi.aws.com"
    else:
        with pytest.raises(InputError, match="volumeID"):
            inline_csi_driver(disk)


GCE = {"gcePersistentDisk": {"pdName": "d"}}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        pytest.param(GCE, {}, "zones/UNSPECIFIED/disks/d", id="a disk in no zone"),
        pytest.param(GCE, {ZONE: "z-1-a"}, "zones/z-1-a/disks/d", id="a disk in a zone"),
        pytest.param(GCE, {BETA_ZONE: "old", ZONE: "new"}, "zones/old/disks/d", id="the old label"),
        pytest.param(GCE, {ZONE: "us-1-a__us-1-b"}, "regions/us-1/disks/d", id="a regional disk"),
        pytest.param({"cinder": {"volumeID": "x"}}, {}, "x", id="Cinder"),
        pytest.param({"portworxVolume": {"volumeID": "x"}}, {}, "x", id="Portworx"),
        pytest.param({"azureDisk": {"diskURI": "u", "kind": "Managed"}}, {}, "u", id="Azure disk"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, {}, "vol-1", id="AWS"),
    ],
)
def test_handle(source: dict[str, Any], labels: dict[str, str], handle: str) -> None:
    expected = f"projects/UNSPECIFIED/{handle}" if source is GCE else handle

    assert volume_handle(make_volume(spec=source, labels=labels)) == expected
    if not labels:
        assert inline_handle(volume(**source)) == expected


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        pytest.param(GCE, {ZONE: "us-1-a__us-2-a"}, id="zones of two regions"),
        pytest.param(GCE, {ZONE: "here__there"}, id="zones of another shape"),
        pytest.param({"azureDisk": {"diskURI": "u", "kind": "Shared"}}, {}, id="an unmanaged disk"),
    ],
)
def test_no_handle(source: dict[str, Any], labels: dict[str, str]) -> None:
    with pytest.raises(InputError):
        volume_handle(make_volume(spec=source, labels=labels))


def term(**values: list[str]) -> dict[str, Any]:
    names = {"zone": ZONE, "beta": BETA_ZONE, "region": BETA_REGION, "host": "host"}
    expressions = [
        {"key": names[key], "operator": "In", "values": found} for key, found in values.items()
    ]
    return {"matchExpressions": expressions}


CSI_ZONE = "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        pytest.param(None, {}, None, id="no affinity and no labels"),
        pytest.param([term(zone=["a"])], {}, [{CSI_ZONE: ("a",)}], id="the zone is renamed"),
        pytest.param(
            [term(beta=["a"], region=["r"])],
            {},
            [{CSI_ZONE: ("a",), REGION: ("r",)}],
            id="old zone and region are renamed",
        ),
        pytest.param(
            [term(zone=["a"], beta=["b"])],
            {},
            [{CSI_ZONE: ("a",), BETA_ZONE: ("b",)}],
            id="the old zone stays beside the new one",
        ),
        pytest.param(None, {ZONE: "b__a"}, [{CSI_ZONE: ("a", "b")}], id="zones of the labels"),
        pytest.param(
            [term(host=["h"]), term(host=["i"])],
            {BETA_ZONE: "a"},
            [{"host": ("h",), CSI_ZONE: ("a",)}, {"host": ("i",), CSI_ZONE: ("a",)}],
            id="zones of the labels narrow every term",
        ),
        pytest.param(
            [term(zone=["a"])],
            {ZONE: "b"},
            [{CSI_ZONE: ("a",)}],
            id="the affinity takes precedence",
        ),
        pytest.param(None, {ZONE: ""}, None, id="a label without a value"),
    ],
)
def test_node_selector(terms: Any, labels: dict[str, str], expected: Any) -> None:
    affinity = None if terms is None else {"nodeSelectorTerms": terms}
    disk = make_volume(spec=GCE, labels=labels, affinity=affinity)

    selector = migrated_node_selector(disk, PLUGIN_NAMED["kubernetes.io/gce-pd"])

    found = selector and [{r.key: r.values for r in term.expressions} for term in selector.terms]
    assert found == expected


def test_a_driver_without_a_topology_key_keeps_the_affinity() -> None:
    disk = make_volume(spec={"azureDisk": {"diskURI": "u"}}, zones=["a"], labels={ZONE: "b"})
    affinity = disk.spec.node_affinity

    found = migrated_node_selector(disk, PLUGIN_NAMED["kubernetes.io/azure-disk"])

    assert affinity is not None
    assert found is affinity.required
