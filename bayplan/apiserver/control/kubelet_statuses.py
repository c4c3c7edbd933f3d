"""Kubelet statuses: the statuses that a kubelet writes for a pod that starts, runs, crashes and ends.

Each function takes a whole pod and the time, and returns the pod with a new status. All containers do
the same at the same time. Mirrors the states of pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from ...api.pod import Pod
from ...clock import Clock
from ..registry.pods import set_conditions
from .embedded_cluster import LiveCluster
from .recorder import EventTokens, Reporter

Tree = dict[str, Any]

CRASH_LOOP = "CrashLoopBackOff"
SCHEDULED, SANDBOXED, INITIALIZED = (
    {"type": kind, "status": "True"}
    for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized")
)
READINESS = ("Ready", "ContainersReady")
READY = tuple({"type": kind, "status": "True"} for kind in READINESS)


def waiting(tree: Tree, reason: Tree, now: str) -> Tree:
    """A pod whose containers have not started, for this reason."""
    status = _placed(tree, now)
    first = tree["spec"].get("initContainers") or ()
    begun = {"type": "Initialized", "status": "False" if first else "True"}
    alone = {"type": "PodReadyToStartContainers", "status": "False"}
    set_conditions(status, (SCHEDULED, alone, begun, *_readiness(tree, False)), now)
    status["containerStatuses"] = [
        _container_status(container, {"waiting": reason}, is_ready=False)
        for container in tree["spec"].get("containers") or ()
    ]
    return {**tree, "status": status}


def running(tree: Tree, now: str, is_ready: bool = True) -> Tree:
    """A pod whose containers run for the first time."""
    spec = tree["spec"]
    status = {**_placed(tree, now), "phase": "Running"}
    address = make_address("10.244", tree["metadata"]["uid"])
    status["podIP"] = status["hostIP"] if spec.get("hostNetwork") else address
    status["podIPs"] = [{"ip": status["podIP"]}]
    done_first = (SCHEDULED, SANDBOXED, INITIALIZED)
    set_conditions(status, (*done_first, *_readiness(tree, is_ready)), now)
    status["containerStatuses"] = [
        _container_status(container, {"running": {"startedAt": now}}, is_ready)
        for container in spec.get("containers") or ()
    ]
    done = {"reason": "Completed", "exitCode": 0, "startedAt": now, "finishedAt": now}
    first = [
        _container_status(c, {"terminated": done}, True) for c in spec.get("initContainers") or ()
    ]
    if first:
        status["initContainerStatuses"] = first
    return {**tree, "status": status}


def ready(tree: Tree, now: str) -> Tree:
    """A running pod that has become ready."""
    status = dict(tree.get("status") or {})
    set_conditions(status, READY, now)
    status["containerStatuses"] = [{**c, "ready": True} for c in _containers(status)]
    return {**tree, "status": status}


def crashed(tree: Tree, exit_code: int, now: str) -> Tree:
    """A pod whose containers have ended and will be started again."""
    metadata, status = tree["metadata"], dict(tree.get("status") or {})
    set_conditions(status, _readiness(tree, False), now)

    def stopped(one: Tree) -> Tree:
        place = f"{metadata['name']}_{metadata.get('namespace', '')}({metadata['uid']})"
        message = f"back-off restarting failed container={one.get('name')} pod={place}"
        last = {"terminated": _terminated(one, exit_code, now)}
        state = {"waiting": {"reason": CRASH_LOOP, "message": message}}
        return {**one, "state": state, "lastState": last, "ready": False, "started": False}

    status["containerStatuses"] = [stopped(one) for one in _containers(status)]
    return {**tree, "status": status}


def restarted(tree: Tree, now: str, is_ready: bool) -> Tree:
    """A pod whose containers run once more."""
    status = dict(tree.get("status") or {})
    set_conditions(status, _readiness(tree, is_ready), now)
    status["containerStatuses"] = [
        {
            **one,
            "state": {"running": {"startedAt": now}},
            "ready": is_ready,
            "started": True,
            "restartCount": int(one.get("restartCount") or 0) + 1,
        }
        for one in _containers(status)
    ]
    return {**tree, "status": status}


def ended(tree: Tree, exit_code: int, now: str) -> Tree:
    """A pod whose containers have ended and are not restarted."""
    status = {**(tree.get("status") or {}), "phase": "Failed" if exit_code else "Succeeded"}
    over = {"status": "False", "reason": "PodFailed" if exit_code else "PodCompleted"}
    set_conditions(status, [{"type": kind, **over} for kind in READINESS], now)
    status["containerStatuses"] = [
        {
            **one,
            "state": {"terminated": _terminated(one, exit_code, now)},
            "ready": False,
            "started": False,
        }
        for one in _containers(status)
    ]
    return {**tree, "status": status}


def restarts(tree: Tree) -> int:
    """Number of restarts of the containers."""
    statuses = _containers(tree.get("status") or {})
    return max((int(one.get("restartCount") or 0) for one in statuses), default=0)


def times(tree: Tree) -> tuple[str, str]:
    """Time when the containers started, and when they last ended before a restart; each may be empty."""
    for one in _containers(tree.get("status") or {}):
        running_state = (one.get("state") or {}).get("running") or {}
        over = (one.get("lastState") or {}).get("terminated") or {}
        return str(running_state.get("startedAt") or ""), str(over.get("finishedAt") or "")
    return "", ""


def _containers(status: Tree) -> list[Tree]:
    return list(status.get("containerStatuses") or ())


def _placed(tree: Tree, now: str) -> Tree:
    """The status of a pod that its kubelet has taken on."""
    status = dict(tree.get("status") or {})
    host = make_address("10.0", tree["spec"]["nodeName"])
    status |= {
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": status.get("startTime") or now,
        "observedGeneration": tree["metadata"].get("generation", 1),
    }
    status.pop("nominatedNodeName", None)
    return status


def _readiness(tree: Tree, is_ready: bool) -> Iterable[Tree]:
    """The conditions about the readiness of the containers."""
    if is_ready:
        return READY
    names = " ".join(str(c.get("name")) for c in tree["spec"].get("containers") or ())
    why = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    return [{"type": kind, "status": "False", **why} for kind in READINESS]


def _terminated(one: Tree, exit_code: int, now: str) -> Tree:
    began = ((one.get("state") or {}).get("running") or {}).get("startedAt")
    reason = "Error" if exit_code else "Completed"
    return {"reason": reason, "exitCode": exit_code, "startedAt": began, "finishedAt": now}


def _container_status(container: Tree, state: Tree, is_ready: bool) -> Tree:
    image = str(container.get("image") or "")
    found: Tree = {
        "name": container.get("name"),
        "state": state,
        "lastState": {},
        "ready": is_ready,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        "started": "running" in state,
    }
    if "waiting" not in state:
        found["imageID"] = f"pretend://{image}"
        found["containerID"] = _container_id(image)
    return found


@lru_cache(maxsize=1024)
def _container_id(image: str) -> str:
    return f"pretend://{blake2b(image.encode(), digest_size=16).hexdigest()}"


KUBELET_VERSION = "v1.36.4"


def missing_status(tree: Mapping[str, Any], now: str) -> Tree:
    """The fields of a node's status that a kubelet sets and that the node does not have."""
    status, metadata = tree.get("status") or {}, tree["metadata"]
    missing: Tree = {}
    conditions = list(status.get("conditions") or ())
    if not any(c.get("type") == "Ready" for c in conditions):
        missing["conditions"] = [*conditions, condition("Ready", "True", "KubeletReady", now)]
    info = status.get("nodeInfo") or {}
    if not info.get("kubeletVersion"):
        given = {key: value for key, value in info.items() if value}
        missing["nodeInfo"] = {**_node_info(metadata.get("labels") or {}), **given}
    addresses = list(status.get("addresses") or ())
    if not any(a.get("type") == "InternalIP" for a in addresses):
        internal = {"type": "InternalIP", "address": make_address("10.0", metadata["name"])}
        named = any(a.get("type") == "Hostname" for a in addresses)
        host = [] if named else [{"type": "Hostname", "address": metadata["name"]}]
        missing["addresses"] = [internal, *host, *addresses]
    return missing


def condition(kind: str, status: str, reason: str, now: str) -> Tree:
    """A condition of a node."""
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": kind, "status": status, "reason": reason, "message": "", **times}


def _node_info(labels: Mapping[str, str]) -> Tree:
    system = labels.get("kubernetes.io/os") or "linux"
    return {
        "architecture": labels.get("kubernetes.io/arch") or "amd64",
        "bootID": "",
        "containerRuntimeVersion": "pretend://1",
        "kernelVersion": "0",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": "",
        "operatingSystem": system,
        "osImage": "Bayplan",
        "systemUUID": "",
    }


def make_address(network: str, name: str) -> str:
    """A deterministic address for `name` in `network`, the first two of its four numbers."""
    third, fourth = blake2b(name.encode(), digest_size=2).digest()
    return f"{network}.{third}.{fourth or 1}"


BURST, PER_S = 50.0, 5.0
"""Pods about which normal events are written at once, and per second."""


class KubeletEvents:
    """Writes the events of kubelets.

    Warnings are always written. Normal events, about pods that start or stop, are written about a few pods a
    second only, as with eventRecordQPS of a kubelet: starting ten thousand pods costs no more.
    """

    def __init__(self, cluster: LiveCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._tokens = EventTokens(BURST, 1 / PER_S, BURST, clock.monotonic())

    def starting(self, pod: Pod) -> None:
        """The containers of the pod are started, from images that the node has."""
        if not self._may_tell():
            return
        for container in pod.spec.init_containers or ():
            self._start(pod, container.name, container.image, "initContainers")
        for container in pod.spec.containers or ():
            self._start(pod, container.name, container.image, "containers")

    def stopping(self, pod: Pod) -> None:
        """The containers of a running pod are stopped."""
        if pod.status.phase != "Running" or not self._may_tell():
            return
        for container in pod.spec.containers or ():
            text = f"Stopping container {container.name}"
            self._tell(pod, "Killing", text, f"spec.containers{{{container.name}}}")

    def not_pulled(self, pod: Pod, image: str, why: str) -> None:
        """An attempt to pull an image has failed."""
        path = self._first(pod)
        self._tell(pod, "Pulling", f'Pulling image "{image}"', path)
        self.warn(pod, "Failed", f'Failed to pull image "{image}": {why}', path)
        self.warn(pod, "Failed", "Error: ErrImagePull", path)

    def waits_to_pull(self, pod: Pod, image: str) -> None:
        """The next attempt to pull an image waits."""
        path = self._first(pod)
        self._tell(pod, "BackOff", f'Back-off pulling image "{image}"', path)
        self.warn(pod, "Failed", "Error: ImagePullBackOff", path)

    def waits_to_restart(self, pod: Pod) -> None:
        """Containers that ended wait for their next start."""
        place = f"{pod.name}_{pod.namespace}({pod.uid})"
        for container in pod.spec.containers or ():
            text = f"Back-off restarting failed container {container.name} in pod {place}"
            self.warn(pod, "BackOff", text, f"spec.containers{{{container.name}}}")

    def warn(self, pod: Pod, reason: str, message: str, field_path: str = "") -> None:
        """Write a warning event about a fault of the pod."""
        reporter = Reporter("kubelet", pod.node_name)
        self._cluster.tell(pod, reporter, ("Warning", reason), message, field_path)

    def unhealthy(self, pod: Pod, why: str) -> None:
        """The readiness probe of the pod's first container fails."""
        self.warn(pod, "Unhealthy", f"Readiness probe failed: {why}", self._first(pod))

    def _start(self, pod: Pod, name: str, image: str, kind: str) -> None:
        path = f"spec.{kind}{{{name}}}"
        present = "already present on machine and can be accessed by the pod"
        self._tell(pod, "Pulled", f'Container image "{image}" {present}', path)
        self._tell(pod, "Created", "Container created", path)
        self._tell(pod, "Started", "Container started", path)

    def _tell(self, pod: Pod, reason: str, message: str, field_path: str) -> None:
        reporter = Reporter("kubelet", pod.node_name)
        self._cluster.tell(pod, reporter, ("Normal", reason), message, field_path)

    def _may_tell(self) -> bool:
        return self._tokens.take(self._clock.monotonic())

    def _first(self, pod: Pod) -> str:
        containers = pod.spec.containers or ()
        return f"spec.containers{{{containers[0].name}}}" if containers else ""
