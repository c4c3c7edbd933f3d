"""Cells: the columns of `kubectl get`, kind by kind.

Mirrors pkg/printers/internalversion/printers.go. Each function returns the cells of one row, in the
order of the columns of its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...api.pod_groups import SCHEDULED_CONDITIONS
from ...cluster.memory.default_class import is_default_class

Tree = Mapping[str, Any]
Row = Sequence[Any]

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
ROLE = "node-role.kubernetes.io/"
ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def duration(seconds: float) -> str:
    """A duration in kubectl's form: 90s, 5m30s, 3h20m, 2d5h, 400d, 3y10d."""
    whole = int(seconds)
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    if whole < 600:
        return _two(whole, 60, "m", 1, "s")
    if whole < 3 * 3600:
        return f"{whole // 60}m"
    if whole < 8 * 3600:
        return _two(whole, 3600, "h", 60, "m")
    if whole < 48 * 3600:
        return f"{whole // 3600}h"
    if whole < 8 * 86400:
        return _two(whole, 86400, "d", 3600, "h")
    if whole < 2 * 365 * 86400:
        return f"{whole // 86400}d"
    if whole < 8 * 365 * 86400:
        return _two(whole, 365 * 86400, "y", 86400, "d")
    return f"{whole // (365 * 86400)}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def since(text: str | None, now: datetime) -> str:
    """The time since then."""
    if not text:
        return UNKNOWN
    return duration((now - datetime.fromisoformat(text)).total_seconds())


def go_text(value: Any) -> str:
    """A value as JSONPath prints it: objects and lists as JSON."""
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return str(value).lower() if isinstance(value, bool) else str(value)


def age(tree: Tree, now: datetime) -> str:
    return since(tree["metadata"].get("creationTimestamp"), now)


def _at(tree: Any, *path: str) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _count(tree: Tree, *path: str) -> int:
    return int(_at(tree, *path) or 0)


def _joined(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values) or NONE


def _pairs(labels: Mapping[str, str] | None) -> str:
    return _joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def _selector(tree: Tree) -> str:
    return selector_text(_at(tree, "spec", "selector") or {})


def selector_text(selector: Tree) -> str:
    """A label selector, or a map of labels."""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return _pairs(selector)
    parts = [] if not selector.get("matchLabels") else [_pairs(selector["matchLabels"])]
    for one in selector.get("matchExpressions") or ():
        values = ",".join(one.get("values") or ())
        parts.append(f"{one['key']} {one['operator'].lower()} ({values})" if values else one["key"])
    return _joined(parts)


def _workload(tree: Tree) -> Row:
    containers = _at(tree, "spec", "template", "spec", "containers") or ()
    return [
        _joined(container.get("name") for container in containers),
        _joined(container.get("image") for container in containers),
        _selector(tree),
    ]


# Pods and nodes


def pod(tree: Tree, now: datetime) -> Row:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    ready = sum(1 for one in statuses if one.get("ready"))
    restarts = sum(int(one.get("restartCount") or 0) for one in statuses)
    gates = spec.get("readinessGates") or ()
    return [
        tree["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        pod_reason(tree),
        str(restarts),
        age(tree, now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"0/{len(gates)}" if gates else NONE,
    ]


def pod_reason(tree: Tree) -> str:
    """The STATUS column of a pod."""
    status = tree.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Pending"
    for condition in status.get("conditions") or ():
        is_gated = condition.get("reason") == "SchedulingGated"
        if condition.get("type") == "PodScheduled" and is_gated:
            reason = "SchedulingGated"
    for one in status.get("containerStatuses") or ():
        state = one.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended and ended.get("reason"):
            reason = ended["reason"]
    if tree["metadata"].get("deletionTimestamp") and status.get("phase") not in (
        "Succeeded",
        "Failed",
    ):
        return "Terminating"
    return str(reason)


def node(tree: Tree, now: datetime) -> Row:
    metadata, status = tree["metadata"], tree.get("status") or {}
    info = status.get("nodeInfo") or {}
    addresses = {one.get("type"): one.get("address") for one in status.get("addresses") or ()}
    state = "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            state = "Ready" if condition.get("status") == "True" else "NotReady"
    if _at(tree, "spec", "unschedulable"):
        state += ",SchedulingDisabled"
    labels = metadata.get("labels") or {}
    roles = sorted(key.removeprefix(ROLE) for key in labels if key.startswith(ROLE))
    return [
        metadata["name"],
        state,
        _joined(role for role in roles if role),
        age(tree, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def namespace(tree: Tree, now: datetime) -> Row:
    return [tree["metadata"]["name"], _at(tree, "status", "phase") or "", age(tree, now)]


# Workloads


def deployment(tree: Tree, now: datetime) -> Row:
    status = tree.get("status") or {}
    ready = f"{_count(status, 'readyReplicas')}/{_count(tree, 'spec', 'replicas')}"
    return [
        tree["metadata"]["name"],
        ready,
        _count(status, "updatedReplicas"),
        _count(status, "availableReplicas"),
        age(tree, now),
        *_workload(tree),
    ]


def replica_set(tree: Tree, now: datetime) -> Row:
    return [
        tree["metadata"]["name"],
        _count(tree, "spec", "replicas"),
        _count(tree, "status", "replicas"),
        _count(tree, "status", "readyReplicas"),
        age(tree, now),
        *_workload(tree),
    ]


def stateful_set(tree: Tree, now: datetime) -> Row:
    ready = f"{_count(tree, 'status', 'readyReplicas')}/{_count(tree, 'spec', 'replicas')}"
    return [tree["metadata"]["name"], ready, age(tree, now), *_workload(tree)[:2]]


def daemon_set(tree: Tree, now: datetime) -> Row:
    status = tree.get("status") or {}
    return [
        tree["metadata"]["name"],
        _count(status, "desiredNumberScheduled"),
        _count(status, "currentNumberScheduled"),
        _count(status, "numberReady"),
        _count(status, "updatedNumberScheduled"),
        _count(status, "numberAvailable"),
        _pairs(_at(tree, "spec", "template", "spec", "nodeSelector")),
        age(tree, now),
        *_workload(tree),
    ]


def job(tree: Tree, now: datetime) -> Row:
    status, spec = tree.get("status") or {}, tree.get("spec") or {}
    wanted = spec.get("completions")
    if wanted is None:
        parallelism = int(spec.get("parallelism") or 0)
        wanted = f"1 of {parallelism}" if parallelism > 1 else "1"
    took = ""
    if status.get("startTime"):
        end = status.get("completionTime")
        took = since(status["startTime"], datetime.fromisoformat(end) if end else now)
    return [
        tree["metadata"]["name"],
        _job_state(tree),
        f"{_count(status, 'succeeded')}/{wanted}",
        took,
        age(tree, now),
        *_workload(tree),
    ]


def _job_state(tree: Tree) -> str:
    for condition in _at(tree, "status", "conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in (
            "Complete",
            "Failed",
            "Suspended",
        ):
            return str(condition["type"])
    return "Terminating" if tree["metadata"].get("deletionTimestamp") else "Running"


def cron_job(tree: Tree, now: datetime) -> Row:
    spec, last = tree.get("spec") or {}, _at(tree, "status", "lastScheduleTime")
    template = {"spec": _at(spec, "jobTemplate", "spec") or {}}
    return [
        tree["metadata"]["name"],
        spec.get("schedule"),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(_at(tree, "status", "active") or ()),
        since(last, now) if last else NONE,
        age(tree, now),
        *_workload(template),
    ]


def budget(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    at_least, at_most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        tree["metadata"]["name"],
        "N/A" if at_least is None else str(at_least),
        "N/A" if at_most is None else str(at_most),
        _count(tree, "status", "disruptionsAllowed"),
        age(tree, now),
    ]


def priority_class(tree: Tree, now: datetime) -> Row:
    return [
        tree["metadata"]["name"],
        int(tree.get("value") or 0),
        bool(tree.get("globalDefault")),
        age(tree, now),
        tree.get("preemptionPolicy") or "",
    ]


# Storage


def _modes(modes: Iterable[str] | None) -> str:
    return ",".join(ACCESS_MODES.get(mode, mode) for mode in modes or ())


def claim(tree: Tree, now: datetime) -> Row:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    phase = "Terminating" if tree["metadata"].get("deletionTimestamp") else status.get("phase")
    is_bound = bool(spec.get("volumeName"))
    return [
        tree["metadata"]["name"],
        phase or "",
        spec.get("volumeName") or "",
        str(_at(status, "capacity", "storage") or "") if is_bound else "",
        _modes(status.get("accessModes")) if is_bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        age(tree, now),
        spec.get("volumeMode") or UNSET,
    ]


def volume(tree: Tree, now: datetime) -> Row:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    kept_for = spec.get("claimRef") or {}
    phase = "Terminating" if tree["metadata"].get("deletionTimestamp") else status.get("phase")
    return [
        tree["metadata"]["name"],
        str(_at(spec, "capacity", "storage") or ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        phase or "",
        f"{kept_for.get('namespace')}/{kept_for.get('name')}" if kept_for else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason") or "",
        age(tree, now),
        spec.get("volumeMode") or UNSET,
    ]


def storage_class(tree: Tree, now: datetime) -> Row:
    name = tree["metadata"]["name"]
    if is_default_class(tree["metadata"].get("annotations") or {}):
        name += " (default)"
    return [
        name,
        tree.get("provisioner"),
        tree.get("reclaimPolicy") or "Delete",
        tree.get("volumeBindingMode") or "Immediate",
        bool(tree.get("allowVolumeExpansion")),
        age(tree, now),
    ]


def csi_node(tree: Tree, now: datetime) -> Row:
    return [tree["metadata"]["name"], len(_at(tree, "spec", "drivers") or ()), age(tree, now)]


def csi_driver(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    return [
        tree["metadata"]["name"],
        bool(spec.get("attachRequired")),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        _joined(spec.get("volumeLifecycleModes") or ()),
        age(tree, now),
    ]


def csi_capacity(tree: Tree, now: datetime) -> Row:
    return [tree["metadata"]["name"], tree.get("storageClassName"), str(tree.get("capacity") or "")]


def attachment(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    return [
        tree["metadata"]["name"],
        spec.get("attacher"),
        _at(spec, "source", "persistentVolumeName") or "",
        spec.get("nodeName"),
        bool(_at(tree, "status", "attached")),
        age(tree, now),
    ]


# Devices


def resource_claim(tree: Tree, now: datetime) -> Row:
    status = tree.get("status") or {}
    states = ["deleted"] if tree["metadata"].get("deletionTimestamp") else []
    if status.get("allocation"):
        states.append("allocated")
        states += ["reserved"] if status.get("reservedFor") else []
    else:
        states.append("pending")
    return [tree["metadata"]["name"], ",".join(states), age(tree, now)]


def resource_slice(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    pool = _at(spec, "pool", "name")
    return [
        tree["metadata"]["name"],
        spec.get("nodeName") or "",
        spec.get("driver"),
        pool,
        age(tree, now),
    ]


# Others


def service(tree: Tree, now: datetime) -> Row:
    spec = tree.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if kind == "LoadBalancer" and external == NONE:
        external = "<pending>"
    if kind == "ExternalName":
        external = spec.get("externalName") or NONE
    ports = []
    for port in spec.get("ports") or ():
        number = (
            f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else port.get("port")
        )
        ports.append(f"{number}/{port.get('protocol')}")
    return [
        tree["metadata"]["name"],
        kind,
        spec.get("clusterIP") or NONE,
        external,
        _joined(ports),
        age(tree, now),
        _pairs(spec.get("selector")),
    ]


def config_map(tree: Tree, now: datetime) -> Row:
    entries = len(tree.get("data") or ()) + len(tree.get("binaryData") or ())
    return [tree["metadata"]["name"], entries, age(tree, now)]


def secret(tree: Tree, now: datetime) -> Row:
    return [tree["metadata"]["name"], tree.get("type"), len(tree.get("data") or ()), age(tree, now)]


def lease(tree: Tree, now: datetime) -> Row:
    return [tree["metadata"]["name"], _at(tree, "spec", "holderIdentity") or "", age(tree, now)]


def pod_group(tree: Tree, now: datetime) -> Row:
    policy = "Gang" if _at(tree, "spec", "schedulingPolicy", "gang") is not None else "Basic"
    workload = _at(tree, "spec", "podGroupTemplateRef", "workload", "workloadName")
    workload = workload or _at(tree, "spec", "workloadRef", "workloadName") or "<none>"
    conditions = {c.get("type"): c for c in _at(tree, "status", "conditions") or ()}
    old, new = SCHEDULED_CONDITIONS
    state, scheduled = "Pending", conditions.get(new) or conditions.get(old)
    if scheduled is not None:
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if "DisruptionTarget" in conditions:
        state = conditions["DisruptionTarget"].get("reason") or ""
    return [tree["metadata"]["name"], policy, workload, state, age(tree, now)]


def event(tree: Tree, now: datetime) -> Row:
    about, series = tree.get("involvedObject") or {}, tree.get("series") or {}
    first = tree.get("firstTimestamp") or tree.get("eventTime")
    last = series.get("lastObservedTime") or tree.get("lastTimestamp") or first
    source = tree.get("source") or {}
    component = source.get("component") or tree.get("reportingComponent") or ""
    origin = ", ".join(
        filter(None, (component, source.get("host") or tree.get("reportingInstance")))
    )
    return [
        since(last, now),
        tree.get("type") or "",
        tree.get("reason") or "",
        f"{str(about.get('kind') or '').lower()}/{about.get('name')}",
        str(tree.get("message") or "").strip(),
        about.get("fieldPath") or "",
        origin,
        since(first, now),
        int(series.get("count") or tree.get("count") or 1),
        tree["metadata"]["name"],
    ]
