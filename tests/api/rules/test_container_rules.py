"""Faults of containers, in the API server's words."""

from typing import Any

import pytest

from .faults import faults

AT = "spec.containers[0]"
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
SCRATCH = {"name": "s", "emptyDir": {}}
LASTING = "may not be set for init containers without restartPolicy=Always"


def of_pod(spec: dict[str, Any], **container: Any) -> list[str]:
    """The faults of a pod with two volumes and one container with these fields."""
    containers = [{"name": "c", "image": "i", **container}]
    known = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "volumes": [CLAIM, SCRATCH]}
    return faults("pods", spec={**known, "containers": containers, **spec})


def mount(**fields: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "s", "mountPath": "/s", **fields}]}


def devices(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"volumeDevices": [{"name": "v", "devicePath": "/dev/v", **one} for one in fields]}


@pytest.mark.parametrize(
    ("container", "found"),
    [
        pytest.param({**mount(), **devices({})}, [], id="valid"),
        pytest.param({"image": ""}, [f"{AT}.image: Required value"], id="no image"),
        pytest.param({"name": ""}, [f"{AT}.name: Required value"], id="no name"),
        pytest.param(
            {"ports": [{"name": "web"}, {"name": "web", "containerPort": 80}]},
            [
                f"{AT}.ports[0].containerPort: Required value",
                f'{AT}.ports[1].name: Duplicate value: "web"',
            ],
            id="a port without a number, and its name twice",
        ),
        pytest.param(
            {"ports": [{"containerPort": port, "hostPort": 80} for port in (80, 81)]},
            [f'{AT}.ports[1].hostPort: Duplicate value: "TCP//80"'],
            id="a host port twice",
        ),
        pytest.param(
            mount(name="x", mountPath=""),
            [
                f'{AT}.volumeMounts[0].name: Not found: "x"',
                f"{AT}.volumeMounts[0].mountPath: Required value",
            ],
            id="a volume that is not there, nowhere",
        ),
        pytest.param(
            mount(name=""),
            [
                f"{AT}.volumeMounts[0].name: Required value",
                f'{AT}.volumeMounts[0].name: Not found: ""',
            ],
            id="a mount of nothing",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "s", "mountPath": "/s"}] * 2},
            [f'{AT}.volumeMounts[1].mountPath: Invalid value: "/s": must be unique'],
            id="two mounts at one place",
        ),
        pytest.param(
            mount(subPath="a", subPathExpr="b"),
            [
                f'{AT}.volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive'
            ],
            id="two paths below a volume",
        ),
        pytest.param(
            mount(mountPropagation="Bidirectional"),
            [
                f"{AT}.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
                "privileged containers"
            ],
            id="propagation without privileges",
        ),
        pytest.param(
            mount(recursiveReadOnly="Enabled", mountPropagation="HostToContainer"),
            [
                f"{AT}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
                f"{AT}.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None "
                "or not specified",
            ],
            id="read-only below a mount that is written",
        ),
        pytest.param(
            devices({"name": ""}),
            [
                f"{AT}.volumeDevices[0].name: Required value",
                f'{AT}.volumeDevices[0].name: Not found: ""',
            ],
            id="a device of nothing",
        ),
        pytest.param(
            devices({"name": "s"}),
            [
                f'{AT}.volumeDevices[0].name: Invalid value: "s": can only use volume source type of '
                "PersistentVolumeClaim or Ephemeral for block mode"
            ],
            id="a device of a folder",
        ),
        pytest.param(
            devices({}, {}),
            [
                f'{AT}.volumeDevices[1].name: Invalid value: "v": must be unique',
                f'{AT}.volumeDevices[1].devicePath: Invalid value: "/dev/v": must be unique',
            ],
            id="a device twice",
        ),
        pytest.param(
            devices({"devicePath": "/dev/../v"}),
            [
                f"{AT}.volumeDevices[0].devicePath: Invalid value: \"/dev/../v\": can not contain backsteps ('..')"
            ],
            id="a device with a step back",
        ),
        pytest.param(
            devices({"devicePath": ""}),
            [f"{AT}.volumeDevices[0].devicePath: Required value"],
            id="a device nowhere",
        ),
        pytest.param(
            {**mount(name="v", mountPath="/dev/v"), **devices({})},
            [
                f'{AT}.volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices',
                f'{AT}.volumeMounts[0].mountPath: Invalid value: "/dev/v": must not already exist as a path in '
                "volumeDevices",
                f'{AT}.volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts',
                f'{AT}.volumeDevices[0].devicePath: Invalid value: "/dev/v": must not already exist as a path in '
                "volumeMounts",
            ],
            id="a volume as a mount and as a device",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2},
            [f'{AT}.resizePolicy[1]: Duplicate value: "cpu"'],
            id="two policies for one resource",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "disk"}]},
            [
                f'{AT}.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
                f"{AT}.resizePolicy: Required value",
            ],
            id="a policy for another resource",
        ),
        pytest.param(
            {"restartPolicyRules": [{"action": "Restart"}]},
            [
                f"{AT}.restartPolicy: Required value: must specify restartPolicy when restart rules are used",
                f"{AT}.restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
            id="rules for restarts without a policy, and without codes",
        ),
    ],
)
def test_a_container_of_a_pod(container: dict[str, Any], found: list[str]) -> None:
    assert of_pod({}, **container) == found


@pytest.mark.parametrize(
    ("spec", "container", "found"),
    [
        pytest.param(
            {"restartPolicy": "Never"},
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            [
                f"{AT}.resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod "
                "`restartPolicy` is 'Never'"
            ],
            id="a container that is never restarted",
        ),
        pytest.param(
            {"hostNetwork": True},
            {"ports": [{"containerPort": 80, "hostPort": 81}]},
            [
                f"{AT}.ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
            ],
            id="another port of the host's network",
        ),
    ],
)
def test_a_container_by_the_fields_of_its_pod(
    spec: dict[str, Any], container: dict[str, Any], found: list[str]
) -> None:
    assert of_pod(spec, **container) == found


@pytest.mark.parametrize(
    ("container", "found"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"name": "c"},
            ['spec.initContainers[0].name: Duplicate value: "c"'],
            id="the name of a container",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
            [f"spec.initContainers[0].lifecycle: Forbidden: {LASTING}"],
            id="hooks of a container that ends",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            [
                'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be '
                "set to 'RestartContainer' for non-sidecar initContainers"
            ],
            id="a restart of a container that ends",
        ),
    ],
)
def test_an_init_container(container: dict[str, Any], found: list[str]) -> None:
    assert of_pod({"initContainers": [{"name": "i", "image": "i", **container}]}) == found
