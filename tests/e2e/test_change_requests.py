"""Seven change requests: predicted by `what-if apply`, then really applied, on `up` and on a real control plane.

The real one is kube-apiserver with kube-controller-manager and kube-scheduler. Each request has a namespace and nodes
of its own, so that all are predicted on one cluster, and applied together.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.cluster import node_tree
from tests.rig.live.control_plane import LiveControlPlane, assets_folder, need_assets
from tests.rig.live.embedded import EmbeddedServer
from tests.rig.live.kinds import path_of, with_head
from tests.rig.live.kubelets import LiveKubelets
from tests.rig.live.processes import Process

MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "statefulset-controller",
)
SETTLE_S = 60.0
STILL_S = 1.5
"""Seconds for which a result has to stay unchanged."""
_POD = re.compile(r'pods "([^"]+)"')


class ChangeRequest(NamedTuple):
    """The cpu of the nodes of a request, the objects before it, and those that are applied."""

    name: str
    nodes: dict[str, str]
    before: list[Tree]
    applied: list[Tree]
    labels: Mapping[str, dict[str, str]] = MappingProxyType({})
    """Labels of nodes beside that of the request."""


def deployment(pool: str, replicas: int, cpu: str, name: str = "web", **pod: Any) -> Tree:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    strategy = pod.pop("strategy", {"maxSurge": 1, "maxUnavailable": 0})
    selector = {"pool": pool, **pod.pop("nodeSelector", {})}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "nodeSelector": selector,
        **pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": strategy},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def stateful_set(pool: str, replicas: int, cpu: str, name: str = "db", **pod: Any) -> Tree:
    """Pods that are replaced one after the other, the highest number first."""
    tree = deployment(pool, replicas, cpu, name, **pod)
    del tree["spec"]["strategy"]
    tree["spec"]["serviceName"] = name
    return {**tree, "kind": "StatefulSet"}


def budget(name: str) -> Tree:
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": name}}}
    return with_head("PodDisruptionBudget", {"metadata": {"name": name}, "spec": spec})


QUOTA = with_head(
    "ResourceQuota", {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "4"}}}
)
IMPORTANT = with_head("PriorityClass", {"metadata": {"name": "important"}, "value": 1000})
HIGHER = with_head("PriorityClass", {"metadata": {"name": "higher"}, "value": 100})
REQUESTS = [
    ChangeRequest(
        "bigger",
        {"bigger-1": "6", "bigger-2": "2"},
        [deployment("bigger", 3, "1")],
        [deployment("bigger", 3, "2500m")],
    ),
    ChangeRequest(
        "more",
        {"more-1": "4", "more-2": "3"},
        [deployment("more", 3, "1")],
        [deployment("more", 9, "1")],
    ),
    ChangeRequest(
        "selector",
        {"selector-1": "8", "selector-2": "2"},
        [deployment("selector", 4, "900m")],
        [deployment("selector", 4, "900m", nodeSelector={"disk": "ssd"})],
        {"selector-2": {"disk": "ssd"}},
    ),
    ChangeRequest(
        "surge",
        {"surge-1": "2", "surge-2": "1"},
        [deployment("surge", 3, "1")],
        [deployment("surge", 3, "950m")],
    ),
    ChangeRequest(
        "budget",
        {"budget-1": "2", "budget-2": "2"},
        [
            deployment("budget", 1, "1900m", "guarded", nodeSelector={"side": "a"}),
            deployment(
                "budget", 1, "1900m", "open", nodeSelector={"side": "b"}, priorityClassName="higher"
            ),
            budget("guarded"),
        ],
        [deployment("budget", 1, "1500m", priorityClassName="important")],
        {"budget-1": {"side": "a"}, "budget-2": {"side": "b"}},
    ),
    ChangeRequest(
        "quota",
        {"quota-1": "8"},
        [QUOTA, deployment("quota", 3, "1")],
        [deployment("quota", 6, "1100m")],
    ),
    ChangeRequest(
        "ordered",
        {"ordered-1": "3", "ordered-2": "3"},
        [stateful_set("ordered", 4, "1")],
        [stateful_set("ordered", 4, "1600m")],
    ),
]


class Outcome(NamedTuple):
    """The outcome of one request."""

    running: Counter[tuple[str, str]]
    """Pods by workload and node."""
    pending: Counter[tuple[str, str]]
    """Pods by workload and message."""
    updated: dict[str, tuple[int, int]]
    """By workload: pods of the new version that have a node, and pods of former ones."""
    refused: set[str]
    """Why pods could not be created, without their names."""


class LiveServer(NamedTuple):
    """An API server with controllers and a scheduler."""

    client: LiveClient
    kubeconfig: Path

    def put(self, namespace: str, tree: Tree) -> None:
        """Create an object, or change it as kubectl apply does."""
        kind, name = tree["kind"], tree["metadata"]["name"]
        path = path_of(kind, namespace, name)
        if self.client.find(path) is None:
            self.client.create(path_of(kind, namespace), tree)
        else:
            self.client.patch(path, tree, "strategic")

    def pods(self, namespace: str) -> list[Tree]:
        """The pods that are not terminating."""
        items: list[Tree] = self.client.get(path_of("Pod", namespace))["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def outcome(self, request: ChangeRequest) -> Outcome:
        """The state of the namespace now."""
        namespace = request.name
        sets = {
            each["metadata"]["name"]: each
            for each in self.client.get(path_of("ReplicaSet", namespace))["items"]
        }
        newest = {
            tree["metadata"]["name"]: self._newest(sets, namespace, tree)
            for tree in request.applied
            if tree["kind"] in ("Deployment", "StatefulSet")
        }
        updated = dict.fromkeys(newest, (0, 0))
        running: Counter[tuple[str, str]] = Counter()
        pending: Counter[tuple[str, str]] = Counter()
        for pod in self.pods(namespace):
            (workload, version), node = _owner_of(pod), pod["spec"].get("nodeName", "")
            if node:
                running[workload, node] += 1
            else:
                pending[workload, _message(pod)] += 1
            if workload in updated:
                new, former = updated[workload]
                is_new = version == newest[workload]
                updated[workload] = (new + (is_new and bool(node)), former + (not is_new))
        refused = {
            _nameless(condition["message"])
            for each in sets.values()
            for condition in each["status"].get("conditions") or ()
            if (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        }
        return Outcome(running, pending, updated, refused)

    def _newest(self, sets: dict[str, Tree], namespace: str, tree: Tree) -> str:
        """The replica set of the highest revision, or the revision of a StatefulSet that pods shall have."""
        workload = tree["metadata"]["name"]
        if tree["kind"] == "StatefulSet":
            stored = self.client.get(path_of("StatefulSet", namespace, workload))
            return str(stored["status"].get("updateRevision", ""))
        owned = [name for name in sets if name.rpartition("-")[0] == workload]
        note = "deployment.kubernetes.io/revision"
        return max(
            owned,
            key=lambda name: int(sets[name]["metadata"].get("annotations", {}).get(note, 0)),
            default="",
        )

    def predict(self, request: ChangeRequest, folder: Path) -> Outcome:
        """The answer of `what-if apply`, as an outcome."""
        new = folder / f"{request.name}.json"
        trees = [
            {**tree, "metadata": {**tree["metadata"], "namespace": request.name}}
            for tree in request.applied
        ]
        new.write_text("\n".join(map(json.dumps, trees)))
        given = ["what-if", "apply", "-f", str(new), "--kubeconfig", str(self.kubeconfig)]
        result = CliRunner().invoke(app, [*given, "-o", "json"])
        assert result.exit_code in (0, 1), result.output
        answer = json.loads(result.stdout)
        changed = {pod["name"]: pod for pod in answer["pods"] if pod["namespace"] == request.name}
        running: Counter[tuple[str, str]] = Counter()
        for pod in self.pods(request.name):
            if pod["metadata"]["name"] not in changed:
                running[_owner_of(pod)[0], pod["spec"]["nodeName"]] += 1
        pending: Counter[tuple[str, str]] = Counter()
        messages = {one["pod"]: one["message"] for one in answer["pending"]["after"]}
        for pod in changed.values():
            workload = pod["workload"].partition("/")[2]
            if pod["now"]["state"] == "running":
                running[workload, pod["now"]["node"]] += 1
            elif pod["now"]["state"] == "pending":
                name = pod["successor"] or pod["name"]
                pending[workload, messages[f"{request.name}/{name}"]] += 1
        updated = {
            one["workload"].rpartition("/")[2]: (one["updated"], one["left"])
            for one in answer["rollouts"]
        }
        refused = {_nameless(one["message"]) for one in answer["refused"]}
        assert bool(pending or refused) == bool(result.exit_code), "it stalls or gets through"
        return Outcome(running, pending, updated, refused)


def _owner_of(pod: Tree) -> tuple[str, str]:
    """The workload of a pod, and its version: the replica set, or the revision of the StatefulSet."""
    owner, labels = pod["metadata"]["ownerReferences"][0], pod["metadata"].get("labels", {})
    if owner["kind"] == "StatefulSet":
        return owner["name"], labels.get("controller-revision-hash", "")
    return owner["name"].rpartition("-")[0], owner["name"]


def _message(pod: Tree) -> str:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message: str = condition["message"]
            return message
    return ""


def _nameless(message: str) -> str:
    return _POD.sub('pods "NAME"', message)


@pytest.fixture(scope="module", params=["up", "kube-apiserver"])
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "up":
        server = EmbeddedServer(folder, arguments=["--scheduler", "--no-page"])
        yield LiveServer(LiveClient(server.kubeconfig), server.kubeconfig)
        server.stop()
        return
    need_assets(MANAGER, SCHEDULER)
    plane = LiveControlPlane(folder)
    shared = [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    manager = Process(
        [str(assets_folder() / MANAGER), *shared, f"--controllers={','.join(CONTROLLERS)}"],
        folder / "manager.log",
    )
    scheduler = Process([str(assets_folder() / SCHEDULER), *shared], folder / "scheduler.log")
    client = LiveClient(plane.kubeconfig)
    kubelets = LiveKubelets(client)
    yield LiveServer(client, plane.kubeconfig)
    kubelets.stop()
    for process in (scheduler, manager, plane):
        process.stop()


def prepare(live: LiveServer) -> None:
    """Make the nodes and the objects before the requests; wait until all of them run."""
    for priority in (IMPORTANT, HIGHER):
        live.put("", priority)
    for request in REQUESTS:
        live.put("", with_head("Namespace", {"metadata": {"name": request.name}}))
        for name, cpu in request.nodes.items():
            labels = {"pool": request.name, **request.labels.get(name, {})}
            live.put("", with_head("Node", node_tree(name, labels, {"cpu": cpu})))
        for tree in request.before:
            live.put(request.name, tree)
    deadline = time.monotonic() + SETTLE_S
    while _unready(live):
        assert time.monotonic() < deadline, f"not ready: {_unready(live)}"
        time.sleep(0.2)


def _unready(live: LiveServer) -> list[str]:
    """Deployments without all of their pods, budgets that were not counted, quotas without an amount."""
    found = []
    for request in REQUESTS:
        for tree in request.before:
            kind, name = tree["kind"], tree["metadata"]["name"]
            stored = live.client.get(path_of(kind, request.name, name))
            status = stored.get("status") or {}
            is_ready = (
                status.get("availableReplicas") == tree["spec"]["replicas"]
                if kind in ("Deployment", "StatefulSet")
                else status.get("currentHealthy") == 1
                if kind == "PodDisruptionBudget"
                else status.get("used", {}).get("requests.cpu") == "3"
            )
            if not is_ready:
                found.append(f"{kind} {request.name}/{name}")
    return found


def test_what_is_predicted_happens(live: LiveServer, tmp_path: Path) -> None:
    prepare(live)
    predicted = {request.name: live.predict(request, tmp_path) for request in REQUESTS}

    for request in REQUESTS:
        for tree in request.applied:
            live.put(request.name, tree)

    deadline = time.monotonic() + SETTLE_S
    since = time.monotonic()
    while time.monotonic() < deadline:
        found = {request.name: live.outcome(request) for request in REQUESTS}
        if found != predicted:
            since = time.monotonic()
        elif time.monotonic() - since > STILL_S:
            break
        time.sleep(0.2)
    for name, outcome in predicted.items():
        assert found[name] == outcome, name
