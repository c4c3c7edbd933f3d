"""Bench, the command: `make bench-apiserver`."""

from __future__ import annotations

import argparse
import compileall
import json
import sys
import tempfile
from pathlib import Path

import bayplan
from tests.rig.live.control_plane import assets_folder, missing_assets

from .apiserver_bench import Run, arena, contestants


def main() -> int:
    """Measure how fast pending pods are bound on an API server, and what it costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--running", type=int, default=0, help="pods that have a node already")
    parser.add_argument(
        "--repeat", type=int, default=1, help="rounds; each contestant's best counts"
    )
    parser.add_argument("--only", action="append", help="a contestant; may be given several times")
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="on the API server of `bayplan up`, which needs no binaries",
    )
    parser.add_argument("--json", type=Path, help="where to write all runs")
    parser.add_argument(
        "--waves",
        type=int,
        default=0,
        help="create, bind and delete the pods so many times, and print the memory after each time",
    )
    arguments = parser.parse_args()
    if missing_assets() and not arguments.embedded:
        missing = ", ".join(missing_assets())
        print(f"not run: expected {missing} in {assets_folder()}", file=sys.stderr)
        return 2
    # As an installed package is: else the source would be compiled at each start.
    compileall.compile_dir(Path(bayplan.__file__).parent, quiet=1)
    runs = []
    with (
        tempfile.TemporaryDirectory() as folder,
        arena(
            Path(folder),
            arguments.nodes,
            arguments.pods,
            arguments.running,
            is_embedded=arguments.embedded,
        ) as place,
    ):
        if arguments.waves:
            print_memory(list(place.live_through(contestants()[0], arguments.waves)))
            return 0
        for _ in range(arguments.repeat):
            for contestant in contestants():
                if not arguments.only or contestant.name in arguments.only:
                    runs.append(place.measure(contestant))
                    print(line(runs[-1]), file=sys.stderr, flush=True)
    print(table(runs))
    if arguments.json is not None:
        trees = [{**run._asdict(), "pods_per_s": run.pods_per_s} for run in runs]
        arguments.json.write_text(json.dumps(trees, indent=2))
    return 0


def print_memory(mib: list[float]) -> None:
    """Print the memory after each wave, and its growth in the last third of them."""
    last = mib[-len(mib) // 3 - 1 :]
    print(" ".join(f"{each:.1f}" for each in mib), "MiB")
    print(f"last third: {last[-1] - last[0]:+.1f} MiB")


def line(run: Run) -> str:
    """One run as a row."""
    cpu = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run.cpu_s.items())
    return (
        f"| {run.name} | {run.pods_per_s:.0f} | {run.seconds:.2f} | {run.start_s:.2f} "
        f"| {run.own_cpu_s:.2f} | {run.events} | {cpu} | {run.peak_mib:.0f} |"
    )


def table(runs: list[Run]) -> str:
    """The best run of each, as Markdown."""
    best: dict[str, Run] = {}
    for run in runs:
        if run.name not in best or run.pods_per_s > best[run.name].pods_per_s:
            best[run.name] = run
    head = (
        "| | pods/s | first to last bind, s | start to first bind, s | own CPU from start, s "
        "| events | CPU from first to last bind, s | peak MiB |"
    )
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|---|---:|", *map(line, best.values())])


if __name__ == "__main__":
    sys.exit(main())
