"""Workload status: compute the status of a workload from its pods.

Mirrors the status parts of pkg/controller/{replicaset,deployment,statefulset,daemon}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...api.pod import Pod
from ...cluster.memory.availability import IsReady
from ...cluster.memory.pod_index import OwnedPods, is_ready
from ...cluster.memory.stateful_sets import REVISION_HASH

Tree = dict[str, Any]


def condition_of(status: Tree | None, kind: str) -> Tree | None:
    """The condition of a type; None without one."""
    conditions = (status or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def _put_condition(status: Tree, condition: Tree, now: str, written: str) -> None:
    """Put a condition after the conditions of other types; the time of its transition changes with its status.

    `written` is the field with the time at which it was written.
    """
    old = condition_of(status, condition["type"])
    is_same = old is not None and old.get("status") == condition["status"]
    since = old.get("lastTransitionTime") if old is not None and is_same else now
    others = [c for c in status.get("conditions") or () if c.get("type") != condition["type"]]
    status["conditions"] = [*others, {**condition, written: now, "lastTransitionTime": since}]


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


REPLICA_FAILURE = "ReplicaFailure"


def with_failure(tree: Tree, status: Tree, message: str, now: str) -> Tree:
    """The status of a replica set whose pods cannot be created for this reason; empty if they can."""
    conditions = (tree.get("status") or {}).get("conditions") or []
    others = [each for each in conditions if each["type"] != REPLICA_FAILURE]
    if message:
        found = condition_of(tree.get("status"), REPLICA_FAILURE)
        made = {"type": REPLICA_FAILURE, "status": "True", "reason": "FailedCreate"}
        others.append(found or {**made, "lastTransitionTime": now, "message": message})
    return {**status, "conditions": others} if others else status


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
    conditions = (tree.get("status") or {}).get("conditions") or []
    status["conditions"] = [each for each in conditions if each["type"] != REPLICA_FAILURE]
    ordered = [newest or {}, *replica_sets]
    failures = [condition_of(one.get("status"), REPLICA_FAILURE) for one in ordered]
    failure = next(filter(None, failures), None)
    if failure is not None:
        status["conditions"].append({**failure, "lastUpdateTime": failure["lastTransitionTime"]})
    is_available = available >= wanted - _max_unavailable(tree, wanted)
    condition = _available(is_available)
    old = condition_of(status, "Available") or {}
    if any(old.get(key) != value for key, value in condition.items()):
        _put_condition(status, condition, now, "lastUpdateTime")
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
    elif (deadline := job_deadline(tree, status)) and deadline <= datetime.fromisoformat(now):
        _end_job(status, ("FailureTarget", "Failed"), DEADLINE_EXCEEDED, now)
    elif spec.get("suspend"):
        condition = {"status": "True", "reason": "JobSuspended", "message": "Job suspended"}
        set_job_condition(status, {"type": "Suspended", **condition}, now)
    elif condition_of(status, "Suspended") is not None:
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
    old = condition_of(status, condition["type"])
    if old is None or old.get("status") != condition["status"]:
        _put_condition(status, condition, now, "lastProbeTime")


def job_deadline(tree: Tree, status: Tree) -> datetime | None:
    """Time when an active job has failed because of `activeDeadlineSeconds`; None if there is no such limit."""
    spec, started = tree.get("spec") or {}, status.get("startTime")
    limit_s = spec.get("activeDeadlineSeconds")
    if limit_s is None or not started or spec.get("suspend") or _ended_at(status):
        return None
    return datetime.fromisoformat(started) + timedelta(seconds=limit_s)


def job_removal(tree: Tree, status: Tree) -> datetime | None:
    """Time when a finished job is deleted because of `ttlSecondsAfterFinished`; None if it is kept."""
    left_s, ended = (tree.get("spec") or {}).get("ttlSecondsAfterFinished"), _ended_at(status)
    if left_s is None or not ended:
        return None
    return datetime.fromisoformat(ended) + timedelta(seconds=left_s)


def _ended_at(status: Tree) -> str:
    """Time when the job has ended; empty if it has not."""
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return ""


PROGRESSING = "Progressing"
AVAILABLE, UPDATED, CREATED = "NewReplicaSetAvailable", "ReplicaSetUpdated", "NewReplicaSetCreated"
PAUSED, RESUMED, TIMED_OUT = "DeploymentPaused", "DeploymentResumed", "ProgressDeadlineExceeded"
NO_DEADLINE_S = 2**31 - 1


def set_progress(tree: Tree, status: Tree, newest: str, now: str) -> None:
    """Write the condition to a new status of the deployment, whose newest replica set has that name."""
    spec = tree.get("spec") or {}
    current = condition_of(status, PROGRESSING)
    if deadline_s(spec) is None:
        conditions = status.get("conditions") or ()
        status["conditions"] = [c for c in conditions if c.get("type") != PROGRESSING]
        return
    found = _paused(spec, current) or _progress(tree, status, current, newest, now)
    if found is None:
        return
    word, reason, message = found
    is_same = current is not None and (reason, message) == (current["reason"], current["message"])
    if is_same and reason != UPDATED:
        return  # only progress is written again, with its time
    made = {"type": PROGRESSING, "status": word, "reason": reason, "message": message}
    _put_condition(status, made, now, "lastUpdateTime")


def deadline_s(spec: Tree) -> int | None:
    """Seconds that a rollout may be without progress; None if they are not limited."""
    given = spec.get("progressDeadlineSeconds")
    return None if given is None or given >= NO_DEADLINE_S else int(given)


def fails_at(tree: Tree, status: Tree) -> datetime | None:
    """Time when the rollout has failed unless it makes progress; None if there is no deadline."""
    spec, condition = tree.get("spec") or {}, condition_of(status, PROGRESSING)
    limit_s = deadline_s(spec)
    if condition is None or limit_s is None or spec.get("paused"):
        return None
    if condition["reason"] in (AVAILABLE, TIMED_OUT):
        return None
    return datetime.fromisoformat(condition["lastUpdateTime"]) + timedelta(seconds=limit_s)


def _paused(spec: Tree, current: Tree | None) -> tuple[str, str, str] | None:
    """The condition of a deployment that was paused or resumed; None if neither."""
    if current is not None and current["reason"] == TIMED_OUT:
        return None
    is_noted = current is not None and current["reason"] == PAUSED
    if spec.get("paused"):
        return "Unknown", PAUSED, "Deployment is paused"
    return ("Unknown", RESUMED, "Deployment is resumed") if is_noted else None


def _progress(
    tree: Tree, status: Tree, current: Tree | None, newest: str, now: str
) -> tuple[str, str, str] | None:
    """The condition of a rollout; None if it stays the same."""
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
