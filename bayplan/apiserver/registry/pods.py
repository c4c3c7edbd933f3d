"""Pods: the API server's rules for pods alone: quality of service, gates, conditions and binding.

Mirrors pkg/registry/core/pod/{strategy,storage/storage}.go and pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...api.rules.field_causes import Cause, Part, invalid_value, required
from ...api.rules.immutable import is_same
from ...api.rules.pod_rules import check_pod_spec
from ...api.taints import Toleration
from ...api.text.quantity import parse_quantity
from ...api.wire.nulls import without_nulls
from ...cluster.memory.admission import default_tolerations
from .resource_table import BY_STORAGE, ApiResource
from .status_errors import StatusError, bad_request, conflict, invalid

Tree = dict[str, Any]
PODS = BY_STORAGE["pods"]
FINISHED = ("Succeeded", "Failed")
QOS_RESOURCES = ("cpu", "memory")
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def note_gates(tree: Tree, now: str) -> None:
    """Write into the status of a new pod that gates hold it."""
    if tree["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        held = {"status": "False", "reason": "SchedulingGated", "message": message}
        set_conditions(tree["status"], [{"type": "PodScheduled", **held}], now)


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed when all containers have equal cpu and memory limits and requests, BestEffort when none has any."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    given = [spec["resources"]] if spec.get("resources") else []
    parts = given or [container.get("resources") or {} for container in containers]
    says, guaranteed = False, bool(parts)
    for part in parts:
        requests, limits = part.get("requests") or {}, part.get("limits") or {}
        for name in QOS_RESOURCES:
            wanted = parse_quantity(requests[name]) if requests.get(name) else 0
            limit = parse_quantity(limits[name]) if limits.get(name) else 0
            says |= bool(wanted or limit)
            guaranteed &= bool(limit) and wanted in (0, limit)
    if not says:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def be_patient(tree: Tree) -> None:
    """Add the default tolerations, unless the pod overrides them; on updates, too.

    Re-applying a manifest replaces its tolerations as a whole.
    """
    spec = tree.get("spec") or {}
    given = list(spec.get("tolerations") or ())
    read = msgspec.convert(without_nulls(given), tuple[Toleration, ...])
    added = default_tolerations(read)[len(read) :]
    tree["spec"] = {**spec, "tolerations": [*given, *msgspec.to_builtins(added)]}


def set_conditions(status: Tree, conditions: Iterable[Mapping[str, Any]], now: str) -> None:
    """Replace the conditions of the same types."""
    found = {old.get("type"): old for old in status.get("conditions") or ()}
    for condition in conditions:
        kind = condition["type"]
        old = found.get(kind)
        if old is None:
            found[kind] = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
            continue
        moved = old.get("status") != condition["status"]
        since = now if moved else old.get("lastTransitionTime")
        found[kind] = {"lastProbeTime": None, **condition, "lastTransitionTime": since}
    status["conditions"] = list(found.values())


def check_binding(binding: Mapping[str, Any], name: str) -> str:
    """The node name in a Binding; raises StatusError when it is invalid."""
    given = str((binding.get("metadata") or {}).get("name") or "")
    if given != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    kind = target.get("kind") or "Node"
    if kind != "Node":
        cause = invalid_value("target.kind", kind, 'must be "Node"')
        raise invalid(_BINDINGS, name, [cause])
    if not target.get("name"):
        raise invalid(_BINDINGS, name, [required("target.name")])
    return str(target["name"])


def bind(tree: Tree, binding: Mapping[str, Any], node_name: str, now: str) -> Tree:
    """The pod on its node; raises StatusError when it must not be bound."""
    metadata, spec = tree["metadata"], tree["spec"]
    name, said = metadata["name"], binding.get("metadata") or {}
    check_preconditions(PODS, tree, said.get("uid"), said.get("resourceVersion"))
    if metadata.get("deletionTimestamp"):
        raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _unbindable(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node_name
    for field in ("annotations", "labels"):
        if said.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **said[field]}
    status = tree.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_conditions(status, [{"type": "PodScheduled", "status": "True"}], now)
    return tree


def copy_topology(tree: Tree, labels: Mapping[str, str]) -> None:
    """Give a pod the zone and the region of its node as labels.

    Mirrors plugin/pkg/admission/podtopologylabels.
    """
    found = {name: labels[name] for name in TOPOLOGY_LABELS if name in labels}
    if found:
        metadata = tree["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **found}


def check_preconditions(
    resource: ApiResource, tree: Mapping[str, Any], uid: Any, resource_version: Any
) -> None:
    """Check the preconditions of an operation; each may be None or empty."""
    metadata = tree["metadata"]
    if uid and uid != metadata["uid"]:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise conflict(resource, metadata["name"], problem)
    if resource_version and str(resource_version) != metadata["resourceVersion"]:
        problem = (
            f"Precondition failed: ResourceVersion in precondition: {resource_version},"
            f" ResourceVersion in object meta: {metadata['resourceVersion']}"
        )
        raise conflict(resource, metadata["name"], problem)


_BINDINGS = BY_STORAGE["bindings"]


def _unbindable(name: str, problem: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {problem}'
    return StatusError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


def grace_of(tree: Mapping[str, Any], asked: int | None) -> int:
    """The grace period of a deletion in seconds; 0 if it is immediate."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in FINISHED:
        return 0
    seconds = spec.get("terminationGracePeriodSeconds") if asked is None else asked
    seconds = 0 if seconds is None else int(seconds)
    return 1 if seconds < 0 else seconds


_KINDS = ("containers", "initContainers")
_SIZE = ("resources", "resizePolicy")
_RESIZED = ("cpu", "memory")


def resized(tree: Tree, old: Mapping[str, Any]) -> Tree:
    """The old pod with the resources of the new one; with the new containers if they are others, which is refused.

    The running containers get the status `resources`, which a kubelet reports, so that their allocation is known.
    """
    given, before = tree.get("spec") or {}, old["spec"]
    spec = dict(before)
    for kind in _KINDS:
        ours, theirs = before.get(kind) or [], given.get(kind) or []
        if [c.get("name") for c in ours] != [c.get("name") for c in theirs]:
            spec[kind] = theirs
        elif ours:
            sizes = ({key: new[key] for key in _SIZE if key in new} for new in theirs)
            bare = ({k: v for k, v in one.items() if k not in _SIZE} for one in ours)
            spec[kind] = [{**one, **size} for one, size in zip(bare, sizes, strict=True)]
    return {**old, "spec": spec, "status": _reported(old)}


def _reported(pod: Mapping[str, Any]) -> Tree:
    """The status with the resources of each running container."""
    status = dict(pod.get("status") or {})
    sizes = {c.get("name"): c.get("resources") or {} for c in pod["spec"].get("containers") or ()}

    def report(one: Tree) -> Tree:
        if "resources" in one or "running" not in (one.get("state") or {}):
            return one
        size = sizes.get(one.get("name")) or {}
        return {**one, "resources": size, "allocatedResources": size.get("requests") or {}}

    if status.get("containerStatuses"):
        status["containerStatuses"] = [report(one) for one in status["containerStatuses"]]
    return status


def resize_causes(tree: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """The faults of a resized pod."""
    new, before = Part(tree).below("spec"), old["spec"]
    check_pod_spec(new)
    if qos_class(new.tree) != qos_class(before):
        problem = "Pod QOS Class may not change as a result of resizing"
        new.invalid("", problem, (tree.get("status") or {}).get("qosClass", ""))
    count = len(new.causes)
    _check_order(new, before)
    if len(new.causes) == count:
        _check_sizes(new, before)
    return new.causes


def _check_order(new: Part, old: Mapping[str, Any]) -> None:
    for kind in _KINDS:
        ours, theirs = old.get(kind) or [], list(new.each(kind))
        if len(ours) != len(theirs):
            new.forbidden(kind, f"{kind} may not be added or removed on resize")
            continue
        for one, other in zip(ours, theirs, strict=True):
            if one.get("name") != other.get("name"):
                other.forbidden("name", f"{kind} may not be renamed or reordered on resize")


def _check_sizes(new: Part, old: Mapping[str, Any]) -> None:
    for kind in _KINDS:
        for one, other in zip(old.get(kind) or [], new.each(kind), strict=True):
            if kind == "initContainers" and one.get("restartPolicy") != "Always":
                if not is_same(one, other.tree):
                    problem = "resources for non-sidecar init containers are immutable"
                    new.forbidden("", problem)
                continue
            before, after = one.get("resources") or {}, other.below("resources")
            for part in ("requests", "limits"):
                if set(before.get(part) or ()) - set(after.get(part) or ()):
                    after.forbidden(part, f"resource {part} cannot be removed")
            if not is_same(_fixed(one), _fixed(other.tree)):
                new.forbidden("", "only cpu and memory resources are mutable")


def _fixed(container: Mapping[str, Any]) -> Tree:
    """The container without its cpu and memory."""
    size = container.get("resources") or {}
    kept = {
        part: {k: v for k, v in (size.get(part) or {}).items() if k not in _RESIZED}
        for part in ("requests", "limits")
    }
    return {**container, "resources": {**size, **kept}}
