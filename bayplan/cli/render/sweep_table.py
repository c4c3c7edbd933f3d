"""Sweep table: a row per input and scheduler, with the measures over the seeds; the runs that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ...errors import counted
from ...releases.release import DEFAULT_RELEASE
from ...sim.measures import measure_of
from ...sweeps import SweepResults, SweepRun
from ...sweeps.sweep import varied_paths
from .consoles import say
from .table_layout import Listing
from .tables import section, show_other_filters, shown_metric, titled

MAX_FAILED = 10


def render_results(console: Console, results: SweepResults) -> None:
    """Print the summary, and the first failures."""
    groups, names = results.summary(), results.shown_measures()
    paths = varied_paths(results.runs)
    releases = {group.release for group in groups}
    named = [
        {**group.columns(paths), "release": group.release or None}
        if releases - {DEFAULT_RELEASE.patch}
        else group.columns(paths)
        for group in groups
    ]
    columns = _used(named)
    titles = [titled(measure_of(name)) for name in names]
    heads = [_head(name) for name in columns]
    table = Listing((*heads, "RUNS", *titles), right=("RUNS", *titles))
    is_marked = False
    for group, row in zip(groups, named, strict=True):
        cells = []
        for name in names:
            metric, difference = group.metric(name), group.difference(name)
            mark = "" if difference is None else difference.mark
            is_marked = is_marked or mark == "*"
            cells.append("-" if metric is None else f"{shown_metric(metric)}{mark}")
        table.add(*(_shown(row[name]) for name in columns), str(len(group.by_seed)), *cells)
    section(console, table, even_empty=True)
    if is_marked:
        text = (
            "* differs from the first of its input: 95 % interval of the differences, seed by seed"
        )
        say(console, text, "dim")
    others = {(group.run.configuration, group.other_filters): group.first for group in groups}
    for (name, text), first in others.items():
        if text:
            show_other_filters(console, name, first.run.configuration, text)
    _render_failed(console, results)
    reused = f", {results.reused:,} of them before" if results.reused else ""
    console.print(Text(f"{results.headline()}{reused}", style="bold"))


def _render_failed(console: Console, results: SweepResults) -> None:
    rows = (
        (run.id, run.input, run.configuration, str(run.seed), result.error.partition("\n")[0])
        for run, result in results.failed
    )
    table = Listing(("FAILED RUN", "INPUT", "CONFIGURATION", "SEED", "ERROR"), rows)
    section(console, table, most=MAX_FAILED, what="run")


def render_plan(
    console: Console, runs: Sequence[SweepRun], states: Sequence[str], missing: int
) -> None:
    """Print the runs of a sweep."""
    paths = varied_paths(runs)
    pairs = zip(runs, states, strict=True)
    rows = [{**run.columns(paths), "status": state} for run, state in pairs]
    columns = _used(rows)
    cells = ([_shown(row[name]) for name in columns] for row in rows)
    section(console, Listing([_head(name) for name in columns], cells), even_empty=True)
    console.print(Text(f"{counted(len(rows), 'run')}, {missing:,} to do", style="bold"))


def _head(column: str) -> str:
    """The head of a column; paths of configurations stay as they are."""
    return column if "." in column else column.upper()


def _used(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns in which some row has a value."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if any(row[name] is not None for row in rows)]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
