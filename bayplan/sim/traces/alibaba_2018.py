"""Alibaba 2018: services and batch jobs on 4,000 machines for eight days (clusterdata, cluster-trace-v2018).

Schema: cluster-trace-v2018/schema.txt and trace_2018.md of alibaba/clusterdata. The files have no line of column names.
Cores are hundredths (100 is one core), machines' cores are whole numbers, memory is a share of 0 to 100 of the largest
machine (-1 and 101 are invalid values), times are seconds from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .published import PublishedTrace, TraceFormat, TraceTable
from .table_rows import Row
from .trace_manifests import (
    TRACE_NAME,
    Manifest,
    dns_name,
    evenly,
    make_node,
    make_pod,
    mebibytes,
    milli_cpu,
    times,
)

FAILURE_DOMAIN_1 = "bayplan.dev/failure-domain-1"
FAILURE_DOMAIN_2 = "bayplan.dev/failure-domain-2"
APP = "bayplan.dev/app"
STOPPED = "stopped"
"""The status with which a container ends."""

MACHINES = TraceTable(
    "machine_meta",
    "machine_id,time_stamp,failure_domain_1,failure_domain_2,cpu_num,mem_size,status",
    "machines; the first line of each counts",
)
CONTAINERS = TraceTable(
    "container_meta",
    "container_id,machine_id,time_stamp,app_du,status,cpu_request,cpu_limit,mem_size",
    "containers of services",
    is_optional=True,
)
TASKS = TraceTable(
    "batch_task",
    "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem",
    "tasks of batch jobs, with what their instances request",
    is_optional=True,
)
INSTANCES = TraceTable(
    "batch_instance",
    "instance_name,task_name,job_name,task_type,status,start_time,end_time,machine_id,seq_no,"
    "total_seq_no,cpu_avg,cpu_max,mem_avg,mem_max",
    "instances of batch tasks, each with its own times (with --instances)",
    is_optional=True,
)
FORMAT = TraceFormat(
    "alibaba-2018",
    "services and batch jobs on 4,000 machines, 2018",
    "alibaba/clusterdata, cluster-trace-v2018/schema.txt",
    (MACHINES, CONTAINERS, TASKS, INSTANCES),
)


@dataclass(kw_only=True)
class Alibaba2018(PublishedTrace):
    """The trace in a folder. `memory_gib` is the memory of the largest machine, which has a mem_size of 100.

    A batch task becomes as many pods as it has instances, with the times of the task; with `instances`, the table of
    instances has the times.
    """

    folder: Path
    memory_gib: float = 512.0
    instances: bool = False

    def nodes(self) -> Iterator[Manifest]:
        found = set()
        for row in MACHINES.rows(MACHINES.needed_file(self.folder)):
            name = dns_name(row.needed("machine_id"))
            if name not in found:
                found.add(name)
                yield self._node(name, row)

    def _node(self, name: str, row: Row) -> Manifest:
        cpus = row.amount("cpu_num") or 0
        memory = self._memory(row, "mem_size") or 0
        domains = {
            FAILURE_DOMAIN_1: row.text("failure_domain_1"),
            FAILURE_DOMAIN_2: row.text("failure_domain_2"),
        }
        labels = {key: text for key, text in domains.items() if text}
        return make_node(name, {"cpu": milli_cpu(cpus), "memory": mebibytes(memory)}, labels)

    def all_pods(self) -> Iterator[Manifest]:
        containers, tasks = CONTAINERS.find(self.folder), TASKS.find(self.folder)
        if containers is not None:
            yield from self._containers(containers)
        if self.instances:
            plans = self._plans(TASKS.needed_file(self.folder))
            for row in INSTANCES.rows(INSTANCES.needed_file(self.folder)):
                requests = plans.get((row.text("job_name"), row.text("task_name")), {})
                yield _batch_pod(row, f"instance-{row.line}", requests)
        elif tasks is not None:
            for row in TASKS.rows(tasks):
                requests = self._requests(row, "plan_cpu", "plan_mem")
                for number in range(row.count("instance_num")):
                    yield _batch_pod(row, f"task-{row.line}-{number}", requests)
        if containers is None and tasks is None and not self.instances:
            self.notes.append(f"{self.folder}: neither container_meta nor batch_task: nodes only")

    def _containers(self, file: Path) -> Iterator[Manifest]:
        """A container has a line for each event: it begins with the first one, and ends when it is stopped."""
        first: dict[str, Row] = {}
        stopped_s: dict[str, float] = {}
        for row in CONTAINERS.rows(file):
            name = row.needed("container_id")
            first.setdefault(name, row)
            if row.text("status") == STOPPED:
                stopped_s.setdefault(name, row.amount("time_stamp") or 0.0)
        for name, row in first.items():
            created_s, end_s = row.amount("time_stamp") or 0.0, stopped_s.get(name)
            app = {APP: row.text("app_du")} if row.text("app_du") else {}
            yield make_pod(
                f"container-{row.line}",
                self._requests(row, "cpu_request", "mem_size"),
                annotations={
                    TRACE_NAME: name,
                    **times(created_s, None if end_s is None else end_s - created_s),
                },
                labels=app,
                spread=[evenly(FAILURE_DOMAIN_1, app)] if app else (),
            )

    def _plans(self, file: Path) -> dict[tuple[str, str], dict[str, str]]:
        """Requests of the instances of each task, by job and task; equal requests are one object."""
        shared: dict[tuple[str, ...], dict[str, str]] = {}
        plans = {}
        for row in TASKS.rows(file):
            requests = self._requests(row, "plan_cpu", "plan_mem")
            requests = shared.setdefault(tuple(requests.values()), requests)
            plans[row.text("job_name"), row.text("task_name")] = requests
        return plans

    def _requests(self, row: Row, cpu: str, memory: str) -> dict[str, str]:
        found = {}
        if cores := row.amount(cpu):
            found["cpu"] = milli_cpu(cores / 100)
        if gibibytes := self._memory(row, memory):
            found["memory"] = mebibytes(gibibytes)
        return found

    def _memory(self, row: Row, column: str) -> float | None:
        """GiB; None if the value is absent or marked as invalid."""
        share = row.signed(column)
        return share / 100 * self.memory_gib if share is not None and 0 <= share <= 100 else None


def _batch_pod(row: Row, name: str, requests: dict[str, str]) -> Manifest:
    """A pod of a batch task; one without an end, or with one before its start, runs on."""
    start_s, end_s = row.amount("start_time") or 0.0, row.amount("end_time") or 0.0
    annotations = {TRACE_NAME: f"{row.text('job_name')}/{row.text('task_name')}"}
    annotations.update(times(start_s, end_s - start_s if end_s >= start_s and end_s else None))
    return make_pod(name, requests, annotations=annotations)
