"""Jobs: how many pods a job still needs, and how they are told apart.

Mirrors pkg/controller/job/{job_controller,indexed_job_utils}.go and
pkg/registry/batch/job/strategy.go. Pods that would follow when the first ones are done are not
made: in a simulation nothing ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...api.pod import Pod
from ...api.workloads import Job
from .names import MAX_PREFIX
from .pod_index import is_active

PREFIX = "batch.kubernetes.io/"
COMPLETION_INDEX = f"{PREFIX}job-completion-index"
DEFAULT_BACKOFF_LIMIT = 6


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What to make: pods with these numbers, or so many without a number."""

    missing: int = 0
    missing_indexes: tuple[int, ...] = ()


def plan_job(job: Job, pods: list[Pod]) -> JobPlan:
    """What `job` needs beside the `pods` it has, the finished ones among them."""
    succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
    failed = sum(pod.status.phase == "Failed" for pod in pods)
    limit = job.spec.backoff_limit
    if job.spec.suspend or failed > (DEFAULT_BACKOFF_LIMIT if limit is None else limit):
        return JobPlan()
    active = [pod for pod in pods if is_active(pod)]
    completions = _completions(job)
    if completions is None:
        return JobPlan(0 if succeeded else job.parallelism - len(active))
    if not job.is_indexed:
        wanted = min(job.parallelism, completions - len(succeeded))
        return JobPlan(wanted - len(active))
    done = {_index_of(pod) for pod in succeeded}
    taken = done | {_index_of(pod) for pod in active}
    wanted = min(job.parallelism, completions - len(done)) - len(active)
    free = (index for index in range(completions) if index not in taken)
    return JobPlan(
        missing_indexes=tuple(index for _, index in zip(range(wanted), free, strict=False))
    )


def job_labels(job: Job) -> dict[str, str]:
    """The labels the API server puts on a job's template, under their new and old names."""
    if job.spec.manual_selector:
        return {}
    return {
        f"{PREFIX}controller-uid": job.uid,
        f"{PREFIX}job-name": job.name,
        "controller-uid": job.uid,
        "job-name": job.name,
    }


def name_prefix(job_name: str, index: int) -> str:
    """How the name of the pod with that number begins; the number is never cut off."""
    ending = f"-{index}-"
    return job_name[: MAX_PREFIX - len(ending)] + ending


def _completions(job: Job) -> int | None:
    """How many pods must succeed; None: one success ends a job whose pods share their work."""
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def _index_of(pod: Pod) -> int:
    text = pod.annotations.get(COMPLETION_INDEX) or pod.labels.get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else -1
