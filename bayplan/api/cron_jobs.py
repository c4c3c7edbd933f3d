"""Cron jobs: CronJob, which creates a Job at each time of its schedule.

Mirrors CronJob of k8s.io/api/batch/v1.
"""

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import ClassVar

from .meta import EMPTY_META, KubeObject, ObjectMeta, Wire
from .selectors import Problem
from .storage import ObjectReference
from .text.cron import CronSchedule, parse_cron
from .workloads import JobSpec

FORBID, REPLACE = "Forbid", "Replace"


class JobTemplateSpec(Wire, frozen=True):
    """The jobs that a CronJob creates."""

    metadata: ObjectMeta = EMPTY_META
    spec: JobSpec = JobSpec()


class CronJobSpec(Wire, frozen=True):
    """Schedule, policy and template."""

    schedule: str = ""
    time_zone: str | None = None
    suspend: bool | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJobStatus(Wire, frozen=True):
    """The jobs that run, and the time of the last one."""

    active: tuple[ObjectReference, ...] | None = None
    last_schedule_time: str | None = None


class CronJob(KubeObject, frozen=True):
    """Creates a Job at each time of a schedule."""

    kind: ClassVar[str] = "CronJob"
    api_version: ClassVar[str] = "batch/v1"

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()

    @property
    def schedule(self) -> CronSchedule:
        """The schedule of jobs; its text was checked when the object was read."""
        return parse_cron(self.spec.schedule)

    @property
    def zone(self) -> tzinfo:
        """The time zone of the schedule. The default is UTC here, and the zone of kube-controller-manager in a
        cluster.
        """
        if not self.spec.time_zone:
            return UTC
        from zoneinfo import ZoneInfo  # needed by few

        return ZoneInfo(self.spec.time_zone)


def cron_job_problems(cron_job: CronJob) -> Iterator[Problem]:
    """Yield the faults of a schedule."""
    try:
        parse_cron(cron_job.spec.schedule)
    except ValueError as error:
        yield "spec.schedule", str(error)
    try:
        _ = cron_job.zone
    except (KeyError, ValueError, OSError):
        yield "spec.timeZone", f'expected the name of a time zone; got "{cron_job.spec.time_zone}"'
