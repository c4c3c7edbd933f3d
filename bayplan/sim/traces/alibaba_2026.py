"""Alibaba 2026: jobs on regular and spot GPUs, 4,278 nodes (clusterdata, cluster-trace-v2026-spot-gpu).

Schema: cluster-trace-v2026-spot-gpu/README.md of alibaba/clusterdata. The first line names the columns. Cores and GPUs
are numbers, of each worker; times are seconds from the first submission. There is no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...api.gpus import GPU_MILLI, GPU_MODEL
from ...errors import InputError
from .published import PublishedTrace, TraceFormat, TraceTable, TraceWindow
from .table_rows import Row
from .trace_manifests import (
    TRACE_NAME,
    Manifest,
    in_values,
    make_node,
    make_pod,
    milli_cpu,
    times,
)

PRIORITIES = {"HP": 1, "Spot": 0}
"""The priority of the pods of each type of job: spot jobs may be preempted."""

NODES = TraceTable(
    "node_info_df",
    "gpu_model,gpu_capacity_num,cpu_num,node_name",
    "nodes",
)
JOBS = TraceTable(
    "job_info_df",
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
    "job_type",
    "jobs",
    is_optional=True,
)
FORMAT = TraceFormat(
    "alibaba-2026",
    "jobs on regular and spot GPUs, 4,278 nodes, 2026",
    "alibaba/clusterdata, cluster-trace-v2026-spot-gpu/README.md",
    (NODES, JOBS),
)


@dataclass(kw_only=True)
class Alibaba2026(PublishedTrace):
    """The table of nodes and, if it exists, that of jobs; each worker of a job is a pod."""

    nodes_file: Path
    jobs_file: Path | None = None

    def nodes(self) -> Iterator[Manifest]:
        for row in NODES.rows(self.nodes_file):
            resources = {
                "cpu": milli_cpu(row.amount("cpu_num") or 0),
                GPU_MILLI: str(row.count("gpu_capacity_num") * 1000),
            }
            labels = {GPU_MODEL: row.needed("gpu_model")}
            yield make_node(f"node-{row.needed('node_name')}", resources, labels)

    def all_pods(self) -> Iterator[Manifest]:
        if self.jobs_file is None:
            self.notes.append(f"no {JOBS.name}: nodes only")
            return
        for row in JOBS.rows(self.jobs_file):
            for number in range(row.count("worker_num")):
                yield _pod(row, number)


def find_alibaba_2026(place: Path, window: TraceWindow) -> Alibaba2026:
    """The trace with the tables of nodes and of jobs in a folder, or with a file of nodes alone."""
    nodes, jobs = place, None
    if place.is_dir():
        nodes, jobs = NODES.needed_file(place), JOBS.find(place)
    elif not place.is_file():
        raise InputError(f"{place}: expected a folder, or a table of nodes; got nothing there")
    return Alibaba2026(nodes_file=nodes, jobs_file=jobs, window=window)


def _pod(row: Row, number: int) -> Manifest:
    job_type, models = row.text("job_type"), row.text("gpu_model")
    if job_type not in PRIORITIES:
        raise row.fault("job_type", f'expected HP or Spot; got "{job_type}"')
    requests = {"cpu": milli_cpu(row.amount("cpu_request") or 0)}
    if gpus := row.amount("gpu_request"):
        requests[GPU_MILLI] = str(round(gpus * 1000))
    name = row.needed("job_name")
    return make_pod(
        f"job-{row.line}-{number}",
        requests,
        annotations={
            TRACE_NAME: name,
            **times(row.amount("submit_time"), row.amount("duration")),
        },
        priority=PRIORITIES[job_type],
        on=[in_values(GPU_MODEL, [models])] if models and GPU_MILLI in requests else (),
    )
