from typing import Any

import pytest

from mooring.api.migration import inline_csi_driver, is_inline_migrated
from mooring.api.volumes import Volume
from mooring.errors import InputError
from mooring.testing.builders import make_pod


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
        pytest.param({"rbd": {"image": "x", "monitors": []}}, None, id="Ceph was given up"),
        pytest.param({"iscsi": {"iqn": "x"}}, None, id="iSCSI has no driver"),
        pytest.param({"csi": {"driver": "x"}}, None, id="a driver's own needs no other"),
    ],
)
def test_driver(source: dict[str, Any], driver: str | None) -> None:
    assert inline_csi_driver(volume(**source)) == driver
    assert is_inline_migrated(volume(**source)) is (driver is not None)


@pytest.mark.parametrize(
    ("volume_id", "usable"),
    [
        pytest.param("vol-1", True, id="bare"),
        pytest.param("anything", True, id="bare, not looked at"),
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
