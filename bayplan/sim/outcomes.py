"""Outcomes: the result of one pod, and the use of one node, in a simulation.

Their plain data has the shape of `bayplan simulate -o json`, which docs/output.md describes; fields are added, never
removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from ..api.node import Node
from ..api.pod import Pod
from ..api.text.quantity import format_quantity
from ..scheduler import Attempt, Explanation, Outcome


class PodResult(Struct):
    """The last attempt of one pod, and its outcome; times are seconds on the simulation's clock."""

    attempt: Attempt
    time_s: float = 0.0
    """Time when the attempt ended."""
    attempts: int = 1
    created_s: float = 0.0
    finished_s: float | None = None
    deleted_s: float | None = None
    """Time when a placed pod was deleted."""

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def is_placed(self) -> bool:
        """Whether it was placed, even if it was deleted later."""
        return self.attempt.outcome is Outcome.BOUND

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the pod: its node, its times and its last attempt."""
        pod, attempt = self.pod, self.attempt
        entry: dict[str, Any] = {
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "outcome": attempt.outcome.value,
            "node": attempt.node_name if self.is_placed else None,
            "score": attempt.score,
            "created": time_entry(self.created_s),
            "time": time_entry(self.time_s),
            "finished": time_entry(self.finished_s),
            "deleted": time_entry(self.deleted_s),
            "attempts": self.attempts,
            "feasibleNodes": attempt.feasible_nodes,
            "evaluatedNodes": attempt.evaluated_nodes,
            "message": attempt.message,
        }
        if attempt.explanation is not None:
            entry["explanation"] = _explanation(attempt.explanation)
        return entry


NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})


class NodeUse(msgspec.Struct):
    """Requested amounts of a node before and after: cpu in milli, others in whole units."""

    node: Node
    before: Mapping[str, int] = NO_AMOUNTS
    after: Mapping[str, int] = NO_AMOUNTS
    pods_before: int = 0
    pods_after: int = 0
    added_s: float | None = None
    """Time when it was added, on the simulation's clock; None for the start."""
    removed_s: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the node: its allocatable amounts, and the requests before and after."""
        allocatable = self.node.allocatable
        names = [name for name in allocatable if name != "pods"]
        names += (name for name in self.after if name not in allocatable)
        return {
            "name": self.node.name,
            "added": time_entry(self.added_s),
            "removed": time_entry(self.removed_s),
            "pods": {
                "allocatable": allocatable.get("pods", 0),
                "before": self.pods_before,
                "after": self.pods_after,
            },
            "resources": {
                name: {
                    "allocatable": format_quantity(allocatable.get(name, 0), name),
                    "before": format_quantity(self.before.get(name, 0), name),
                    "after": format_quantity(self.after.get(name, 0), name),
                }
                for name in names
            },
        }


def time_entry(seconds: float | None) -> float | None:
    """Seconds on the clock of the simulation, to the microsecond."""
    return None if seconds is None else round(seconds, 6)


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
