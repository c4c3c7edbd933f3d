"""Faults of the volumes of pods, in the API server's words."""

from typing import Any

import pytest

from .faults import faults

CONTAINERS = [{"name": "c", "image": "i"}]
AT = "spec.volumes[0]"
MODE = "must be a number between 0 and 0777 (octal), both inclusive"
ONE = "may not specify more than 1 volume type"
RANGE = "must be between 0 and 255, inclusive"
TOKEN = f"{AT}.projected.sources[0].serviceAccountToken"


def of_pod(*volumes: dict[str, Any]) -> list[str]:
    """The faults of a pod with these volumes, which are named v unless they have a name."""
    named = [{"name": "v", **volume} for volume in volumes]
    spec = {"containers": CONTAINERS, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
    return faults("pods", spec={**spec, "volumes": named})


def projected(**source: Any) -> dict[str, Any]:
    return {"projected": {"sources": [source]}}


def label(path: str = "labels", **more: Any) -> dict[str, Any]:
    return {"path": path, "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}, **more}


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        pytest.param({"emptyDir": {}}, [], id="valid"),
        pytest.param({}, [f"{AT}: Required value: must specify a volume type"], id="no source"),
        pytest.param(
            {"emptyDir": {}, "hostPath": {"path": "/a"}},
            [f"{AT}.hostPath: Forbidden: {ONE}"],
            id="two sources",
        ),
        pytest.param({"name": "", "emptyDir": {}}, [f"{AT}.name: Required value"], id="no name"),
        pytest.param(
            {"emptyDir": {"sizeLimit": "-1"}},
            [
                f"{AT}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"
            ],
            id="a negative size",
        ),
        pytest.param(
            {"hostPath": {"path": ""}}, [f"{AT}.hostPath.path: Required value"], id="no path"
        ),
        pytest.param(
            {"hostPath": {"path": "/a/../b"}},
            [f"{AT}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
            id="a path with a step back",
        ),
        pytest.param(
            {"gitRepo": {"repository": "r", "directory": "/a"}},
            [f'{AT}.gitRepo.directory: Invalid value: "/a": must be a relative path'],
            id="an absolute path in a repository",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "partition": 256}},
            [
                f"{AT}.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"
            ],
            id="a partition too far",
        ),
        pytest.param(
            {"nfs": {"server": "s", "path": "a"}},
            [f'{AT}.nfs.path: Invalid value: "a": must be an absolute path'],
            id="a relative path of NFS",
        ),
        pytest.param(
            {"iscsi": {"lun": 256, "chapAuthSession": True}},
            [
                f"{AT}.iscsi.targetPortal: Required value",
                f"{AT}.iscsi.iqn: Required value",
                f"{AT}.iscsi.lun: Invalid value: 256: {RANGE}",
                f"{AT}.iscsi.secretRef: Required value",
            ],
            id="iSCSI without anything",
        ),
        pytest.param(
            {"iscsi": {"targetPortal": "p", "iqn": "abc.x", "initiatorName": "iqn.2015"}},
            [
                f'{AT}.iscsi.iqn: Invalid value: "abc.x": must be valid format starting with iqn, eui, or naa',
                f'{AT}.iscsi.initiatorname: Invalid value: "iqn.2015": must be valid format',
            ],
            id="names of iSCSI in a wrong form",
        ),
        pytest.param(
            {"fc": {}},
            [
                f"{AT}.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"
            ],
            id="fibre channel to nothing",
        ),
        pytest.param(
            {"fc": {"targetWWNs": ["w"], "wwids": ["i"]}},
            [
                f'{AT}.fc.targetWWNs: Invalid value: ["w"]: targetWWNs and wwids can not be specified '
                "simultaneously",
                f"{AT}.fc.lun: Required value: lun is required if targetWWNs is specified",
            ],
            id="fibre channel to both",
        ),
        pytest.param(
            {"fc": {"targetWWNs": ["w"], "lun": 256}},
            [f"{AT}.fc.lun: Invalid value: 256: {RANGE}"],
            id="a unit of fibre channel too far",
        ),
        pytest.param(
            {"flocker": {}},
            [f"{AT}.flocker: Required value: one of datasetName and datasetUUID is required"],
            id="no dataset",
        ),
        pytest.param(
            {"flocker": {"datasetName": "a/b", "datasetUUID": "u"}},
            [
                f'{AT}.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified '
                "simultaneously",
                f"{AT}.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
            ],
            id="two datasets",
        ),
        pytest.param(
            {"flexVolume": {"driver": "d", "options": {"x.kubernetes.io/a": "b"}}},
            [
                f'{AT}.flexVolume.options[x.kubernetes.io/a]: Invalid value: "x.kubernetes.io/a": kubernetes.io and '
                "k8s.io namespaces are reserved"
            ],
            id="an option of Kubernetes",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Managed"}},
            [
                f'{AT}.azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{{sub-id}}/'
                'resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"'
            ],
            id="a managed disk elsewhere",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Shared"}},
            [
                f'{AT}.azureDisk.diskURI: Unsupported value: "x": supported values: "https://{{account-name}}.blob.'
                'core.windows.net/{container-name}/{disk-name}.vhd"'
            ],
            id="a blob elsewhere",
        ),
        pytest.param(
            {"secret": {"secretName": "s", "defaultMode": 0o1000, "items": [{"mode": -1}]}},
            [
                f"{AT}.secret.defaultMode: Invalid value: 512: {MODE}",
                f"{AT}.secret.items[0].key: Required value",
                f"{AT}.secret.items[0].path: Required value",
                f"{AT}.secret.items[0].mode: Invalid value: -1: {MODE}",
            ],
            id="a secret with wrong modes",
        ),
        pytest.param(
            {"configMap": {"name": "m", "items": [{"key": "k", "path": "..a"}]}},
            [f"{AT}.configMap.items[0].path: Invalid value: \"..a\": must not start with '..'"],
            id="a file that begins with two dots",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "a"}]}},
            [f"{AT}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
            id="a file of nothing",
        ),
        pytest.param(
            {"downwardAPI": {"items": [label("", resourceFieldRef={"resource": "limits.cpu"})]}},
            [
                f"{AT}.downwardAPI.path: Required value",
                f'{AT}.downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified '
                "simultaneously",
            ],
            id="a file of two things, without a path",
        ),
        pytest.param(
            projected(secret={}, configMap={"name": "m"}),
            [
                f"{AT}.projected.sources[0].secret.name: Required value",
                f"{AT}.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
            ],
            id="two kinds in one source",
        ),
        pytest.param(
            projected(configMap={"name": "m", "items": [{"key": k, "path": "a"} for k in "xy"]}),
            [f'{AT}.projected: Invalid value: "m": conflicting duplicate paths'],
            id="two files at one path",
        ),
        pytest.param(
            projected(downwardAPI={"items": [label("/labels")]}),
            [
                f'{AT}.projected.sources[0].downwardAPI.path: Invalid value: "/labels": must be a relative path'
            ],
            id="an absolute path of a projection",
        ),
        pytest.param(
            projected(serviceAccountToken={"expirationSeconds": 599}),
            [
                f"{TOKEN}.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
                f"{AT}.projected.path: Required value",
            ],
            id="a token for a moment, without a path",
        ),
        pytest.param(
            projected(serviceAccountToken={"expirationSeconds": 2**32 + 1, "path": "../t"}),
            [
                f"{TOKEN}.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 "
                "seconds",
                f"{AT}.projected.path: Invalid value: \"../t\": must not contain '..'",
            ],
            id="a token for ever",
        ),
        pytest.param(
            projected(clusterTrustBundle={}),
            [
                f"{AT}.projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be "
                "specified",
                f"{AT}.projected.sources[0].clusterTrustBundle.path: Required value",
            ],
            id="a bundle of no signer",
        ),
        pytest.param(
            {"csi": {"driver": "x" * 64, "nodePublishSecretRef": {}}},
            [
                f"{AT}.csi.driver: Too long: may not be more than 63 bytes",
                f"{AT}.csi.nodePublishSecretRef.name: Required value",
            ],
            id="a long driver, and a secret without a name",
        ),
        pytest.param({"csi": {}}, [f"{AT}.csi.driver: Required value"], id="no driver"),
        pytest.param(
            {"ephemeral": {}},
            [f"{AT}.ephemeral.volumeClaimTemplate: Required value"],
            id="a claim without a template",
        ),
        pytest.param(
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {"name": "n"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                }
            },
            [f"{AT}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"],
            id="a template with a name",
        ),
        pytest.param(
            {"image": {"pullPolicy": "Sometimes"}},
            [
                f"{AT}.image.reference: Required value",
                f'{AT}.image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", '
                '"Never"',
            ],
            id="no image",
        ),
    ],
)
def test_a_volume_of_a_pod(volume: dict[str, Any], found: list[str]) -> None:
    assert of_pod(volume) == found


def test_names_are_unique_and_claims_of_ephemeral_volumes_are_their_own() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}

    assert of_pod({"emptyDir": {}}, {"emptyDir": {}}) == [
        'spec.volumes[1].name: Duplicate value: "v"'
    ]
    assert of_pod(own, {"persistentVolumeClaim": {"claimName": "x-own"}}) == [
        'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "x-own": must not reference a PVC that gets '
        "created for an ephemeral volume"
    ]
