"""Deployment progress: the condition Progressing of a Deployment, and its deadline.

Mirrors pkg/controller/deployment/{progress,sync}.go: progress is a new replica set, or more updated, ready
or available pods, or fewer old ones. Without any for `progressDeadlineSeconds` the rollout has failed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

Tree = dict[str, Any]

PROGRESSING = "Progressing"
AVAILABLE, UPDATED, CREATED = "NewReplicaSetAvailable", "ReplicaSetUpdated", "NewReplicaSetCreated"
PAUSED, RESUMED, TIMED_OUT = "DeploymentPaused", "DeploymentResumed", "ProgressDeadlineExceeded"
NO_DEADLINE_S = 2**31 - 1


def set_progress(tree: Tree, status: Tree, newest: str, now: str) -> None:
    """Write the condition to a new status of the deployment, whose newest replica set has that name."""
    spec = tree.get("spec") or {}
    others = [c for c in status.get("conditions") or () if c.get("type") != PROGRESSING]
    current = condition_of(status)
    if deadline_s(spec) is None:
        status["conditions"] = others
        return
    found = _paused(spec, current) or _progress(tree, status, current, newest, now)
    if found is None:
        return
    word, reason, message = found
    is_same = current is not None and (reason, message) == (current["reason"], current["message"])
    if is_same and reason != UPDATED:
        return  # only progress is written again, with its time
    since = now
    if current is not None and current["status"] == word:
        since = current["lastTransitionTime"]
    made = {"type": PROGRESSING, "status": word, "reason": reason, "message": message}
    made |= {"lastUpdateTime": now, "lastTransitionTime": since}
    status["conditions"] = [*others, made]


def condition_of(status: Tree) -> Tree | None:
    """The condition Progressing of a status."""
    found = (c for c in status.get("conditions") or () if c.get("type") == PROGRESSING)
    return next(found, None)


def deadline_s(spec: Tree) -> int | None:
    """How long a rollout may be without progress; None: for ever."""
    given = spec.get("progressDeadlineSeconds")
    return None if given is None or given >= NO_DEADLINE_S else int(given)


def fails_at(tree: Tree, status: Tree) -> datetime | None:
    """When the rollout has failed, if there is no progress until then; None: never."""
    spec, condition = tree.get("spec") or {}, condition_of(status)
    limit_s = deadline_s(spec)
    if condition is None or limit_s is None or spec.get("paused"):
        return None
    if condition["reason"] in (AVAILABLE, TIMED_OUT):
        return None
    return datetime.fromisoformat(condition["lastUpdateTime"]) + timedelta(seconds=limit_s)


def _paused(spec: Tree, current: Tree | None) -> tuple[str, str, str] | None:
    """The condition of a deployment that was paused or resumed; None: neither."""
    if current is not None and current["reason"] == TIMED_OUT:
        return None
    is_noted = current is not None and current["reason"] == PAUSED
    if spec.get("paused"):
        return "Unknown", PAUSED, "Deployment is paused"
    return ("Unknown", RESUMED, "Deployment is resumed") if is_noted else None


def _progress(
    tree: Tree, status: Tree, current: Tree | None, newest: str, now: str
) -> tuple[str, str, str] | None:
    """The condition of a rollout; None: as before."""
    old = tree.get("status") or {}
    reason = current["reason"] if current is not None else ""
    if not newest or (reason == AVAILABLE and _count(status, "replicas") == _updated(status)):
        return None
    if _is_complete(tree, status):
        return "True", AVAILABLE, f'ReplicaSet "{newest}" has successfully progressed.'
    if _has_progressed(old, status):
        return "True", UPDATED, f'ReplicaSet "{newest}" is progressing.'
    if current is None or (f'"{newest}"' not in current["message"] and reason != RESUMED):
        return "True", CREATED, f'Created new replica set "{newest}"'
    moment = fails_at(tree, status)
    if moment is not None and moment < datetime.fromisoformat(now):
        return "False", TIMED_OUT, f'ReplicaSet "{newest}" has timed out progressing.'
    return None


def _is_complete(tree: Tree, status: Tree) -> bool:
    wanted = int((tree.get("spec") or {}).get("replicas") or 0)
    counts = (_updated(status), _count(status, "replicas"), _count(status, "availableReplicas"))
    return counts == (wanted, wanted, wanted)


def _has_progressed(old: Tree, new: Tree) -> bool:
    outdated = [_count(one, "replicas") - _updated(one) for one in (old, new)]
    return (
        _updated(new) > _updated(old)
        or outdated[1] < outdated[0]
        or _count(new, "readyReplicas") > _count(old, "readyReplicas")
        or _count(new, "availableReplicas") > _count(old, "availableReplicas")
    )


def _updated(status: Tree) -> int:
    return _count(status, "updatedReplicas")


def _count(status: Tree, name: str) -> int:
    return int(status.get(name) or 0)
