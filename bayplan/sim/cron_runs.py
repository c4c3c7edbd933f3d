"""Cron runs: which runs of CronJobs happen in a simulation.

The next run of each happens if it is due within a day; with `--until`, every run until then. A question is about one
moment and has none. A remark names it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ..api.cron_jobs import CronJob
from ..api.meta import KubeObject
from ..api.text.durations import format_duration
from ..api.workloads import Job
from ..clock import ManualClock
from ..cluster.memory.cron_job_controller import CronJobController
from ..cluster.memory.jobs import ended_as, plan_job
from ..cluster.memory.object_store import MemoryCluster
from ..cluster.memory.pod_index import OwnedPods
from .agenda import Agenda

PodsOf = Callable[[KubeObject], OwnedPods]

HORIZON_S = 25 * 3600.0
"""A run that is due later needs `--until`, since waiting pods are tried every five minutes. A day may have 25 hours."""


class CronRuns:
    """The CronJobs of a simulation."""

    def __init__(self, cluster: MemoryCluster, clock: ManualClock, agenda: Agenda) -> None:
        self._cluster = cluster
        self._clock = clock
        self._agenda = agenda
        self._until_s: float | None = None
        self._pods_of: PodsOf | None = None
        self._controller: CronJobController | None = None
        self._last: dict[tuple[str, str], str | None] = {}
        """By CronJob: the time of the last run before the simulation."""
        self._has_begun = self._runs = False

    def begin(self, pods_of: PodsOf, until_s: float | None, runs: bool) -> list[str]:
        """Let CronJobs run, unless `runs` is False; return the remarks on those that there are."""
        self._pods_of, self._until_s, self._runs = pods_of, until_s, runs
        self._has_begun = True
        found = list(self._cluster.list("CronJob"))
        return [remark for cron_job in found for remark in self.follow(cron_job)]

    def follow(self, cron_job: CronJob) -> list[str]:
        """Let a CronJob of the cluster run; return the remark on it."""
        if not self._has_begun:
            return []
        self._last[cron_job.namespace, cron_job.name] = cron_job.status.last_schedule_time
        if self._controller is None:
            self._controller = CronJobController(
                self._cluster,
                self._clock,
                self._agenda,
                self._is_active,
                may_run=self._may_run,
                deletes_jobs=True,
            )
            if self._runs:
                self._cluster.watch(self._controller)
        return [f"cronjob {cron_job.key}: {self._remark(cron_job, self._controller)}"]

    def run(self, has_ended: bool) -> bool:
        """Create the jobs that are due; return whether there are new ones. With `has_ended` pods may have ended."""
        if self._controller is None or not self._runs:
            return False
        if has_ended:
            self._controller.note_waiting()
        return bool(self._controller.run_once()) if self._controller.has_work else False

    def _remark(self, cron_job: CronJob, controller: CronJobController) -> str:
        if cron_job.spec.suspend:
            return "suspended, does not run"
        following = controller.next_run(cron_job)
        if following is None:
            return f"its schedule, {cron_job.spec.schedule}, is never due"
        in_s = max((following - self._clock.now()).total_seconds(), 0)
        text = f"next run at {following:%Y-%m-%dT%H:%M:%SZ}, in {format_duration(in_s)}"
        if not self._runs:
            return f"{text}, not part of this question"
        if not self._may_run(cron_job, following):
            return f"{text}, not simulated without --until"
        return text

    def _may_run(self, cron_job: CronJob, moment: datetime) -> bool:
        """Whether the run of a time happens."""
        at_s = self._clock.monotonic() + (moment - self._clock.now()).total_seconds()
        if self._until_s is not None:
            return at_s <= self._until_s
        last = self._last[cron_job.namespace, cron_job.name]
        return cron_job.status.last_schedule_time == last and at_s <= HORIZON_S

    def _is_active(self, job: Job) -> bool:
        assert self._pods_of is not None, "`begin` comes before `run`"
        if ended_as(job) or job.spec.suspend:
            return False
        owned = self._pods_of(job)
        plan = plan_job(job, owned)
        return bool(owned.active or plan.missing or plan.missing_indexes)
