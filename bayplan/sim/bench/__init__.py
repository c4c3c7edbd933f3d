"""Benchmarks: scheduling throughput, memory, and the cost of events.

Contents: reading files of workloads in the manner of Kubernetes' scheduler_perf (`ops.py`,
`cases.py`), making their objects, running them (`op_executor.py`, read it first), measuring,
comparing, and drawing. The workloads of the package are in `workloads/`. Imports: what may
enter sim. Never: printing, or measuring what is not documented in
docs/benchmarks.md. Callers: cli, and users' scripts.
"""

from .cases import Case, find_cases, own_cases, read_cases
from .comparison import Growth, RunComparison, compare, find_command_growth, find_growth
from .measurements import (
    CommandRun,
    EventRun,
    LoadRun,
    PlanRun,
    PodRun,
    QuestionRun,
    Run,
    best_of,
    read_report,
    write_file,
    write_report,
)
from .op_executor import execute
from .runs import GROWTH_NODES, read_suite, run_request
from .workload import ClockName, Request, find_workload, make_workload

__all__ = [
    "Case",
    "RunComparison",
    "ClockName",
    "CommandRun",
    "EventRun",
    "GROWTH_NODES",
    "Growth",
    "LoadRun",
    "PlanRun",
    "PodRun",
    "QuestionRun",
    "Request",
    "Run",
    "best_of",
    "compare",
    "execute",
    "find_cases",
    "find_command_growth",
    "find_growth",
    "find_workload",
    "make_workload",
    "own_cases",
    "read_cases",
    "read_report",
    "read_suite",
    "run_request",
    "write_file",
    "write_report",
]
