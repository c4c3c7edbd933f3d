"""Stream: speed and memory of streamed simulations, by the number of pods in the trace.

    python -m benchmarks.stream 1000000 2000000

Each trace is simulated in a process of its own; the line of each has pods per second and the largest resident memory.
The trace is made on the way: pods of eight shapes, some with a priority, some hundred of them on 200 nodes at a time.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.sim.bench.measurement import peak_mib
from bayplan.sim.streaming import StreamedSimulation, read_lines, write_rows
from bayplan.sim.traces.trace_manifests import Manifest, make_node, make_pod, times

NODES = 200
PER_SECOND = 10.0
SHAPES = [
    {"cpu": f"{cpu}m", "memory": f"{cpu * 2}Mi"}
    for cpu in (250, 500, 750, 1000, 1500, 2000, 4000, 8000)
]


def stream_trace(pods: int, seed: int = 0) -> Iterator[Manifest]:
    """The manifests of a trace with so many pods, sorted by time."""
    for i in range(NODES):
        yield make_node(f"node-{i}", {"cpu": "32", "memory": "128Gi"})
    lots, at_s = random.Random(seed), 0.0
    for i in range(pods):
        at_s += lots.expovariate(PER_SECOND)
        yield make_pod(
            f"pod-{i}",
            lots.choice(SHAPES),
            annotations=times(at_s, lots.choice((30.0, 60.0, 120.0, 600.0))),
            priority=0 if i % 10 else 1,
        )


def measure(pods: int, folder: Path) -> str:
    """Simulate a trace with so many pods; returns a line with the figures."""
    file = folder / f"{pods}.jsonl"
    with open(file, "wb") as stream:
        # Without sorting: the peak memory of this process would count as that of the next one, which it starts.
        stream.writelines(msgspec.json.encode(obj) + b"\n" for obj in stream_trace(pods))
    return subprocess.run(
        [sys.executable, "-m", __spec__.name, "--run", str(file)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def run(file: Path) -> None:
    """Simulate one file, and print the figures."""
    started = time.process_time()
    with write_rows(file.with_suffix(".csv")) as sink:
        report = StreamedSimulation(read_lines(file), sink, seed=0).run_stream()
    seconds = time.process_time() - started
    print(
        f"{report.pods:>12,} pods {report.pods / seconds:>10,.0f} pods/s of CPU time {peak_mib():>8,.0f} MiB"
        f"  placed {report.placed:,}, finished {report.counts['finished']:,}"
    )


def main(args: list[str]) -> None:
    """Measure each number of pods, or run one file."""
    if args[:1] == ["--run"]:
        run(Path(args[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for text in args or ["10000", "100000", "1000000"]:
            print(measure(int(text), Path(folder)), end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
