"""Benchmarks: how fast pods are scheduled, what memory they take, and what an event costs.

What lives here: reading files of workloads in the manner of Kubernetes' scheduler_perf (`ops.py`, `cases.py`), making
their objects, running them (`executor.py`, read it first) and measuring. The workloads of the package are in
`workloads/`. What may enter: what may enter sim. What must not happen: printing, or measuring what is not documented in
docs/benchmarks.md. Who calls it: cli, and people in their own scripts.
"""

from .cases import Case, find_cases, own_cases, read_cases
from .executor import execute
from .processes import run_request
from .results import EventRun, PodRun, Run
from .workload import Request, Workload, find_workload, make_workload

__all__ = [
    "Case",
    "EventRun",
    "PodRun",
    "Request",
    "Run",
    "Workload",
    "execute",
    "find_cases",
    "find_workload",
    "make_workload",
    "own_cases",
    "read_cases",
    "run_request",
]
