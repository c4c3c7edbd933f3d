"""Bench: the time of a sweep with one process and with several.

    python -m benchmarks.sweep          # 100 runs with 1 and with 2 processes
    python -m benchmarks.sweep 100 4    # 100 runs with 1 and with 4 processes

The clock counts, so the machine must be idle. Each run places 600 pods that come and go on 200 nodes.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.sweep import Sweep

from .stream import stream_trace

PODS = 600


def measure(runs: int, jobs: int, folder: Path) -> tuple[float, float]:
    """Seconds on the clock, and of CPU time, of a sweep with so many runs and processes."""
    tree = {"inputs": [{"files": ["trace.json"]}], "seeds": runs}
    before_s = _cpu_s()
    started = time.monotonic()
    results = Sweep(parse_sweep(tree, "bench", folder)).run(jobs=jobs)
    seconds = time.monotonic() - started
    assert not results.failed, results.failed[0].result.error
    return seconds, _cpu_s() - before_s


def _cpu_s() -> float:
    """CPU time of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(args: list[str]) -> None:
    """Measure both, and print the share."""
    runs, most = (int(text) for text in (args or ["100", "2"]))
    with tempfile.TemporaryDirectory() as name:
        items = {"apiVersion": "v1", "kind": "List", "items": list(stream_trace(PODS))}
        (Path(name) / "trace.json").write_bytes(msgspec.json.encode(items))
        first_s = 0.0
        for jobs in (1, most):
            seconds, cpu_s = measure(runs, jobs, Path(name))
            first_s = first_s or seconds
            print(
                f"{runs} runs, {jobs} processes: {seconds:.1f} s, {cpu_s:.1f} s of CPU time, "
                f"{seconds / first_s:.0%} of the time with one process",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
