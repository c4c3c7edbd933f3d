"""Kubelet statuses: the statuses that a kubelet writes for a pod that starts, runs, crashes and ends.

Each function takes a whole pod and the time, and returns the pod with a new status. All containers do
the same at the same time. Mirrors the states of pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from ..registry.pods import set_conditions
from .node_status import make_address

Tree = dict[str, Any]

CREATING = {"reason": "ContainerCreating"}
CRASH_LOOP = "CrashLoopBackOff"
SCHEDULED, SANDBOXED, INITIALIZED = (
    {"type": kind, "status": "True"}
    for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized")
)
READINESS = ("Ready", "ContainersReady")
READY = tuple({"type": kind, "status": "True"} for kind in READINESS)


def creating(tree: Tree, now: str) -> Tree:
    """A pod whose containers are being created."""
    return waiting(tree, CREATING, now)


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
    """A pod whose containers have ended for good."""
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
