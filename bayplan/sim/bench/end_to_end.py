"""End to end: `bayplan simulate`, questions or `bayplan plan`, from the start of the process to its end.

The objects of the ops before `simulate` or `ask` are written to a file of manifests. A user's command is measured:
the imports, reading the file, controllers, scheduling, and printing the result. Plans are made of workloads with a
seed, and are compared with first fit decreasing of the same run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...errors import BayplanError
from .measurement import children_cpu_s, peak_mib
from .measurements import CommandRun, PlanRun, QuestionRun
from .op_objects import make_maker
from .ops import AskQuestion, CreateNodes, CreatePods, PlanNodes, Simulate
from .plan_workloads import (
    openb_config,
    openb_pools,
    openb_workload,
    web_config,
    web_pools,
    web_workload,
)
from .workload import BenchWorkload

_SUMMARY = re.compile(r"([\d,]+) of ([\d,]+) pods? placed")
_PLACED, _PENDING = 0, 1
"""Exit statuses of `simulate`, of questions and of `plan`: all is well, or pods stay pending."""
FIRST_UNSEEN = 1000
"""The least seed that a plan is not verified with."""
WORKLOAD, CONFIG, NODES = "workload.json", "config.json", "nodes.yaml"
_READING = """
import gc, sys
from pathlib import Path
from bayplan.cli.main import COLLECT_AFTER
from bayplan.sim import read_manifests
gc.set_threshold(COLLECT_AFTER)
read_manifests([Path(sys.argv[1])])
gc.freeze()
"""
"""A process that reads the file as commands do, and nothing else."""


def run_end_to_end(workload: BenchWorkload) -> Iterator[CommandRun | QuestionRun]:
    """Run each command in a process of its own; raises InputError where the workload is invalid."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        manifests = Path(folder) / "cluster.json"
        nodes, pods = write_manifests(workload, manifests)
        steps = [step.op for step in workload.case.steps]
        if any(isinstance(op, Simulate) for op in steps):
            yield _simulate(workload, manifests, nodes)
        questions = [op.question for op in steps if isinstance(op, AskQuestion)]
        reading_s = run_python("-c", _READING, str(manifests)).cpu_s if questions else 0.0
        for question in questions:
            yield _ask(workload, question, manifests, (nodes, pods), reading_s)


def _simulate(workload: BenchWorkload, manifests: Path, nodes: int) -> CommandRun:
    done = run_python("-m", "bayplan", "simulate", "-f", str(manifests))
    found = map(_SUMMARY.match, done.out.splitlines())  # the first line in a pipe
    summary = next((line for line in found if line is not None), None)
    if done.status not in (_PLACED, _PENDING) or summary is None:
        raise BayplanError(
            f"{workload.name}: expected a summary from simulate; got {done.complaint}"
        )
    placed, pods = (int(number.replace(",", "")) for number in summary.groups())
    return CommandRun(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        placed=placed,
        seconds=round(done.seconds, 3),
        cpu_s=round(done.cpu_s, 3),
        peak_mib=round(peak_mib(of_children=True), 1),
    )


def _ask(
    workload: BenchWorkload,
    question: Sequence[str],
    manifests: Path,
    sizes: tuple[int, int],
    reading_s: float,
) -> QuestionRun:
    folder = Path(workload.case.source).parent
    done = run_python("-m", "bayplan", *question, "-f", str(manifests), folder=folder)
    text = " ".join(question)
    if done.status not in (_PLACED, _PENDING) or not done.out:
        raise BayplanError(f"{workload.name}: expected an answer to {text}; got {done.complaint}")
    return QuestionRun(
        workload=workload.name,
        question=text,
        nodes=sizes[0],
        pods=sizes[1],
        seconds=round(done.seconds, 3),
        cpu_s=round(done.cpu_s, 3),
        answer_s=round(max(done.cpu_s - reading_s, 0), 3),
        peak_mib=round(peak_mib(of_children=True), 1),
    )


class EndedProcess(NamedTuple):
    """A process of this interpreter that has ended."""

    status: int
    out: str
    err: str
    seconds: float
    cpu_s: float

    @property
    def complaint(self) -> str:
        return self.err.strip() or f"exit status {self.status}"


def run_python(*arguments: str, folder: Path | None = None) -> EndedProcess:
    """Run this interpreter in a process of its own."""
    # Before and after: the processes of earlier runs count, too.
    cpu_before, start = children_cpu_s(), time.perf_counter()
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), cwd=folder)
    seconds, cpu_s = time.perf_counter() - start, children_cpu_s() - cpu_before
    return EndedProcess(done.returncode, done.stdout, done.stderr, seconds, cpu_s)


def write_manifests(workload: BenchWorkload, path: Path) -> tuple[int, int]:
    """Write the objects of the ops before the first command; returns the number of nodes and of pods."""
    items: list[bytes] = []
    nodes = pods = 0
    for number, step in enumerate(workload.case.steps):
        if isinstance(step.op, Simulate | AskQuestion):
            break
        made = list(make_maker(workload, step, step.op, number).texts())
        nodes += len(made) if isinstance(step.op, CreateNodes) else 0
        pods += len(made) if isinstance(step.op, CreatePods) else 0
        items += made
    path.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + b",\n".join(items) + b"]}")
    return nodes, pods


def _environment() -> dict[str, str]:
    """The environment of a user: compiled modules are kept, and a package run from its sources is found."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return environment


def run_plan(name: str, asked: PlanNodes, pods: int, unseen: int = 0) -> PlanRun:
    """Plan the nodes of one workload; raises BayplanError when the command does not find a plan.

    Afterwards the workload is simulated on them with `unseen` seeds that the plan was not verified with.
    """
    with tempfile.TemporaryDirectory(prefix="bayplan-") as place:
        folder = Path(place)
        options = [*_write_plan_input(folder, asked, pods), "--to", str(folder / NODES)]
        done = run_python("-m", "bayplan", "plan", *options, "-o", "json")
        if done.status != _PLACED:
            raise BayplanError(f"{name}: expected a plan; got {done.complaint}")
        held = sum(_holds(folder, FIRST_UNSEEN + i) for i in range(unseen))
    found: dict[str, Any] = json.loads(done.out)
    return PlanRun(
        workload=name,
        seed=asked.seed,
        nodes=found["nodes"],
        pods=found["pods"],
        price=found["price"],
        bound=found["bound"],
        first_fit_price=found["firstFitPrice"] or found["price"],
        first_plan_s=found["firstPlanSeconds"],
        seconds=found["seconds"],
        cpu_s=round(done.cpu_s, 3),
        simulations=found["simulations"],
        peak_mib=round(peak_mib(of_children=True), 1),
        held=held,
    )


def _holds(folder: Path, seed: int) -> bool:
    """Whether every pod of the workload is placed on the planned nodes with this seed."""
    files = ["-f", str(folder / NODES), "-f", str(folder / WORKLOAD)]
    config = folder / CONFIG
    options = ["--config", str(config)] if config.exists() else []
    done = run_python("-m", "bayplan", "simulate", *files, *options, "--seed", str(seed))
    if done.status not in (_PLACED, _PENDING):
        raise BayplanError(f"simulate: expected exit status 0 or 1; got {done.err.strip()}")
    return done.status == _PLACED


def _write_plan_input(folder: Path, asked: PlanNodes, pods: int) -> Iterator[str]:
    """Write the files; returns the options of the command."""
    files = {"-f": folder / WORKLOAD, "--pools": folder / "pools.json"}
    if asked.workload == "web":
        items, pools = list(web_workload(asked.seed, asked.deployments, pods)), web_pools()
        config = web_config(asked.is_aligned)
    else:
        items, pools = list(openb_workload(asked.seed, pods)), openb_pools()
        config = openb_config(asked.is_aligned)
    if config is not None:
        files["--config"] = folder / CONFIG
        files["--config"].write_bytes(msgspec.json.encode(config))
    files["-f"].write_bytes(
        msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    )
    files["--pools"].write_bytes(msgspec.json.encode(pools))
    for option, path in files.items():
        yield from (option, str(path))
    yield from ("--time-limit", asked.time_limit)
