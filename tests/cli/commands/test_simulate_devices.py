"""`bayplan simulate` with devices: claims that fail a pod, as kube-scheduler v1.36.4 fails it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

DEVICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-gpus}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices:
    - {name: gpu-0, attributes: {numa: {int: 0}}}
    - {name: gpu-1, attributes: {numa: {int: 1}}}
    - {name: gpu-2, attributes: {numa: {int: 1}}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"%s}}
---
"""
ALL_OR_ONE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair, namespace: default}
spec:
  devices:
    requests:
      - name: gpus
        firstAvailable:
          - {name: every, deviceClassName: gpu, allocationMode: All}
          - {name: one, deviceClassName: gpu}
    constraints: [{matchAttribute: gpu.example.com/numa}]
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  resourceClaims: [{name: gpus, resourceClaimName: pair}]
  containers:
    - {name: c, image: i, resources: {requests: {cpu: "%s"}, claims: [{name: gpus}]}}
"""
SHARED = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: shared}]
  containers:
    - name: one
      image: i
      resources: {limits: {example.com/gpu: "1"}, claims: [{name: gpu}]}
    - name: two
      image: i
      resources: {limits: {example.com/gpu: "1"}}
"""
OF_THE_NODE = ', example.com/gpu: "2"'


def simulate(tmp_path: Path, text: str) -> dict[str, Any]:
    """The only pod of the report."""
    file = tmp_path / "devices.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["simulate", "-f", str(file), "-o", "json"])
    (pod,) = json.loads(result.stdout)["pods"]
    return dict(pod)


def test_all_devices_of_an_alternative_that_a_constraint_refuses_fail_the_pod(
    tmp_path: Path,
) -> None:
    pod = simulate(tmp_path, DEVICES % "" + ALL_OR_ONE % "1")

    assert pod["node"] is None
    assert pod["message"].endswith(
        "claim default/pair, request every: cannot add device gpu.example.com/a/gpu-1 because a claim "
        "constraint would not be satisfied"
    )


def test_the_constraint_is_no_error_on_a_node_that_another_plugin_refuses(tmp_path: Path) -> None:
    pod = simulate(tmp_path, DEVICES % "" + ALL_OR_ONE % "5")

    assert pod["node"] is None
    assert pod["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_resource_of_the_node_in_two_containers_beside_a_claim_fails_in_pre_bind(
    tmp_path: Path,
) -> None:
    pod = simulate(tmp_path, DEVICES % OF_THE_NODE + SHARED)

    assert pod["node"] is None
    assert pod["message"].endswith(
        "nil or empty request mappings, no update of pod default/p ExtendedResourceClaimStatus"
    )


def test_a_resource_of_devices_in_two_containers_beside_a_claim_is_bound(tmp_path: Path) -> None:
    pod = simulate(tmp_path, DEVICES % "" + SHARED)

    assert pod["node"] == "a"
