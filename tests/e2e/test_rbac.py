"""RBAC: deploy/ grants exactly the scheduler's needs, checked by the authorizers of `bayplan up` and of a real
kube-apiserver, which also logs what was asked.
"""

import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.live.audit import Audit, AuditedRequest
from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.control_plane import (
    POD_GROUP_GATES,
    LiveControlPlane,
    gate_arguments,
    need_assets,
)
from tests.rig.live.embedded import EmbeddedServer
from tests.rig.live.follower import Key
from tests.rig.live.processes import Process, free_port
from tests.rig.live.schedulers import BAYPLAN, start_scheduler

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME, NAMESPACE = "bayplan-scheduler", "kube-system"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
FOLDERS = {
    "ServiceAccount": ACCOUNTS,
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
}
GPU = "gpu.example.com"
START_S = 60.0
ServerUnderTest = EmbeddedServer | LiveControlPlane

SELDOM = {
    # Checked by the API server itself when the status of a claim is written: not a request.
    AuditedRequest("patch", "resource.k8s.io", "resourceclaims/binding"),
    # Needed when the connection is lost during a binding.
    AuditedRequest("get", "", "pods"),
    # Needed when the claim for a pod's extended resources was created, and then the pod could not
    # be bound.
    AuditedRequest("delete", "resource.k8s.io", "resourceclaims"),
    # Read with the feature gate DRADeviceTaintRules, which is off by default.
    AuditedRequest("list", "resource.k8s.io", "devicetaintrules"),
    AuditedRequest("watch", "resource.k8s.io", "devicetaintrules"),
    # The same with the feature gate CoordinatedLeaderElection.
    *(
        AuditedRequest(verb, "coordination.k8s.io", "leasecandidates")
        for verb in ("create", "get", "update", "watch")
    ),
}
"""Granted and needed, but not exercised here."""
WAITING = ("one", "other", "third")


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"), USER)


@pytest.fixture(scope="module", params=["up", "kube-apiserver"])
def plane(
    request: pytest.FixtureRequest, audit: Audit, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerUnderTest]:
    """`bayplan up` and a real control plane, each with the objects of deploy/10-rbac.yaml."""
    folder = tmp_path_factory.mktemp("plane")
    plane: ServerUnderTest
    if request.param == "up":
        plane = EmbeddedServer(folder, POD_GROUP_GATES, ["--authorization=rbac"])
    else:
        need_assets()
        plane = LiveControlPlane(folder, *audit.arguments, gates=POD_GROUP_GATES)
    client = LiveClient(plane.kubeconfig)
    plane.api_server.wait_until(
        lambda: client.find(f"/api/v1/namespaces/{NAMESPACE}") is not None, "complete", START_S
    )
    for tree in roles():
        client.create(FOLDERS[tree["kind"]], tree)
    yield plane
    plane.stop()


@pytest.fixture
def cluster(plane: ServerUnderTest, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    made = ClusterUnderTest(plane, tmp_path)
    yield made
    made.close()


def roles() -> list[Tree]:
    return list(yaml.safe_load_all((DEPLOY / "10-rbac.yaml").read_text()))


def make_token(client: LiveClient, account: str) -> str:
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = client.create(f"{ACCOUNTS}/{account}/token", head)["status"]["token"]
    return token


def kubeconfig_of(plane: ServerUnderTest, account: str, folder: Path) -> Path:
    """A client of the server for a service account."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": make_token(LiveClient(plane.kubeconfig), account)}
    path = folder / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class Running:
    """`bayplan run` as in deploy/, with the service account's token."""

    def __init__(self, plane: ServerUnderTest, folder: Path) -> None:
        config_map = yaml.safe_load((DEPLOY / "20-config.yaml").read_text())
        config = yaml.safe_load(config_map["data"]["config.yaml"])
        self.kubeconfig = kubeconfig_of(plane, NAME, folder)
        config["clientConnection"] = {"kubeconfig": str(self.kubeconfig)}
        config |= {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        self.port = free_port()
        serving = [f"--secure-port={self.port}", "--bind-address=0.0.0.0"]
        serving += gate_arguments(POD_GROUP_GATES)
        self.process: Process = start_scheduler(BAYPLAN, config, folder / "run", *serving)
        self.process.wait_until(self._is_ready, "ready", START_S)

    def get(self, path: str, token: str | None = None) -> int:
        """The status of the response."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=START_S) as answer:
                status: int = answer.status
                return status
        except urllib.error.HTTPError as error:
            return error.code

    def _is_ready(self) -> bool:
        try:
            return self.get("/readyz") == 200
        except urllib.error.URLError:
            return False


@pytest.fixture
def running(plane: ServerUnderTest, tmp_path: Path) -> Iterator[Running]:
    running = Running(plane, tmp_path)
    yield running
    running.process.kill()


def make_storage(cluster: ClusterUnderTest) -> None:
    """A claim that needs a new volume, and one with an existing volume."""
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    wait = {"volumeBindingMode": "WaitForFirstConsumer"}
    for name, provisioner in {
        "made": "test.bayplan.dev",
        "found": "kubernetes.io/no-provisioner",
    }.items():
        cluster.make("StorageClass", f"{cluster.namespace}-{name}", provisioner=provisioner, **wait)
        spec = {**wants, "storageClassName": f"{cluster.namespace}-{name}"}
        cluster.make("PersistentVolumeClaim", name, spec=spec)
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
    cluster.make(
        "PersistentVolume",
        f"{cluster.namespace}-found",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{cluster.namespace}-found",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/volumes/found"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    )


def make_devices(cluster: ClusterUnderTest) -> None:
    """Two devices, a claim for one, and a class that serves an extended resource."""
    selectors = [{"cel": {"expression": f'device.driver == "{GPU}"'}}]
    spec = {"selectors": selectors, "extendedResourceName": "example.com/gpu"}
    cluster.make("DeviceClass", cluster.namespace, spec=spec)
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    slice_spec = {"driver": GPU, "nodeName": "a", "pool": pool, "devices": devices}
    cluster.make("ResourceSlice", f"{cluster.namespace}-a", spec=slice_spec)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": cluster.namespace}}]
    cluster.make("ResourceClaim", "gpu", spec={"devices": {"requests": requests}})


def uses_volume(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def granted() -> set[AuditedRequest]:
    """The permissions of the scheduler in deploy/10-rbac.yaml."""
    return {
        AuditedRequest(verb, group, resource)
        for tree in roles()
        for rule in tree.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_nothing_is_forbidden_and_no_permission_is_unused(
    plane: ServerUnderTest,
    cluster: ClusterUnderTest,
    running: Running,
    audit: Audit,
    tmp_path: Path,
) -> None:
    cluster.node("a", room={"cpu": "4"})
    make_storage(cluster)
    make_devices(cluster)
    cluster.make("PriorityClass", f"{cluster.namespace}-high", value=1000)
    mine: dict[str, Any] = {"schedulerName": NAME}

    cluster.pod("plain", {"cpu": "100m"}, **mine)
    cluster.pod("makes-volume", **mine, **uses_volume("made"))
    cluster.pod("finds-volume", **mine, **uses_volume("found"))
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    cluster.pod("has-claim", resourceClaims=claims, **mine)
    cluster.pod("has-gpu", {"example.com/gpu": "1"}, **mine)
    cluster.make("PodGroup", "gang", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    for name in ("member", "other-member"):
        cluster.pod(name, schedulingGroup={"podGroupName": "gang"}, **mine)
    cluster.wait_all_bound(7)
    cluster.pod("victim", {"cpu": "3"}, **mine)
    assert cluster.wait_bound("victim") == "a"
    cluster.pod("vip", {"cpu": "3"}, priorityClassName=f"{cluster.namespace}-high", **mine)
    assert cluster.wait_bound("vip") == "a"
    # All need the freed resources; a repeated event of a pod is counted, not sent again.
    for name in WAITING:
        cluster.pod(name, {"cpu": "3"}, **mine)
        cluster.wait_refused(name, "Insufficient cpu")
    winner = pass_on(cluster, "vip")
    pass_on(cluster, winner)
    is_audited = isinstance(plane, LiveControlPlane)
    if is_audited:
        counted = AuditedRequest("patch", "events.k8s.io", "events")
        running.process.wait_until(lambda: counted in audit.asked(), "said twice", START_S)
    snapshot = take_snapshot(running.kubeconfig, tmp_path / "cluster.yaml")
    assert running.get("/metrics", make_token(LiveClient(plane.kubeconfig), NAME)) == 403
    assert running.process.stop() == 0

    if is_audited:
        assert audit.refused() == {}
        assert granted() - audit.asked() == SELDOM
    assert "WARNING" not in running.process.log.read_text()
    assert {"PriorityClass", "Node", "Pod", "ResourceClaim"} <= snapshot


def pass_on(cluster: ClusterUnderTest, holder: str) -> str:
    """Delete the pod that has the resources; return the name of the one that gets them."""
    cluster.client.delete(cluster.path("Pod", holder), gracePeriodSeconds=0)
    cluster.wait_gone(holder)

    def look(pods: dict[Key, Tree]) -> str:
        found = (name for namespace, name in pods if namespace == cluster.namespace)
        return next((name for name in found if name in WAITING and cluster.node_of(name)), "")

    return cluster.pods.wait(look, "another pod has the room")


def take_snapshot(kubeconfig: Path, file: Path) -> set[str]:
    """The kinds in a snapshot taken with the scheduler's permissions."""
    command = [sys.executable, "-m", "bayplan.cli.main", "snapshot"]
    given = ["--kubeconfig", str(kubeconfig), "--to", str(file)]
    done = subprocess.run([*command, *given], capture_output=True, text=True, timeout=START_S)
    assert done.returncode == 0, done.stderr
    return {tree["kind"] for tree in yaml.safe_load_all(file.read_text())}


def test_access_to_the_metrics_is_delegated_to_the_api_server(
    plane: ServerUnderTest, running: Running
) -> None:
    client = LiveClient(plane.kubeconfig)
    for name in ("stranger", "prometheus"):
        client.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount"} | named(name))
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", **named("read-metrics")}
    rule = {"nonResourceURLs": ["/metrics", "/page/*"], "verbs": ["get"]}
    client.create(f"{RBAC}/clusterroles", {**head, "kind": "ClusterRole", "rules": [rule]})
    client.create(
        f"{RBAC}/clusterrolebindings",
        {
            **head,
            "kind": "ClusterRoleBinding",
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "read-metrics",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": NAMESPACE}],
        },
    )
    stranger, prometheus = make_token(client, "stranger"), make_token(client, "prometheus")
    admin = client.headers["Authorization"].removeprefix("Bearer ")

    statuses = {
        path: [
            running.get(path, token) for token in (None, "nonsense", stranger, prometheus, admin)
        ]
        for path in ("/metrics", "/configz", "/page/state", "/readyz", "/page/")
    }

    # Without a token the user is system:anonymous, as for kube-scheduler: authenticated, but not
    # allowed.
    assert statuses == {
        "/metrics": [403, 401, 403, 200, 200],
        "/configz": [403, 401, 403, 403, 200],
        "/page/state": [403, 401, 403, 200, 200],
        "/readyz": [200, 200, 200, 200, 200],
        "/page/": [200, 200, 200, 200, 200],
    }


def named(name: str) -> Tree:
    return {"metadata": {"name": name}}
