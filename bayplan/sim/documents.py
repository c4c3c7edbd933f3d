"""Documents: a report as plain data, in the shape of `bayplan simulate -o json`.

The shape is described in docs/output.md; fields are added, never removed.
"""

from __future__ import annotations

from typing import Any

from ..api.own_documents import API_VERSION
from ..api.quantity import format_quantity
from ..scheduler import Explanation
from .report import NodeUse, PodResult, SimulationReport


def to_document(report: SimulationReport) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "apiVersion": API_VERSION,
        "kind": "SimulationReport",
        "summary": {
            "pods": len(report.pods),
            "placed": len(report.placed),
            "pending": len(report.pending),
            "preempted": len(report.preempted),
            "running": report.running,
            "nodes": len(report.nodes),
            "finished": sum(result.finished_s is not None for result in report.pods),
            "time": _time(report.time_s),
        },
        "pods": [_pod(result) for result in report.pods],
        "nodes": [_node(use) for use in report.nodes],
        "preempted": [
            {
                "namespace": victim.namespace,
                "name": victim.name,
                "node": victim.node_name,
                "for": {"namespace": preemptor.namespace, "name": preemptor.name},
            }
            for victim, preemptor in report.preempted
        ],
    }


def _pod(result: PodResult) -> dict[str, Any]:
    pod, attempt = result.pod, result.attempt
    entry: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "outcome": attempt.outcome.value,
        "node": attempt.node_name if result.is_placed else None,
        "score": attempt.score,
        "created": _time(result.created_s),
        "time": _time(result.time_s),
        "finished": _time(result.finished_s),
        "deleted": _time(result.deleted_s),
        "attempts": result.attempts,
        "feasibleNodes": attempt.feasible_nodes,
        "evaluatedNodes": attempt.evaluated_nodes,
        "message": attempt.message,
    }
    if attempt.explanation is not None:
        entry["explanation"] = _explanation(attempt.explanation)
    return entry


def _time(seconds: float | None) -> float | None:
    """Seconds on the clock of the simulation, to the microsecond."""
    return None if seconds is None else round(seconds, 6)


def _node(use: NodeUse) -> dict[str, Any]:
    allocatable = use.node.allocatable
    names = [name for name in allocatable if name != "pods"]
    names += (name for name in use.after if name not in allocatable)
    return {
        "name": use.node.name,
        "added": _time(use.added_s),
        "removed": _time(use.removed_s),
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
        "scores": [
            {
                "plugin": score.plugin,
                "weight": score.weight,
                "raw": score.raw,
                "normalized": score.normalized,
            }
            for score in explanation.scores
        ],
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
