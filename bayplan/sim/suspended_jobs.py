"""Suspended jobs: a remark on jobs that have no pods because they are suspended, as those in queues of Kueue are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..api.workloads import Job
from ..cluster.memory.jobs import ended_as
from ..cluster.objects.object_index import ControllerCluster
from ..errors import counted

NAMED = 3


def suspended_jobs(cluster: ControllerCluster) -> Iterator[str]:
    """The remark; none without such jobs."""
    jobs: Iterable[Job] = cluster.list("Job")
    names = [job.key for job in jobs if job.spec.suspend and not ended_as(job)]
    if names:
        shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        yield f"{counted(len(names), 'job')} without pods, since spec.suspend is true: {shown}"
