"""`bayplan simulate` with devices: claims that fail a pod, as kube-scheduler v1.36.4 fails it."""

import json
import re
from pathlib import Path

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


@pytest.mark.parametrize(
    ("text", "node", "message"),
    [
        pytest.param(
            DEVICES % "" + ALL_OR_ONE % "1",
            None,
            r"claim default/pair, request every: cannot add device gpu.example.com/a/gpu-1 because "
            r"a claim constraint would not be satisfied$",
            id="a constraint that refuses all devices of an alternative is an error",
        ),
        pytest.param(
            DEVICES % "" + ALL_OR_ONE % "5",
            None,
            r"^0/1 nodes are available: 1 Insufficient cpu\.",
            id="but none on a node that another plugin refuses",
        ),
        pytest.param(
            DEVICES % OF_THE_NODE + SHARED,
            None,
            r"nil or empty request mappings, no update of pod default/p "
            r"ExtendedResourceClaimStatus$",
            id="a resource of the node in two containers beside a claim fails in PreBind",
        ),
        pytest.param(
            DEVICES % "" + SHARED,
            "a",
            r"^$",
            id="a resource of devices in two containers beside a claim is bound",
        ),
    ],
)
def test_claims_beside_other_requests(
    tmp_path: Path, text: str, node: str | None, message: str
) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text(text)

    result = CliRunner().invoke(app, ["simulate", "-f", str(file), "-o", "json"])

    (pod,) = json.loads(result.stdout)["pods"]
    assert pod["node"] == node
    assert re.search(message, pod["message"])
