"""Cron job controller: create the Jobs of CronJobs at their times.

Mirrors pkg/controller/cronjob/{cronjob_controllerv2,utils}.go: a missed time is run later, once and within the
starting deadline; with the policy Forbid a job waits for the one before it, with Replace that is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from ...api.cron_jobs import FORBID, REPLACE, CronJob
from ...api.meta import ObjectMeta, controller_of
from ...api.storage import ObjectReference
from ...api.workloads import Job
from ...clock import Clock, rfc3339
from ..objects.object_index import ControllerCluster, Later
from ..objects.pod_life import moment_of
from . import deployments
from .jobs import ended_as

Key = tuple[str, str]
MayRun = Callable[[CronJob, datetime], bool]
"""Whether the job of a time is created."""

Tell = Callable[[CronJob, str, str], None]

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
ALREADY_ACTIVE = (
    "Not starting job because prior execution is running and concurrency policy is Forbid"
)


class CronJobController:
    """Watches the cluster; `run_once` creates the jobs that are due, and sets timers for the next ones.

    `is_active` is true if a job still runs. With `may_run`, only the times that it allows. With `deletes_jobs`, the
    jobs of a deleted CronJob are deleted here. `tell` gets reason and message of each event about a CronJob.
    """

    def __init__(
        self,
        cluster: ControllerCluster,
        clock: Clock,
        timers: Later,
        is_active: Callable[[Job], bool],
        *,
        may_run: MayRun = lambda cron_job, moment: True,
        deletes_jobs: bool = False,
        tell: Tell = lambda cron_job, reason, message: None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timers = timers
        self._is_active = is_active
        self._may_run = may_run
        self._deletes_jobs = deletes_jobs
        self._tell = tell
        self._noted: dict[Key, None] = {}
        self._first_seen: dict[Key, datetime] = {}
        self._armed: dict[Key, datetime] = {}
        self._waiting: set[Key] = set()
        """CronJobs with a due job that waits for another to end."""

    def on_add(self, obj: Any) -> None:
        """Record a new CronJob."""
        if isinstance(obj, CronJob):
            self._noted[obj.namespace, obj.name] = None

    def on_update(self, old: Any, new: Any) -> None:
        """Record a changed CronJob, or a job whose end another may wait for."""
        if isinstance(new, CronJob) and old.spec != new.spec:
            self.on_add(new)
        elif isinstance(new, Job):
            self._note_owner(new)

    def on_delete(self, obj: Any) -> None:
        """Record a deleted job, or delete the jobs of a CronJob."""
        if isinstance(obj, Job):
            self._note_owner(obj)
        elif isinstance(obj, CronJob):
            self._first_seen.pop((obj.namespace, obj.name), None)
            for job in self._jobs_of(obj) if self._deletes_jobs else ():
                self._cluster.delete(job)

    def note_waiting(self) -> None:
        """Try the CronJobs again whose job waits for another to end."""
        self._noted |= dict.fromkeys(self._waiting)

    def _note_owner(self, job: Job) -> None:
        owner = controller_of(job.owner_references)
        if owner is not None and owner.kind == CronJob.kind:
            self._noted[job.namespace, owner.name] = None

    @property
    def has_work(self) -> bool:
        """Whether a CronJob has to be processed."""
        return bool(self._noted)

    def run_once(self) -> list[Job]:
        """Create the jobs that are due, and return them."""
        noted, self._noted = self._noted, {}
        made: list[Job] = []
        for key in noted:
            cron_job = self._cluster.get(CronJob.kind, *key)
            if cron_job is not None and not cron_job.is_terminating:
                made += self._sync(cron_job)
        return made

    def next_run(self, cron_job: CronJob) -> datetime | None:
        """Time when the next job is created, if no policy delays it; None if there is none."""
        if cron_job.spec.suspend:
            return None
        due = self._due(cron_job)
        now = self._clock.now()
        return now if due is not None else cron_job.schedule.next_after(now, cron_job.zone)

    def _sync(self, cron_job: CronJob) -> list[Job]:
        jobs = self._jobs_of(cron_job)
        active = [job for job in jobs if self._is_active(job)]
        self._tell_of_ends(cron_job, jobs)
        self._delete_old(cron_job, jobs)
        cron_job = self._written(cron_job, active, cron_job.status.last_schedule_time)
        if cron_job.spec.suspend:
            return []
        made: list[Job] = []
        due = self._due(cron_job)
        policy, key = cron_job.spec.concurrency_policy, (cron_job.namespace, cron_job.name)
        self._waiting.discard(key)
        if due is not None and policy == FORBID and active:
            self._waiting.add(key)
            self._tell(cron_job, "JobAlreadyActive", ALREADY_ACTIVE)
        elif due is not None and self._may_run(cron_job, due):
            if policy == REPLACE:
                for job in active:
                    self._delete(cron_job, job)
                active = []
            job = make_job(cron_job, due)
            if self._cluster.get(job.kind, job.namespace, job.name) is None:
                made = [self._cluster.add(job)]
                self._tell(cron_job, "SuccessfulCreate", f"Created job {job.name}")
            cron_job = self._written(cron_job, [*active, *made], _text(due))
        self._arm(cron_job)
        return made

    def _delete_old(self, cron_job: CronJob, jobs: list[Job]) -> None:
        """Delete finished jobs, the oldest first, beyond the numbers that the CronJob keeps."""
        limits = {
            "Complete": cron_job.spec.successful_jobs_history_limit,
            "Failed": cron_job.spec.failed_jobs_history_limit,
        }
        for end, limit in limits.items():
            ended = [job for job in jobs if ended_as(job) == end]
            ended.sort(key=lambda job: (job.status.start_time or "", job.name))
            for job in ended[: max(len(ended) - limit, 0)] if limit is not None else ():
                self._delete(cron_job, job)

    def _delete(self, cron_job: CronJob, job: Job) -> None:
        self._cluster.delete(job)
        self._tell(cron_job, "SuccessfulDelete", f"Deleted job {job.name}")

    def _tell_of_ends(self, cron_job: CronJob, jobs: list[Job]) -> None:
        """Record events for active jobs that have ended or were deleted."""
        found = {job.uid: job for job in jobs}
        for reference in cron_job.status.active or ():
            job = found.get(reference.uid)
            if job is None:
                self._tell(cron_job, "MissingJob", f"Active job went missing: {reference.name}")
            elif not self._is_active(job):
                text = f"Saw completed job: {job.name}, condition: {ended_as(job)}"
                self._tell(cron_job, "SawCompletedJob", text)

    def _due(self, cron_job: CronJob) -> datetime | None:
        """The last due time without a job, unless its deadline has passed."""
        now, spec = self._clock.now(), cron_job.spec
        key = cron_job.namespace, cron_job.name
        seen = self._first_seen.setdefault(key, now)
        since = moment_of(cron_job.status.last_schedule_time or cron_job.creation_timestamp) or seen
        if spec.starting_deadline_seconds is not None:
            since = max(since, now - timedelta(seconds=spec.starting_deadline_seconds + 1))
        due = cron_job.schedule.last_until(now, since, cron_job.zone)
        if due is None or spec.starting_deadline_seconds is None:
            return due
        return None if due + timedelta(seconds=spec.starting_deadline_seconds) < now else due

    def _arm(self, cron_job: CronJob) -> None:
        """Set a timer for the next time of the CronJob."""
        now, key = self._clock.now(), (cron_job.namespace, cron_job.name)
        following = cron_job.schedule.next_after(now, cron_job.zone)
        if following is None or self._armed.get(key) == following:
            return
        if self._may_run(cron_job, following):
            self._armed[key] = following
            seconds = (following - now).total_seconds()
            self._timers.after(seconds, lambda: self._noted.update({key: None}))

    def _jobs_of(self, cron_job: CronJob) -> list[Job]:
        found = []
        for job in self._cluster.list(Job.kind, cron_job.namespace):
            owner = controller_of(job.owner_references)
            if owner is not None and (owner.kind, owner.name) == (CronJob.kind, cron_job.name):
                found.append(job)
        return found

    def _written(self, cron_job: CronJob, active: list[Job], last: str | None) -> CronJob:
        """The CronJob with its status, which is written if it changed."""
        references = tuple(replace(ObjectReference.to(job), resource_version="") for job in active)
        status = replace(cron_job.status, active=references or None, last_schedule_time=last)
        if status == cron_job.status:
            return cron_job
        return self._cluster.update(replace(cron_job, status=status))


def make_job(cron_job: CronJob, moment: datetime) -> Job:
    """The job of a CronJob for one time."""
    template = cron_job.spec.job_template
    notes = {**(template.metadata.annotations or {}), SCHEDULED_AT: _text(moment, cron_job)}
    return Job(
        metadata=ObjectMeta(
            name=f"{cron_job.name}-{int(moment.timestamp()) // 60}",
            namespace=cron_job.namespace,
            labels=template.metadata.labels,
            annotations=notes,
            owner_references=(deployments.owner_reference(cron_job),),
        ),
        spec=template.spec,
    )


def _text(moment: datetime, cron_job: CronJob | None = None) -> str:
    if cron_job is not None and cron_job.spec.time_zone:
        return moment.astimezone(cron_job.zone).isoformat()
    return rfc3339(moment)
