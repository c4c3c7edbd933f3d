"""Bench command: measure the scheduler on workloads from data files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import InputError
from ..options.config_options import PLUGIN_FILES, read_gates
from ..options.option_groups import option, option_group, takes_options
from ..render.consoles import stderr_console, stdout_console, written_to_stdout

if TYPE_CHECKING:
    from rich.console import Console

    from ...sim.bench.measurements import Run, RunComparison
    from ...sim.bench.workload import ClockName, Request

WORSE = 1
"""The exit status when something got slower, or is slower than its file asks for."""

IDLE_FROM = 0.9
"""A run that had less of a processor than this shared it with others."""


def complete_workload(incomplete: str) -> list[tuple[str, str]]:
    """Workloads for shell completion."""
    from ...sim.bench.runs import read_suite

    known = read_suite(None).summaries.items()
    return [entry for entry in known if entry[0].startswith(incomplete)]


@option_group
class BenchOptions:
    """The options of `bayplan research bench`."""

    workload: list[str] | None = option(
        "--workload, -w NAME",
        "Workload to run; --list names them. May be given several times. Default: all.",
        autocompletion=complete_workload,
    )
    nodes: list[int] | None = option(
        "--nodes, -n NUMBER",
        "Number of nodes. May be given several times. Default: the workload's.",
        min=1,
    )
    pods: int | None = option(
        "--pods, -p NUMBER", "Number of pods. Default: the workload's.", min=1
    )
    growth: bool = option(
        "--growth",
        "Run at 1,000, 5,000 and 15,000 nodes, also on nodes that are filled with running pods.",
    )
    repeat: int = option(
        "--repeat, -r NUMBER",
        "Run each workload this number of times, and take the best.",
        default=1,
        min=1,
    )
    cpu: bool = option("--cpu", "Measure CPU time instead of wall-clock time, for a busy machine.")
    verbose: bool = option("--verbose, -v", "Also show hits, misses and drops of each cache.")
    file: Path | None = option("--file, -f FILE", "Take the workloads from this file.")
    plugins: list[Path] | None = PLUGIN_FILES
    kubernetes_version: str = option(
        "--kubernetes-version 1.36",
        "Measure the rules of this release, 1.33 to 1.37, with workloads of pods and events.",
        default="",
    )
    list_only: bool = option("--list", "List the workloads and exit.")
    json_file: Path | None = option("--json FILE", "Also write the results to this file.")
    from_file: Path | None = option("--from FILE", "Run nothing; take the results from this file.")
    compare_file: Path | None = option(
        "--compare FILE",
        "Name what is slower than in this file of results; exit status 1 if something is.",
    )
    threshold: float = option(
        "--threshold PERCENT",
        "From how many percent --compare calls a result slower.",
        default=10.0,
        min=0,
    )
    svg_file: Path | None = option(
        "--svg FILE", "Draw how the costs grow with the nodes, to this file."
    )


@takes_options(BenchOptions)
def bench(options: BenchOptions) -> None:
    """Measure pods per second and memory; every node is filtered and scored for every pod.

    Exit status: 0, 1 when a result is slower than --compare or the workload's threshold allows, 2 when the input is
    wrong.

    Example: bayplan research bench --workload basic --nodes 5000 --pods 10000
    """
    from ...sim.bench.measurements import (
        CommandRun,
        PodRun,
        compare,
        find_growth,
        read_report,
        write_file,
        write_report,
    )
    from ...sim.bench.runs import GROWTH_NODES, read_suite

    for name, path in (("--json", options.json_file), ("--svg", options.svg_file)):
        if path is not None and not path.parent.is_dir():
            raise InputError(f"{name}: {path}: expected a folder that is there; got {path.parent}")
    if options.growth and options.nodes:
        raise InputError("--growth: expected it without --nodes, which it says itself; got both")
    before = None if options.compare_file is None else read_report(options.compare_file)
    suite = read_suite(options.file)
    if options.list_only:
        for name, summary in suite.summaries.items():
            typer.echo(f"{name:16} {summary}".rstrip())
        return
    if options.from_file is not None:
        runs = read_report(options.from_file)
    else:
        sizes = GROWTH_NODES if options.growth else tuple(options.nodes or ())
        clock: ClockName = "cpu" if options.cpu else "wall"
        own = tuple(str(path) for path in options.plugins or ())
        version = options.kubernetes_version and read_gates("", options.kubernetes_version).version
        requests = suite.requests(options.workload or (), sizes, options.pods, clock, own, version)
        runs = _run_all(requests, options.repeat)
    changes = [] if before is None else compare(before, runs, options.threshold / 100)
    _print(runs, changes, options.verbose)
    _warn_if_busy(runs)
    if options.json_file is not None:
        write_report(options.json_file, runs)
    if options.svg_file is not None:
        from ...sim.bench.growth_svg import draw_growth

        picture = draw_growth(find_growth(runs, PodRun), find_growth(runs, CommandRun))
        write_file(options.svg_file, picture.encode())
    if _name_worse(runs, changes):
        raise typer.Exit(WORSE)


def _run_all(requests: Sequence[Request], repeat: int) -> list[Run]:
    from ...sim.bench.runs import run_request

    console = stderr_console()
    runs: list[Run] = []
    for number, request in enumerate(requests, 1):
        size = "" if request.nodes is None else f", {request.nodes:,} nodes"
        text = f"{request.case}{size} ({number} of {len(requests)})"
        with console.status(text) if console.is_terminal else _said(console, text):
            runs += run_request(request, repeat)
    return runs


def _said(console: Console, text: str) -> AbstractContextManager[None]:
    """The running workload, as a line of a log."""
    console.print(text)
    return nullcontext()


def _print(runs: Sequence[Run], changes: Sequence[RunComparison], verbose: bool) -> None:
    from ...sim.bench.measurements import PodRun
    from ..render.bench_tables import (
        COLUMNS,
        GROWTH,
        cache_table,
        change_table,
        growth_table,
        run_table,
    )
    from ..render.table_layout import show_listing

    console = stdout_console()
    first, *others = (run_table(kind, runs) for kind in COLUMNS)
    caches = cache_table([run for run in runs if isinstance(run, PodRun) and verbose])
    growths = (growth_table(kind, runs) for kind in GROWTH)
    tables = [first, caches, *others, *growths, change_table(changes)]
    with written_to_stdout(console):
        for i, table in enumerate(table for table in tables if table.rows):
            if i:
                console.print()
            show_listing(console, table)


def _warn_if_busy(runs: Sequence[Run]) -> None:
    """Name the runs whose times are too long because other processes used the machine."""
    from ...sim.bench.measurements import PodRun

    timed = (run for run in runs if isinstance(run, PodRun) and run.clock == "wall")
    for run in (run for run in timed if run.cpu_share < IDLE_FROM):
        stderr_console().print(
            f"busy machine: {run.name}, {run.nodes:,} nodes: the process had {run.cpu_share:.0%}"
            " of a processor, so its times are too long (try --cpu)"
        )


def _name_worse(runs: Sequence[Run], changes: Sequence[RunComparison]) -> bool:
    """Report on standard error the figures that are worse than before, or than they should be."""
    from ...sim.bench.measurements import PodRun

    console = stderr_console()
    worse = False
    for change in changes:
        if change.is_slower:
            worse = True
            console.print(f"slower: {change.now.name}, {change.now.nodes:,} nodes")
        if change.is_bigger:
            worse = True
            console.print(f"more memory: {change.now.name}, {change.now.nodes:,} nodes")
    for run in runs:
        if isinstance(run, PodRun) and run.pods_per_s < run.threshold:
            worse = True
            console.print(f"below {run.threshold:,g} pods/s: {run.name}, {run.nodes:,} nodes")
    return worse
