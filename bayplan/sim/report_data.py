"""Report data: the parts of a report as plain data, in the shape of `bayplan simulate -o json`.

The shape is described in docs/output.md; fields are added, never removed.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ..api.text.quantity import format_quantity
from ..scheduler import Explanation
from .outcomes import NodeUse, PodResult


def pod_entry(result: PodResult) -> dict[str, Any]:
    """One pod: its node, its times and its last attempt."""
    pod, attempt = result.pod, result.attempt
    entry: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "outcome": attempt.outcome.value,
        "node": attempt.node_name if result.is_placed else None,
        "score": attempt.score,
        "created": time_entry(result.created_s),
        "time": time_entry(result.time_s),
        "finished": time_entry(result.finished_s),
        "deleted": time_entry(result.deleted_s),
        "attempts": result.attempts,
        "feasibleNodes": attempt.feasible_nodes,
        "evaluatedNodes": attempt.evaluated_nodes,
        "message": attempt.message,
    }
    if attempt.explanation is not None:
        entry["explanation"] = _explanation(attempt.explanation)
    return entry


def time_entry(seconds: float | None) -> float | None:
    """Seconds on the clock of the simulation, to the microsecond."""
    return None if seconds is None else round(seconds, 6)


def node_entry(use: NodeUse) -> dict[str, Any]:
    """One node: its allocatable amounts, and the requests before and after."""
    allocatable = use.node.allocatable
    names = [name for name in allocatable if name != "pods"]
    names += (name for name in use.after if name not in allocatable)
    return {
        "name": use.node.name,
        "added": time_entry(use.added_s),
        "removed": time_entry(use.removed_s),
        "pods": {
            "allocatable": allocatable.get("pods", 0),
            "before": use.pods_before,
            "after": use.pods_after,
        },
        "resources": {
            name: {
                "allocatable": format_quantity(allocatable.get(name, 0), name),
                "before": format_quantity(use.before.get(name, 0), name),
                "after": format_quantity(use.after.get(name, 0), name),
            }
            for name in names
        },
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "preFilter": _status(explanation.pre_filter),
        "nodeNames": None if explanation.node_names is None else sorted(explanation.node_names),
        "skippedFilter": explanation.skipped_filter,
        "filter": {name: _status(status) for name, status in explanation.filter.items()},
        "skippedScore": explanation.skipped_score,
        "scores": [asdict(score) for score in explanation.scores],
        "totals": explanation.totals,
        "postFilter": None,
        "waitsFor": explanation.waits_for,
    }
    if explanation.post_filter is not None:
        result, status = explanation.post_filter
        document["postFilter"] = {
            **_status(status),
            "nominatedNode": result.nominated_node_name or None,
        }
    return document


def _status(status: Any) -> dict[str, Any]:
    """A plugin's status; empty fields are left out."""
    document: dict[str, Any] = {"code": status.code.name}
    if status.plugin:
        document["plugin"] = status.plugin
    if status.message:
        document["reasons"] = list(status.reasons) or [status.message]
    return document
