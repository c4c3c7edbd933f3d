"""Plan bench: `bayplan plan` on seeded workloads, in its own process, beside first fit decreasing of the same run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...errors import BayplanError
from .end_to_end import run_python
from .measurement import peak_mib
from .measurements import PlanRun
from .ops import PlanNodes
from .plan_workloads import (
    openb_config,
    openb_pools,
    openb_workload,
    web_config,
    web_pools,
    web_workload,
)

_COMPLETE, _PENDING = 0, 1
"""Exit statuses of `plan` and `simulate`."""
FIRST_UNSEEN = 1000
WORKLOAD, CONFIG, NODES = "workload.json", "config.json", "nodes.yaml"


def run_plan(name: str, asked: PlanNodes, pods: int, unseen: int = 0) -> PlanRun:
    """Plan the nodes of one workload; raises BayplanError when the command does not find a plan.

    Afterwards the workload is simulated on them with `unseen` seeds that the plan was not verified with.
    """
    with tempfile.TemporaryDirectory(prefix="bayplan-") as place:
        folder = Path(place)
        options = [*_write(folder, asked, pods), "--to", str(folder / NODES)]
        done = run_python("-m", "bayplan", "plan", *options, "-o", "json")
        if done.status != _COMPLETE:
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
    if done.status not in (_COMPLETE, _PENDING):
        raise BayplanError(f"simulate: expected exit status 0 or 1; got {done.err.strip()}")
    return done.status == _COMPLETE


def _write(folder: Path, asked: PlanNodes, pods: int) -> Iterator[str]:
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
