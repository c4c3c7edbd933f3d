"""End to end: `bayplan simulate` on the objects of a workload, from the start of the process to its last line.

The objects of the ops before `simulate` are written to a file of manifests. What is measured is a user's command: the
imports, reading the file, controllers, scheduling, and printing the result.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ...errors import BayplanError, InputError
from .cases import WorkloadStep
from .making import (
    Maker,
    any_templates,
    namespace_templates,
    node_templates,
    pod_templates,
)
from .memory import children_cpu_s, children_peak_mib
from .ops import CreateAny, CreateNamespaces, CreateNodes, CreatePods, Simulate
from .results import CommandRun
from .workload import BenchWorkload

_SUMMARY = re.compile(r"([\d,]+) of ([\d,]+) pods? placed")
_PLACED, _PENDING = 0, 1
"""Exit statuses of `simulate`."""


def run_end_to_end(workload: BenchWorkload) -> CommandRun:
    """Run the command in a process of its own; raises InputError where the workload is invalid."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        manifests = Path(folder) / "cluster.json"
        nodes = write_manifests(workload, manifests)
        command = [sys.executable, "-m", "bayplan", "simulate", "-f", str(manifests)]
        # Before and after: the processes of earlier runs count, too.
        cpu_before, start = children_cpu_s(), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=_environment())
        seconds, cpu_s = time.perf_counter() - start, children_cpu_s() - cpu_before
    lines = done.stdout.splitlines()
    said = _SUMMARY.match(lines[-1]) if lines else None
    if done.returncode not in (_PLACED, _PENDING) or said is None:
        text = done.stderr.strip() or f"exit status {done.returncode}"
        raise BayplanError(f"{workload.name}: expected simulate to end with a summary; got {text}")
    placed, pods = (int(number.replace(",", "")) for number in said.groups())
    return CommandRun(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        placed=placed,
        seconds=round(seconds, 3),
        cpu_s=round(cpu_s, 3),
        peak_mib=round(children_peak_mib(), 1),
    )


def write_manifests(workload: BenchWorkload, path: Path) -> int:
    """Write the objects of the ops before `simulate`; returns the number of nodes."""
    items: list[bytes] = []
    nodes = 0
    for number, step in enumerate(workload.case.steps):
        if isinstance(step.op, Simulate):
            break
        made = list(_maker(workload, step, number))
        nodes += len(made) if isinstance(step.op, CreateNodes) else 0
        items += made
    path.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + b",\n".join(items) + b"]}")
    return nodes


def _maker(workload: BenchWorkload, step: WorkloadStep, number: int) -> Iterator[bytes]:
    op = step.op
    if isinstance(op, CreateNodes):
        templates = node_templates(step, op, number)
    elif isinstance(op, CreatePods):
        templates = pod_templates(step, op.namespace or f"namespace-{number}", number)
    elif isinstance(op, CreateNamespaces):
        templates = [namespace_templates(step.templates.get("namespace_template"), op.prefix)]
    elif isinstance(op, CreateAny):
        templates = [any_templates(step.templates["template"], op.namespace, f"{number}-")]
    else:
        raise InputError(f"{step.place}: expected an op that creates objects; got {op.opcode}")
    count = workload.number(op.count, op.count_param, step.place)
    return Maker(count, workload.params, *templates, rows=step.rows).texts()


def _environment() -> dict[str, str]:
    """Like that of a user: compiled modules are kept, and a package that is run from its sources is found."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return environment
