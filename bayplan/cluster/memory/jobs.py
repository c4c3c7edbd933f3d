"""Jobs: the number of pods a job still needs, and their indexes.

Mirrors pkg/controller/job/{job_controller,indexed_job_utils}.go and
pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import msgspec

from ...api.pod import Pod
from ...api.workloads import Job
from ...clock import Clock
from ..objects.object_index import Later
from .created_names import MAX_PREFIX
from .pod_index import OwnedPods, OwnerKey, completion_index

DEFAULT_BACKOFF_LIMIT = 6


class JobPlan(msgspec.Struct, frozen=True):
    """The next step for a job: indexes or a number of pods to create, or a number of pods to stop."""

    missing: int = 0
    missing_indexes: tuple[int, ...] = ()
    excess: int = 0


def plan_job(job: Job, pods: OwnedPods) -> JobPlan:
    """The pods that `job` needs in addition to `pods`."""
    limit, running = job.spec.backoff_limit, len(pods.active)
    if (
        ended_as(job)
        or job.spec.suspend
        or pods.failed > (DEFAULT_BACKOFF_LIMIT if limit is None else limit)
    ):
        return JobPlan(excess=running)
    completions = job.spec.completions
    if completions is None and job.spec.parallelism is None:
        completions = 1
    if completions is None:  # a work queue, which one success completes
        wanted = running if pods.succeeded else job.parallelism
        return JobPlan(max(wanted - running, 0), excess=max(running - wanted, 0))
    done = len(pods.done_indexes - {-1}) if job.is_indexed else pods.succeeded
    wanted = max(min(job.parallelism, completions - done), 0)
    missing, excess = max(wanted - running, 0), max(running - wanted, 0)
    if not job.is_indexed:
        return JobPlan(missing, excess=excess)
    taken = pods.done_indexes | {completion_index(pod) for pod in pods.active.values()}
    free = (index for index in range(completions) if index not in taken)
    return JobPlan(missing_indexes=tuple(islice(free, missing)), excess=excess)


def is_done(job: Job, pods: OwnedPods) -> bool:
    """Whether the job had pods, and none is left or needed."""
    if job.spec.suspend or not job.parallelism or pods.active or pods.leaving:
        return False
    return pods.has_any and plan_job(job, pods) == JobPlan()


def ended_as(job: Job) -> str:
    """Result of the job by its status: Complete or Failed; empty while it has none."""
    for condition in job.status.conditions or ():
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition.type
    return ""


def name_prefix(job_name: str, index: int) -> str:
    """The prefix of the name of the pod with that index; the index is never truncated."""
    ending = f"-{index}-"
    return job_name[: MAX_PREFIX - len(ending)] + ending


FIRST_S, MAX_S = 10.0, 600.0


class _Failures(msgspec.Struct):
    """The failures of a job since its last success."""

    number: int = 0
    last_s: float = 0.0
    is_expected: bool = False
    """Whether a timer is set."""


class JobBackoffs:
    """The failures of all jobs. Without a clock and timers no job waits."""

    def __init__(
        self, time: tuple[Clock, Later] | None, recheck: Callable[[OwnerKey], None]
    ) -> None:
        self._time = time
        self._recheck = recheck
        self._failures: dict[OwnerKey, _Failures] = {}

    def finished(self, key: OwnerKey, pod: Pod) -> None:
        """Record the end of a pod of the job."""
        if self._time is None:
            return
        if pod.status.phase != "Failed":
            self._failures.pop(key, None)
            return
        found = self._failures.setdefault(key, _Failures())
        found.number += 1
        found.last_s = self._time[0].monotonic()

    def forget(self, key: OwnerKey) -> None:
        """Remove a job."""
        self._failures.pop(key, None)

    def must_wait(self, key: OwnerKey) -> bool:
        """Whether the job may not create pods yet; it is processed again when it may."""
        found = self._failures.get(key)
        if found is None or self._time is None:
            return False
        clock, timers = self._time
        wait_s = min(FIRST_S * 2.0 ** min(found.number - 1, 10), MAX_S)
        left_s = found.last_s + wait_s - clock.monotonic()
        if left_s <= 0:
            return False
        if not found.is_expected:
            found.is_expected = True
            timers.after(left_s, lambda: self._fire(key, found))
        return True

    def _fire(self, key: OwnerKey, failures: _Failures) -> None:
        failures.is_expected = False
        self._recheck(key)
