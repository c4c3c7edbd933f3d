"""Workload status: compute the status of a workload from its pods.

Mirrors the status parts of pkg/controller/{replicaset,deployment,statefulset,daemon}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...api.pod import Pod
from ...cluster.memory.availability import IsReady
from ...cluster.memory.pod_index import is_ready
from ...cluster.memory.stateful_sets import REVISION_HASH
from .deployment_progress import set_progress

Tree = dict[str, Any]


def set_plain_condition(status: Tree, condition: Tree, now: str) -> None:
    """Replace the condition of the same type of a workload; times change only with its status."""
    conditions = [dict(c) for c in status.get("conditions") or ()]
    old = next((c for c in conditions if c.get("type") == condition["type"]), None)
    if old is not None and all(old.get(key) == value for key, value in condition.items()):
        return
    moved = old is None or old.get("status") != condition["status"]
    since = now if moved or old is None else old.get("lastTransitionTime")
    new = {**condition, "lastUpdateTime": now, "lastTransitionTime": since}
    others = [c for c in conditions if c.get("type") != condition["type"]]
    status["conditions"] = [*others, new]


def without_zeros(status: Tree) -> Tree:
    """A status without zero counts, as the API server omits them."""
    kept = ("replicas", "observedGeneration", "terminatingReplicas")
    return {
        key: value for key, value in status.items() if value not in (0, None, []) or key in kept
    }


def replica_set_status(
    tree: Tree, pods: Iterable[Pod], leaving: int | None, is_available: IsReady
) -> Tree:
    """Status of a ReplicaSet, with its `leaving` pods, or of a ReplicationController, which does not count them."""
    pods = list(pods)
    ready = sum(map(is_ready, pods))
    return without_zeros(
        {
            **({} if leaving is None else {"terminatingReplicas": leaving}),
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": sum(map(is_available, pods)),
            "observedGeneration": tree["metadata"].get("generation", 1),
        }
    )


def deployment_status(
    tree: Tree, replica_sets: Sequence[Tree], newest: Tree | None, now: str
) -> Tree:
    """Status of a Deployment, from the statuses of its replica sets."""

    def total(name: str) -> int:
        return sum(int((rs.get("status") or {}).get(name) or 0) for rs in replica_sets)

    wanted = int((tree.get("spec") or {}).get("replicas") or 0)
    updated = int(((newest or {}).get("status") or {}).get("replicas") or 0)
    replicas, available = total("replicas"), total("availableReplicas")
    status = without_zeros(
        {
            "observedGeneration": tree["metadata"].get("generation", 1),
            "replicas": replicas,
            "updatedReplicas": updated,
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(max(replicas, wanted) - available, 0),
            "terminatingReplicas": total("terminatingReplicas"),
        }
    )
    status["conditions"] = (tree.get("status") or {}).get("conditions") or []
    is_available = available >= wanted - _max_unavailable(tree, wanted)
    set_plain_condition(status, _available(is_available), now)
    set_progress(tree, status, (newest or {}).get("metadata", {}).get("name", ""), now)
    return status


def _max_unavailable(tree: Tree, wanted: int) -> int:
    strategy = (tree.get("spec") or {}).get("strategy") or {}
    given = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 0)
    if isinstance(given, str):
        given = int(given.removesuffix("%")) * wanted // 100 if given[:-1].isdecimal() else 0
    return int(given)


def _available(is_available: bool) -> Tree:
    return {
        "type": "Available",
        "status": "True" if is_available else "False",
        "reason": "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
        "message": "Deployment has minimum availability."
        if is_available
        else "Deployment does not have minimum availability.",
    }


def stateful_set_status(
    tree: Tree, pods: Iterable[Pod], revision: str, is_available: IsReady
) -> Tree:
    """Status of a StatefulSet."""
    pods = list(pods)
    ready, available = sum(map(is_ready, pods)), sum(map(is_available, pods))
    updated = sum(pod.labels.get(REVISION_HASH) == revision for pod in pods)
    old = tree.get("status") or {}
    wanted = int((tree.get("spec") or {}).get("replicas") or 0)
    is_done = updated == len(pods) == ready == wanted
    current = revision if is_done else old.get("currentRevision", revision)
    status = {
        "observedGeneration": tree["metadata"].get("generation", 1),
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": available,
        "currentReplicas": sum(pod.labels.get(REVISION_HASH) == current for pod in pods),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": revision,
    }
    return {**without_zeros(status), "collisionCount": 0, "availableReplicas": available}


def daemon_set_status(
    tree: Tree, pods: Iterable[Pod], wanted: int, revision: str, is_available: IsReady
) -> Tree:
    """Status of a DaemonSet that is desired on this many nodes."""
    pods = list(pods)
    ready, available = sum(map(is_ready, pods)), sum(map(is_available, pods))
    status = {
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(pods),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "updatedNumberScheduled": sum(pod.labels.get(REVISION_HASH) == revision for pod in pods),
        "numberAvailable": available,
        "numberUnavailable": max(wanted - available, 0),
        "observedGeneration": tree["metadata"].get("generation", 1),
    }
    always = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberMisscheduled",
        "numberReady",
    )
    return {key: value for key, value in status.items() if value or key in always}
