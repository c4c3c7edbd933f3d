"""Conversion: objects of resources that are stored in another version.

Events are stored as v1, HorizontalPodAutoscalers as autoscaling/v2. Versions of a CustomResourceDefinition differ in
`apiVersion` only, and need no conversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...api.rules.field_causes import Cause, Part
from .resource_table import ApiResource

Tree = dict[str, Any]

REST = "bayplan.dev/autoscaling-v2"
"""Annotation of an autoscaling/v1 object: the fields that this version does not have, as JSON."""
_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_REST = {"spec": ("metrics", "behavior"), "status": ("currentMetrics", "conditions")}


def to_stored(resource: ApiResource, tree: Tree) -> Tree:
    """The object in the version that is stored."""
    if resource.stored_as == "events":
        return {_TO_CORE.get(key, key): value for key, value in tree.items()}
    return _to_v2(tree) if resource.stored_as else tree


def from_stored(resource: ApiResource, tree: Tree) -> Tree:
    """The object in the version of the resource."""
    if resource.stored_as == "events":
        return {_FROM_CORE.get(key, key): value for key, value in tree.items()}
    return _to_v1(tree) if resource.stored_as else tree


def _to_v1(tree: Tree) -> Tree:
    """An autoscaling/v2 HorizontalPodAutoscaler as autoscaling/v1."""
    spec, status = dict(tree.get("spec") or {}), dict(tree.get("status") or {})
    metrics = list(spec.get("metrics") or ())
    place = next((i for i, metric in enumerate(metrics) if _utilization(metric)), None)
    if place is not None:
        spec[_TARGET] = _utilization(metrics.pop(place))
        spec["metrics"] = metrics
    for metric in status.get("currentMetrics") or ():
        used = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if (metric.get("resource") or {}).get("name") == "cpu" and used is not None:
            status[_CURRENT] = used
    rest: Tree = {}
    for part, names in _REST.items():
        holder = spec if part == "spec" else status
        kept = {name: value for name in names if (value := holder.pop(name, None))}
        rest |= {part: kept} if kept else {}
    converted = {**tree, "spec": spec, "status": status}
    if rest:
        metadata = dict(tree["metadata"])
        text = msgspec.json.encode(rest).decode()
        metadata["annotations"] = {**(metadata.get("annotations") or {}), REST: text}
        converted["metadata"] = metadata
    return converted


def _to_v2(tree: Tree) -> Tree:
    """An autoscaling/v1 HorizontalPodAutoscaler as autoscaling/v2."""
    spec, status = dict(tree.get("spec") or {}), dict(tree.get("status") or {})
    metadata = dict(tree.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    rest = _read_rest(annotations.pop(REST, ""))
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    spec |= rest.get("spec") or {}
    status |= rest.get("status") or {}
    status.pop(_CURRENT, None)
    target = spec.pop(_TARGET, None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        cpu = {"type": "Resource", "resource": {"name": "cpu", "target": wanted}}
        spec["metrics"] = [cpu, *(spec.get("metrics") or ())]
    converted = {**tree, "metadata": metadata, "spec": spec}
    if status or "status" in tree:
        converted["status"] = status
    return converted


def _read_rest(text: str) -> Tree:
    """The annotation as `_to_v1` wrote it; a client may have written anything."""
    try:
        rest = msgspec.json.decode(text or "{}", type=dict[str, dict[str, Any]])
    except msgspec.MsgspecError:
        return {}
    return {part: rest[part] for part in _REST if part in rest}


def _utilization(metric: Tree) -> int | None:
    """The target of a metric if it is the share of requested CPU."""
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    if resource.get("name") != "cpu" or target.get("type") != "Utilization":
        return None
    return target.get("averageUtilization")


MAX_NOTE = 1024
MAX_WORD = 128

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_FROM_CORE = {core: name for name, core in _TO_CORE.items()}


def event_causes(tree: Mapping[str, Any]) -> list[Cause]:
    """The faults of an event that came as events.k8s.io/v1; `tree` is in the form of v1."""
    event = Part(tree)
    event.needs("eventTime")
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        word, shown = str(tree.get(field) or ""), _FROM_CORE.get(field, field)
        if not word:
            event.required(shown)
        elif len(word) > MAX_WORD and field != "reportingComponent":
            event.invalid(shown, f"can have at most {MAX_WORD} characters", "")
    if len(str(tree.get("message") or "")) > MAX_NOTE:
        event.invalid("message", f"can have at most {MAX_NOTE} characters", "")
    event.needs_choice("type", "Normal", "Warning")
    return event.causes
