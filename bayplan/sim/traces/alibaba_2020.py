"""Alibaba 2020: training and inference on 1,800 machines with 6,500 GPUs (clusterdata, cluster-trace-gpu-v2020, "PAI").

Schema: cluster-trace-gpu-v2020/README.md of alibaba/clusterdata. The files have no line of column names; files with the
ending .header have it. CPUs and GPUs of tasks are percent (600 is six cores, 50 half a GPU), memory is GB, times are
seconds with an unspecified beginning: here they count from the first submission of a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...api.gpus import GPU_MILLI, GPU_MODEL
from .published import PublishedTrace, TraceFormat, TraceTable
from .table_rows import Row
from .trace_manifests import (
    TRACE_NAME,
    Manifest,
    dns_name,
    in_values,
    make_node,
    make_pod,
    mebibytes,
    milli_cpu,
    times,
)

CPU_ONLY = "CPU"
"""The type of machines and tasks without a GPU."""

MACHINES = TraceTable(
    "pai_machine_spec",
    "machine,gpu_type,cap_cpu,cap_mem,cap_gpu",
    "machines",
)
JOBS = TraceTable(
    "pai_job_table",
    "job_name,inst_id,user,status,start_time,end_time",
    "jobs, with the time of their submission",
)
TASKS = TraceTable(
    "pai_task_table",
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
    "tasks of jobs, with what their instances request",
)
INSTANCES = TraceTable(
    "pai_instance_table",
    "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine",
    "instances of tasks, each with its own times (with --instances)",
    is_optional=True,
)
TAGS = TraceTable(
    "pai_group_tag_table",
    "inst_id,user,gpu_type_spec,group,workload",
    "the type of GPU that a job requires",
    is_optional=True,
)
FORMAT = TraceFormat(
    "alibaba-2020",
    "training and inference on 1,800 machines with 6,500 GPUs (PAI), 2020",
    "alibaba/clusterdata, cluster-trace-gpu-v2020/README.md",
    (MACHINES, JOBS, TASKS, INSTANCES, TAGS),
)


@dataclass(frozen=True, slots=True)
class _Job:
    submitted_s: float
    gpu_type: str
    """The type of GPU that it requires; empty for any."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Requests of an instance of a task."""

    requests: Mapping[str, str]
    gpu_type: str


@dataclass(kw_only=True)
class Alibaba2020(PublishedTrace):
    """The trace in a folder.

    A task becomes as many pods as it has instances, created when its job was submitted, with the times of the task;
    with `instances`, the table of instances has the times. A pod requires a type of GPU if its job specified one; with
    `assigned_types`, it requires the type that its task was given.
    """

    folder: Path
    instances: bool = False
    assigned_types: bool = False
    _jobs: dict[str, _Job] = field(default_factory=dict, init=False)

    def nodes(self) -> Iterator[Manifest]:
        for row in MACHINES.rows(MACHINES.needed_file(self.folder)):
            gpus, gpu_type = row.amount("cap_gpu") or 0, row.text("gpu_type")
            resources = {
                "cpu": milli_cpu(row.amount("cap_cpu") or 0),
                "memory": mebibytes(row.amount("cap_mem") or 0),
            }
            if gpus:
                resources[GPU_MILLI] = str(round(gpus * 1000))
            labels = {GPU_MODEL: gpu_type} if gpus and gpu_type else {}
            yield make_node(dns_name(row.needed("machine")), resources, labels)

    def all_pods(self) -> Iterator[Manifest]:
        jobs = self._jobs = self._jobs or self._read_jobs()
        begin_s = min((job.submitted_s for job in jobs.values()), default=0.0)
        tasks = TASKS.rows(TASKS.needed_file(self.folder))
        if self.instances:
            plans = {(row.text("job_name"), row.text("task_name")): _plan(row) for row in tasks}
            for row in INSTANCES.rows(INSTANCES.needed_file(self.folder)):
                plan = plans.get((row.text("job_name"), row.text("task_name")), _Plan({}, ""))
                yield self._pod(row, f"instance-{row.line}", plan, begin_s)
            return
        for row in tasks:
            plan = _plan(row)
            for number in range(row.count("inst_num")):
                yield self._pod(row, f"task-{row.line}-{number}", plan, begin_s)

    def _read_jobs(self) -> dict[str, _Job]:
        """The jobs by name."""
        types: dict[str, str] = {}
        tags = TAGS.find(self.folder)
        if tags is not None:
            for row in TAGS.rows(tags):
                if gpu_type := row.text("gpu_type_spec"):
                    types[row.text("inst_id")] = gpu_type
        elif not self.assigned_types:
            self.notes.append(f"{self.folder}: no {TAGS.name}: no pod requires a type of GPU")
        return {
            row.needed("job_name"): _Job(
                row.amount("start_time") or 0.0, types.get(row.text("inst_id"), "")
            )
            for row in JOBS.rows(JOBS.needed_file(self.folder))
        }

    def _pod(self, row: Row, name: str, plan: _Plan, begin_s: float) -> Manifest:
        """A pod; one without an end, or that never started, runs on."""
        start_s, end_s = row.amount("start_time") or 0.0, row.amount("end_time") or 0.0
        job = self._jobs.get(row.text("job_name"))
        created_s = job.submitted_s if job is not None else start_s
        duration_s = end_s - start_s if start_s and end_s >= start_s else None
        gpu_type = plan.gpu_type if self.assigned_types else job.gpu_type if job is not None else ""
        wanted = gpu_type if GPU_MILLI in plan.requests and gpu_type != CPU_ONLY else ""
        return make_pod(
            name,
            plan.requests,
            annotations={
                TRACE_NAME: f"{row.text('job_name')}/{row.text('task_name')}",
                **times(max(created_s - begin_s, 0.0), duration_s),
            },
            on=[in_values(GPU_MODEL, [wanted])] if wanted else (),
        )


def _plan(row: Row) -> _Plan:
    requests = {}
    if percent := row.amount("plan_cpu"):
        requests["cpu"] = milli_cpu(percent / 100)
    if gigabytes := row.amount("plan_mem"):
        requests["memory"] = mebibytes(gigabytes)
    if percent := row.amount("plan_gpu"):
        requests[GPU_MILLI] = str(round(percent * 10))
    return _Plan(requests, row.text("gpu_type"))
