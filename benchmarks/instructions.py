"""Instructions: the instructions of the processor that a pod takes, in two checkouts, on a busy machine, too.

    python -m benchmarks.instructions ../before -w basic -w churn

Times of the same version differ by a third on shared machines, instructions by 0.3 %. A ratio above 1 means that this
checkout needs fewer. Waits for memory are not in it. Both checkouts need a `.venv` (`make kernel`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKLOADS = (
    "basic",
    "affinity",
    "anti-affinity-120",
    "node-affinity",
    "own-class",
    "churn",
    "classes-120",
    "classes-1000",
    "daemonset",
    "dra",
    "gang",
    "pod-groups",
    "placement",
    "preemption",
    "spread",
    "spread-120",
    "taints",
    "trace",
    "unschedulable",
    "csi-volumes",
)
COMMANDS = (["research", "bench"], ["bench"])
"""The second is that of checkouts before there was `research`."""


class FailedError(Exception):
    """A run that did not end well; with its last lines."""


def instructions_per_pod(checkout: Path, workload: str) -> float:
    """The instructions for a pod of a workload, from its creation to its binding."""
    python = checkout / ".venv" / "bin" / "python"
    if not python.exists():
        raise FailedError(f"{python}: expected a Python; got none: run `make kernel` there")
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE / "instruction_clock"),
        "PYTHONHASHSEED": "0",
        "BAYPLAN_COUNT_INSTRUCTIONS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        for command in COMMANDS:
            done = subprocess.run(
                [python, "-m", "bayplan", *command, "--cpu", "-w", workload, "--json", results],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
            )
            if results.exists():
                run = json.loads(results.read_text())["runs"][0]
                return float(1e9 / run["podsPerS"])
    raise FailedError(f"{checkout}: {workload}: {done.stderr.strip()[-500:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each workload: instructions per pod there and here, and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the folder of the other checkout")
    parser.add_argument("-w", "--workload", action="append", help="may be given several times")
    given = parser.parse_args(arguments)
    print(f"{'workload':20}{'there':>14}{'here':>14}{'ratio':>9}")
    try:
        for workload in given.workload or WORKLOADS:
            there = instructions_per_pod(given.other.resolve(), workload)
            here = instructions_per_pod(HERE.parent, workload)
            print(f"{workload:20}{there:>14,.0f}{here:>14,.0f}{there / here:>9.3f}", flush=True)
    except FailedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
