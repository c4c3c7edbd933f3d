"""Cells: those columns of `kubectl get` that are computed.

Mirrors pkg/printers/internalversion/printers.go. Each function returns the cell of one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ...api.pod_groups import SCHEDULED_CONDITIONS
from ...api.selectors import label_query
from ...cluster.memory.default_class import is_default_class

Tree = Mapping[str, Any]
Cell = Callable[[Tree, datetime], Any]

NONE, UNKNOWN = "<none>", "<unknown>"
MAX_SHOWN = 3
ROLE = "node-role.kubernetes.io/"
ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


_YEAR_S = 365 * 86400
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": _YEAR_S}
_FORMS = (
    *((120, "s", ""), (600, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m")),
    *((48 * 3600, "h", ""), (8 * 86400, "d", "h"), (2 * _YEAR_S, "d", "")),
    *((8 * _YEAR_S, "y", "d"), (float("inf"), "y", "")),
)
"""Seconds up to which a duration has one unit, or two."""


def duration(seconds: float) -> str:
    """A duration in kubectl's form: 90s, 5m30s, 3h20m, 2d5h, 400d, 3y10d."""
    whole = max(int(seconds), 0)
    _, large, small = next(form for form in _FORMS if whole < form[0])
    rest = whole % _UNITS_S[large] // _UNITS_S[small] if small else 0
    return f"{whole // _UNITS_S[large]}{large}" + (f"{rest}{small}" if rest else "")


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


def at(tree: Any, *path: str) -> Any:
    """The value at a path of fields; None without it."""
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _count(tree: Tree, *path: str) -> int:
    return int(at(tree, *path) or 0)


def _joined(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values) or NONE


def _first_few(texts: list[str], separator: str = ",") -> str:
    more = f" + {len(texts) - MAX_SHOWN} more..." if len(texts) > MAX_SHOWN else ""
    return separator.join(texts[:MAX_SHOWN]) + more


def _pairs(labels: Mapping[str, str] | None) -> str:
    return _joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def labels_at(*path: str) -> Cell:
    """A cell with the labels at a path."""
    return lambda tree, now: _pairs(at(tree, *path))


def selector_at(*path: str) -> Cell:
    """A cell with the label selector at a path, which may be a map of labels."""
    return lambda tree, now: label_query(at(tree, *path)) or NONE


def reference_at(*path: str, names: Iterable[str] = ("kind", "name")) -> Cell:
    """A cell with the fields of a reference that are set; empty without a reference."""

    def cell(tree: Tree, now: datetime) -> str:
        reference = at(tree, *path) or {}
        return "/".join(str(reference[name]) for name in names if reference.get(name))

    return cell


# Pods and nodes


def pod_ready(tree: Tree, now: datetime) -> str:
    ready = sum(1 for one in at(tree, "status", "containerStatuses") or () if one.get("ready"))
    return f"{ready}/{len(at(tree, 'spec', 'containers') or ())}"


def pod_restarts(tree: Tree, now: datetime) -> str:
    statuses = at(tree, "status", "containerStatuses") or ()
    return str(sum(int(one.get("restartCount") or 0) for one in statuses))


def pod_gates(tree: Tree, now: datetime) -> str:
    gates = at(tree, "spec", "readinessGates")
    return f"0/{len(gates)}" if gates else NONE


def pod_reason(tree: Tree, now: datetime) -> str:
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


def node_state(tree: Tree, now: datetime) -> str:
    state = "Unknown"
    for condition in at(tree, "status", "conditions") or ():
        if condition.get("type") == "Ready":
            state = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if at(tree, "spec", "unschedulable") else state


def node_roles(tree: Tree, now: datetime) -> str:
    labels = tree["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(ROLE) for key in labels if key.startswith(ROLE))
    return _joined(role for role in roles if role)


def node_address(kind: str) -> Cell:
    """A cell with the address of a kind."""

    def cell(tree: Tree, now: datetime) -> str:
        addresses = at(tree, "status", "addresses") or ()
        return {one.get("type"): one.get("address") for one in addresses}.get(kind) or NONE

    return cell


# Workloads


def ready_replicas(tree: Tree, now: datetime) -> str:
    return f"{_count(tree, 'status', 'readyReplicas')}/{_count(tree, 'spec', 'replicas')}"


def job_state(tree: Tree, now: datetime) -> str:
    for condition in at(tree, "status", "conditions") or ():
        is_true = condition.get("status") == "True"
        if is_true and condition.get("type") in ("Complete", "Failed", "Suspended"):
            return str(condition["type"])
    return "Terminating" if tree["metadata"].get("deletionTimestamp") else "Running"


def job_completions(tree: Tree, now: datetime) -> str:
    wanted, parallelism = at(tree, "spec", "completions"), _count(tree, "spec", "parallelism")
    if wanted is None:
        wanted = f"1 of {parallelism}" if parallelism > 1 else "1"
    return f"{_count(tree, 'status', 'succeeded')}/{wanted}"


def job_duration(tree: Tree, now: datetime) -> str:
    began, end = at(tree, "status", "startTime"), at(tree, "status", "completionTime")
    return since(began, datetime.fromisoformat(end) if end else now) if began else ""


def cron_job_last(tree: Tree, now: datetime) -> str:
    last = at(tree, "status", "lastScheduleTime")
    return since(last, now) if last else NONE


def autoscaler_metrics(tree: Tree, now: datetime) -> str:
    """The targets; the current values are unknown, as nothing is measured."""
    found = []
    for metric in at(tree, "spec", "metrics") or ():
        kind = str(metric.get("type") or "")
        source = metric.get(kind[:1].lower() + kind[1:]) or {}
        target = source.get("target") or {}
        wanted = target.get("averageUtilization")
        text = f"{wanted}%" if wanted is not None else target.get("averageValue")
        name = f"{source['name']}: " if "name" in source else ""
        found.append(f"{name}{UNKNOWN}/{text or target.get('value') or UNKNOWN}")
    return _first_few(found, ", ") or UNKNOWN


def pod_group_policy(tree: Tree, now: datetime) -> str:
    return "Gang" if at(tree, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def pod_group_workload(tree: Tree, now: datetime) -> str:
    workload = at(tree, "spec", "podGroupTemplateRef", "workload", "workloadName")
    return workload or at(tree, "spec", "workloadRef", "workloadName") or NONE


def pod_group_state(tree: Tree, now: datetime) -> str:
    conditions = {c.get("type"): c for c in at(tree, "status", "conditions") or ()}
    if "DisruptionTarget" in conditions:
        return conditions["DisruptionTarget"].get("reason") or ""
    old, new = SCHEDULED_CONDITIONS
    scheduled = conditions.get(new) or conditions.get(old)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


# Storage and devices


def phase(tree: Tree, now: datetime) -> str:
    if tree["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return at(tree, "status", "phase") or ""


def access_modes(part: str) -> Cell:
    """A cell with the access modes in the spec or the status."""
    return lambda tree, now: ",".join(
        ACCESS_MODES.get(mode, mode) for mode in at(tree, part, "accessModes") or ()
    )


def if_bound(cell: Cell) -> Cell:
    """A cell of a claim that is empty until it has a volume."""
    return lambda tree, now: cell(tree, now) if at(tree, "spec", "volumeName") else ""


def storage_class_name(tree: Tree, now: datetime) -> str:
    is_default = is_default_class(tree["metadata"].get("annotations") or {})
    return f"{tree['metadata']['name']}{' (default)' if is_default else ''}"


def resource_claim_state(tree: Tree, now: datetime) -> str:
    status = tree.get("status") or {}
    states = ["deleted"] if tree["metadata"].get("deletionTimestamp") else []
    if status.get("allocation"):
        states.append("allocated")
        states += ["reserved"] if status.get("reservedFor") else []
    else:
        states.append("pending")
    return ",".join(states)


# Networks


def service_external(tree: Tree, now: datetime) -> str:
    spec = tree.get("spec") or {}
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if spec.get("type") == "LoadBalancer" and external == NONE:
        return "<pending>"
    return spec.get("externalName") or NONE if spec.get("type") == "ExternalName" else external


def service_ports(tree: Tree, now: datetime) -> str:
    found = []
    for port in at(tree, "spec", "ports") or ():
        on_nodes = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port.get('port')}{on_nodes}/{port.get('protocol')}")
    return _joined(found)


def ingress_hosts(tree: Tree, now: datetime) -> str:
    rules = at(tree, "spec", "rules") or ()
    return _first_few([str(rule["host"]) for rule in rules if rule.get("host")]) or "*"


def ingress_addresses(tree: Tree, now: datetime) -> str:
    found = at(tree, "status", "loadBalancer", "ingress") or ()
    return ",".join(str(one.get("ip") or one.get("hostname")) for one in found)


def endpoints(tree: Tree, now: datetime) -> str:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in tree.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return _first_few(found) or NONE


# Others


def subjects(kind: str) -> Cell:
    """A cell with the subjects of a binding that are of a kind."""
    return lambda tree, now: ", ".join(
        f"{one['namespace']}/{one['name']}" if one.get("namespace") else str(one.get("name"))
        for one in tree.get("subjects") or ()
        if one.get("kind") == kind
    )


def quota_use(of_limits: bool) -> Cell:
    """A cell with the use of the limits of a quota that are about limits of containers, or of the others."""

    def cell(tree: Tree, now: datetime) -> str:
        used, hard = at(tree, "status", "used") or {}, at(tree, "status", "hard") or {}
        return ", ".join(
            f"{name}: {used.get(name, 0)}/{limit}"
            for name, limit in sorted(hard.items())
            if name.startswith("limits.") == of_limits
        )

    return cell


def config_map_size(tree: Tree, now: datetime) -> int:
    return len(tree.get("data") or ()) + len(tree.get("binaryData") or ())


def event_first_seen(tree: Tree, now: datetime) -> str:
    return since(tree.get("firstTimestamp") or tree.get("eventTime"), now)


def event_last_seen(tree: Tree, now: datetime) -> str:
    last = at(tree, "series", "lastObservedTime") or tree.get("lastTimestamp")
    return since(last, now) if last else event_first_seen(tree, now)


def event_object(tree: Tree, now: datetime) -> str:
    about = tree.get("involvedObject") or {}
    return f"{str(about.get('kind') or '').lower()}/{about.get('name')}"


def event_source(tree: Tree, now: datetime) -> str:
    source = tree.get("source") or {}
    component = source.get("component") or tree.get("reportingComponent") or ""
    host = source.get("host") or tree.get("reportingInstance")
    return ", ".join(filter(None, (component, host)))


def event_count(tree: Tree, now: datetime) -> int:
    return int(at(tree, "series", "count") or tree.get("count") or 1)
