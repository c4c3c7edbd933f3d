"""Job status: the status of a Job, and when its deadline and its time to live are over.

Mirrors pkg/controller/job and pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...cluster.memory.pod_index import OwnedPods, is_ready

Tree = dict[str, Any]

COMPLETIONS_REACHED = {
    "reason": "CompletionsReached",
    "message": "Reached expected number of succeeded pods",
}
BACKOFF_LIMIT_EXCEEDED = {
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}
DEADLINE_EXCEEDED = {
    "reason": "DeadlineExceeded",
    "message": "Job was active longer than specified deadline",
}


def job_status(tree: Tree, pods: OwnedPods, failed_limit: int, now: str) -> Tree:
    """Status of a Job."""
    spec, old = tree.get("spec") or {}, tree.get("status") or {}
    succeeded = max(pods.succeeded, int(old.get("succeeded") or 0))
    failed = max(pods.failed, int(old.get("failed") or 0))
    status: Tree = {
        "active": len(pods.active),
        "ready": sum(map(is_ready, pods.active.values())),
        "succeeded": succeeded,
        "failed": failed,
        "terminating": len(pods.leaving),
        "conditions": old.get("conditions") or [],
        "uncountedTerminatedPods": {},
    }
    if not spec.get("suspend"):
        status["startTime"] = old.get("startTime") or now
    completions = spec.get("completions")
    is_done = succeeded >= completions if completions is not None else bool(succeeded)
    if _ended_at(status):
        status["completionTime"] = old.get("completionTime")
    elif is_done and not pods.active:
        _end_job(status, ("SuccessCriteriaMet", "Complete"), COMPLETIONS_REACHED, now)
        status["completionTime"] = now
    elif failed > failed_limit:
        _end_job(status, ("FailureTarget", "Failed"), BACKOFF_LIMIT_EXCEEDED, now)
    elif _is_too_late(tree, status, now):
        _end_job(status, ("FailureTarget", "Failed"), DEADLINE_EXCEEDED, now)
    elif spec.get("suspend"):
        condition = {"status": "True", "reason": "JobSuspended", "message": "Job suspended"}
        set_job_condition(status, {"type": "Suspended", **condition}, now)
    elif any(c.get("type") == "Suspended" for c in status["conditions"]):
        condition = {"status": "False", "reason": "JobResumed", "message": "Job resumed"}
        set_job_condition(status, {"type": "Suspended", **condition}, now)
    always = ("uncountedTerminatedPods", "ready", "terminating")
    return {key: value for key, value in status.items() if value or key in always}


def _end_job(status: Tree, kinds: Sequence[str], why: Tree, now: str) -> None:
    for kind in kinds:
        set_job_condition(status, {"type": kind, "status": "True", **why}, now)


def job_events(old: Tree, new: Tree) -> Iterator[tuple[str, str, str]]:
    """Type, reason and message of the events about a job whose status has changed."""
    before = {c.get("type"): c.get("status") for c in old.get("conditions") or ()}
    for condition in new.get("conditions") or ():
        kind, status = condition["type"], condition["status"]
        if before.get(kind) == status:
            continue
        if kind == "Complete":
            yield "Normal", "Completed", "Job completed"
        elif kind == "Failed":
            yield "Warning", condition["reason"], condition["message"]
        elif kind == "Suspended":
            yield "Normal", condition["reason"].removeprefix("Job"), condition["message"]


def set_job_condition(status: Tree, condition: Tree, now: str) -> None:
    """Replace the condition of the same type of a job."""
    conditions = list(status.get("conditions") or ())
    old = next((c for c in conditions if c.get("type") == condition["type"]), None)
    if old is not None and old.get("status") == condition["status"]:
        return
    others = [c for c in conditions if c.get("type") != condition["type"]]
    new = {**condition, "lastProbeTime": now, "lastTransitionTime": now}
    status["conditions"] = [*others, new]


def job_deadline(tree: Tree, status: Tree) -> datetime | None:
    """When an active job has failed because of `activeDeadlineSeconds`; None: never."""
    spec, started = tree.get("spec") or {}, status.get("startTime")
    limit_s = spec.get("activeDeadlineSeconds")
    if limit_s is None or not started or spec.get("suspend") or _ended_at(status):
        return None
    return datetime.fromisoformat(started) + timedelta(seconds=limit_s)


def job_removal(tree: Tree, status: Tree) -> datetime | None:
    """When a finished job is deleted because of `ttlSecondsAfterFinished`; None: never."""
    left_s, ended = (tree.get("spec") or {}).get("ttlSecondsAfterFinished"), _ended_at(status)
    if left_s is None or not ended:
        return None
    return datetime.fromisoformat(ended) + timedelta(seconds=left_s)


def _is_too_late(tree: Tree, status: Tree, now: str) -> bool:
    deadline = job_deadline(tree, status)
    return deadline is not None and deadline <= datetime.fromisoformat(now)


def _ended_at(status: Tree) -> str:
    """When the job has ended; empty: it has not."""
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return ""
