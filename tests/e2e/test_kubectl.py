"""The real kubectl against `bayplan up`.

Runs with the kubectl on the path, with the one beside the binaries of the control plane (KUBEBUILDER_ASSETS), and with
those that BAYPLAN_KUBECTL names besides (separated by colons). Without any the tests are skipped, and say so.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.live.control_plane import find_asset

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: app:1
        env: [{name: COLOR, value: red}]
        resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""
TIMEOUT_S = 60


def kubectls() -> list[str]:
    """The kubectls to try."""
    named = [path for path in os.environ.get("BAYPLAN_KUBECTL", "").split(":") if path]
    found = [shutil.which("kubectl"), find_asset("kubectl")]
    return list(dict.fromkeys([*named, *(str(path) for path in found if path is not None)]))


pytestmark = pytest.mark.skipif(not kubectls(), reason="not run: kubectl is not installed")


class Kubectl:
    """One kubectl, for one cluster, with its own namespace."""

    def __init__(self, binary: str, kubeconfig: Path, home: Path) -> None:
        self._binary = binary
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def start(self, *arguments: str, namespace: str = "play") -> "subprocess.Popen[str]":
        command = [self._binary, f"--namespace={namespace}", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=self._env, text=True, stdin=subprocess.PIPE, **pipes)

    def __call__(self, *arguments: str, given: str = "", fails: bool = False) -> str:
        process = self.start(*arguments)
        out, err = process.communicate(given, timeout=TIMEOUT_S)
        assert (process.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {out}{err}"
        return err if fails else out

    def tree(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a running `bayplan up`, over HTTPS with a token."""
    path = tmp_path_factory.mktemp("up") / "kubeconfig"
    command = [sys.executable, "-m", "bayplan.cli.main", "up"]
    process = subprocess.Popen(
        [*command, "--nodes", "3", "--kubeconfig", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"export KUBECONFIG={path}\n"
    yield path
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0


@pytest.fixture(params=kubectls(), ids=lambda path: f"kubectl {path}")
def kubectl(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path) -> Iterator[Kubectl]:
    run = Kubectl(request.param, kubeconfig, tmp_path)
    run("create", "namespace", "play")
    yield run
    run("delete", "namespace", "play")


def run_pod(kubectl: Kubectl, name: str, **spec: Any) -> None:
    """`kubectl run` of a pod with a short grace period."""
    given = {"spec": {"terminationGracePeriodSeconds": 1, **spec}}
    kubectl("run", name, "--image=app:1", "--overrides", json.dumps(given))


def test_apply_get_describe(kubectl: Kubectl) -> None:
    first = kubectl("apply", "-f", "-", given=DEPLOYMENT)
    again = kubectl("apply", "-f", "-", given=DEPLOYMENT)
    status = kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    assert first.splitlines() == ["deployment.apps/web created", "service/web created"]
    assert again.splitlines() == ["deployment.apps/web unchanged", "service/web unchanged"]
    assert "successfully rolled out" in status
    wide = kubectl("get", "pods", "-o", "wide").splitlines()
    assert wide[0].split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert [line.split()[1:3] for line in wide[1:]] == [["1/1", "Running"]] * 3
    assert kubectl("get", "deployments", "--no-headers").split()[:4] == ["web", "3/3", "3", "3"]
    pod = wide[1].split()[0]
    described = kubectl("describe", "pod", pod)
    assert "Successfully assigned" in described
    assert "COLOR:  red" in described
    assert "Controlled By:  ReplicaSet/web-" in described
    assert "Unschedulable:" in kubectl("describe", "node", "node-0")
    assert "web" in kubectl("get", "all")


def test_scale_and_roll_out(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    kubectl("set", "image", "deployment/web", "main=app:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    history = kubectl("rollout", "history", "deployment/web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    assert kubectl.tree("get", "deployment", "web")["spec"]["replicas"] == 5
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    images = kubectl("get", "deployment", "web", "-o", "jsonpath={..image}")
    assert images == "app:1"


def test_cordon_taint_label(kubectl: Kubectl) -> None:
    kubectl("cordon", "node-0")
    cordoned = kubectl("get", "node", "node-0", "--no-headers")
    kubectl("uncordon", "node-0")
    kubectl("taint", "nodes", "node-1", "team=a:NoSchedule")
    tainted = kubectl.tree("get", "node", "node-1")["spec"]["taints"]
    kubectl("taint", "nodes", "node-1", "team-")
    kubectl("label", "node", "node-2", "disk=fast", "--overwrite")

    assert "Ready,SchedulingDisabled" in cordoned
    assert tainted == [{"effect": "NoSchedule", "key": "team", "value": "a"}]
    assert kubectl("get", "nodes", "-l", "disk=fast", "-o", "name") == "node/node-2\n"
    kubectl("label", "node", "node-2", "disk-")


def test_pods_without_a_feasible_node_stay_pending(kubectl: Kubectl) -> None:
    run_pod(kubectl, "solo", nodeSelector={"disk": "odd"})

    kubectl("wait", "--for=condition=PodScheduled=False", "pod/solo", "--timeout=30s")
    described = kubectl("describe", "pod", "solo")
    kubectl("label", "node", "node-1", "disk=odd")
    kubectl("wait", "--for=condition=Ready", "pod/solo", "--timeout=30s")
    kubectl("label", "node", "node-1", "disk-")

    assert "0/3 nodes are available" in described
    assert kubectl.tree("get", "pod", "solo")["spec"]["nodeName"] == "node-1"


def test_watch_and_delete(kubectl: Kubectl) -> None:
    run_pod(kubectl, "solo")
    kubectl("wait", "--for=condition=Ready", "pod/solo", "--timeout=30s")
    watching = kubectl.start("get", "pods", "--watch", "--no-headers", "-o", "name")
    assert watching.stdout is not None
    seen = [watching.stdout.readline()]

    run_pod(kubectl, "second")
    seen.append(watching.stdout.readline())
    kubectl("delete", "pod", "solo", "--grace-period=1")
    watching.terminate()
    watching.communicate(timeout=TIMEOUT_S)

    assert seen == ["pod/solo\n", "pod/second\n"]
    assert kubectl("get", "pods", "-o", "name") == "pod/second\n"


def test_deleting_a_deployment_deletes_its_pods(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    kubectl("delete", "deployment", "web")

    # Not `kubectl wait --for=delete`, which fails when nothing is left to wait for.
    deadline = time.monotonic() + TIMEOUT_S
    while left := kubectl("get", "pods,replicasets", "-o", "name"):
        assert time.monotonic() < deadline, left


def test_patches_and_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=DEPLOYMENT)
    operations = '[{"op":"replace","path":"/spec/replicas","value":2}]'
    kubectl("patch", "deployment", "web", "--type=json", "-p", operations)
    container = '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:3"}]}}}}'
    kubectl("patch", "deployment", "web", "-p", container)

    spec = kubectl.tree("get", "deployment", "web")["spec"]

    assert spec["replicas"] == 2
    (main,) = spec["template"]["spec"]["containers"]
    assert (main["image"], main["env"][0]["value"]) == ("app:3", "red")


def test_errors_are_reported(kubectl: Kubectl) -> None:
    misspelt = DEPLOYMENT.replace("replicas:", "replica:")
    nameless = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a}]}\n"

    assert "replica" in kubectl("apply", "-f", "-", given=misspelt, fails=True)
    assert "image: Required value" in kubectl("create", "-f", "-", given=nameless, fails=True)
    assert 'pods "none" not found' in kubectl("get", "pod", "none", fails=True)


def test_explain_and_dry_run(kubectl: Kubectl) -> None:
    made = kubectl(
        "create", "configmap", "c", "--from-literal=a=b", "--dry-run=server", "-o", "name"
    )

    assert made == "configmap/c\n"
    assert kubectl("get", "configmaps", "-o", "name") == ""
    assert "image" in kubectl("explain", "pod.spec.containers")
    assert "deployments" in kubectl("api-resources")


def test_drain(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    kubectl("drain", "node-0", "--ignore-daemonsets", "--timeout=30s")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    nodes = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    kubectl("uncordon", "node-0")

    assert "node-0" not in nodes
    assert len(nodes) == 3


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: queues, kind: Queue, shortNames: [qu], categories: [all]}
  versions:
  - name: v1beta1
    served: true
    storage: false
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              weight: {type: integer, minimum: 1, default: 1, description: The share of this queue.}
              replicas: {type: integer}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: &subresources
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
  - name: v1
    served: true
    storage: true
    schema: *schema
    subresources: *subresources
    additionalPrinterColumns:
    - {name: Weight, type: integer, jsonPath: .spec.weight}
"""
QUEUE = """
apiVersion: example.io/v1
kind: Queue
metadata: {name: team}
spec: {weight: 3, replicas: 2}
"""


def test_custom_resources(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEFINITION)
    kubectl("wait", "--for=condition=Established", "crd/queues.example.io", "--timeout=30s")
    made = kubectl("apply", "-f", "-", given=QUEUE)
    again = kubectl("apply", "-f", "-", given=QUEUE)
    wrong = kubectl("apply", "-f", "-", given=QUEUE.replace("3", "0"), fails=True)
    kubectl("patch", "queue", "team", "--type=merge", "-p", '{"spec":{"weight":5}}')
    kubectl("scale", "queue/team", "--replicas=4")

    assert made == "queue.example.io/team created\n"
    assert again == "queue.example.io/team unchanged\n"
    assert "spec.weight in body should be greater than or equal to 1" in wrong
    rows = [line.split() for line in kubectl("get", "qu").splitlines()]
    assert rows == [["NAME", "WEIGHT"], ["team", "5"]]
    assert "queue.example.io/team" in kubectl("get", "all", "-o", "name")
    assert kubectl.tree("get", "queues.v1beta1.example.io", "team")["spec"]["replicas"] == 4
    assert "The share of this queue." in kubectl("explain", "queue.spec.weight")
    assert "Weight:    5" in kubectl("describe", "queue", "team")

    kubectl("delete", "crd", "queues.example.io", "--timeout=30s")
    assert "could not find the requested resource" in kubectl("get", "queues", fails=True)


def test_kinds_without_behaviour(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    process = kubectl.start("autoscale", "deployment", "web", "--max=3")
    out, err = process.communicate(timeout=TIMEOUT_S)
    policy = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p}
spec: {podSelector: {}}
"""
    kubectl("apply", "-f", "-", given=policy)

    assert "horizontalpodautoscaler.autoscaling/web autoscaled" in out
    assert "Warning: HorizontalPodAutoscaler: stored; bayplan up scales nothing by it" in err
    assert "Deployment/web" in kubectl("get", "hpa")
    assert "web" in kubectl("describe", "hpa", "web")
    assert kubectl("get", "netpol", "-o", "name") == "networkpolicy.networking.k8s.io/p\n"
    assert "standard (default)" in kubectl("get", "storageclasses")


def test_what_needs_containers_is_refused(kubectl: Kubectl) -> None:
    run_pod(kubectl, "solo")
    kubectl("wait", "--for=condition=Ready", "pod/solo", "--timeout=30s")

    for arguments in (
        ("logs", "solo"),
        ("exec", "solo", "--", "ls"),
        ("attach", "solo"),
        ("port-forward", "pod/solo", "0:80"),
        ("cp", "play/solo:/x", "x"),
    ):
        assert "bayplan up runs no containers" in kubectl(*arguments, fails=True)


def test_top_leases_and_permissions(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")

    pods = kubectl("top", "pod", "--no-headers").splitlines()
    nodes = kubectl("top", "node", "--no-headers").splitlines()

    assert [line.split()[1:] for line in pods] == [["100m", "64Mi"]] * 3
    assert [line.split()[0] for line in nodes] == ["node-0", "node-1", "node-2"]
    assert "Failed to get lease" not in kubectl("describe", "node", "node-0")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_restart_and_diff(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    changed = DEPLOYMENT.replace("replicas: 3", "replicas: 4")

    process = kubectl.start("diff", "-f", "-")
    out, err = process.communicate(changed, timeout=TIMEOUT_S)

    assert process.returncode == 1, err
    assert "+  replicas: 4" in out
    assert kubectl.tree("get", "deployment", "web")["spec"]["replicas"] == 3


def test_events_tell_what_controllers_and_kubelets_did(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    (replica_set,) = kubectl.tree("get", "replicaset")["items"]
    (pod, *_) = kubectl.tree("get", "pods")["items"]

    told = kubectl("describe", "deployment", "web").partition("Events:")[2]
    of_pod = kubectl("describe", "pod", pod["metadata"]["name"]).partition("Events:")[2]
    listed = kubectl("get", "events", "--field-selector=reason=SuccessfulCreate", "--no-headers")

    name = replica_set["metadata"]["name"]
    assert f"deployment-controller  Scaled up replica set {name} from 0 to 3" in told
    reasons = [line.split()[1] for line in of_pod.splitlines()[3:]]
    assert sorted(reasons) == ["Created", "Pulled", "Scheduled", "Started"]
    assert len(listed.splitlines()) == 3


def test_a_rollout_without_progress_ends_with_an_error(kubectl: Kubectl) -> None:
    never = "annotations: {bayplan.dev/image-pull-error: forever}, labels"
    stuck = DEPLOYMENT.replace(
        "template:\n    metadata: {labels", f"template:\n    metadata: {{{never}"
    )
    stuck = stuck.replace("replicas: 3", "replicas: 3\n  progressDeadlineSeconds: 1")
    kubectl("apply", "-f", "-", given=stuck)

    err = kubectl("rollout", "status", "deployment/web", "--timeout=30s", fails=True)

    assert 'deployment "web" exceeded its progress deadline' in err
    warned = kubectl("get", "events", "--field-selector=type=Warning", "-o", "wide")
    assert "Error: ErrImagePull" in warned
