"""Bench tables: tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from ...sim.bench.measurements import (
    CommandRun,
    EventRun,
    Growth,
    LoadRun,
    PlanRun,
    PodRun,
    QuestionRun,
    Run,
    RunComparison,
)
from .table_layout import Listing, Piece

FORMS = {
    "nodes": "{.nodes:,}",
    "pods": "{.pods:,}",
    "placed": "{.placed:,}",
    "pods/s": "{.pods_per_s:,.0f}",
    "µs/pod": "{.us_per_pod:,.1f}",
    "p50 µs": "{.p50_us:,.1f}",
    "p99 µs": "{.p99_us:,.1f}",
    "MiB/10k pods": "{.mib_per_10k_pods:,.1f}",
    "pods waiting": "{.waiting:,}",
    "µs/event": "{.us_per_event:,.1f}",
    "moved/event": "{.moved_per_event:,.1f}",
    "MiB": "{.mib:,.0f}",
    "read s": "{.read_s:.2f}",
    "cluster s": "{.cluster_s:.2f}",
    "decision s": "{.decision_s:.2f}",
    "total s": "{.seconds:.2f}",
    "CPU s": "{.cpu_s:.2f}",
    "pods/CPU s": "{.pods_per_cpu_s:,.0f}",
    "after reading": "{.answer_s:.2f}",
    "peak MiB": "{.peak_mib:,.0f}",
    "price": "{.price:,.2f}",
    "bound": "{.bound:,.2f}",
    "gap": "{.gap:.1%}",
    "first fit": "{.first_fit_price:,.2f}",
    "saved": "{.saved:.1%}",
    "first plan s": "{.first_plan_s:.1f}",
}
"""The format of each column."""
COLUMNS: dict[type[Run], str] = {
    PodRun: "workload=name, nodes, pods, placed, pods/s, µs/pod, p50 µs, p99 µs, MiB/10k pods",
    EventRun: "event=event, nodes, pods waiting, µs/event, moved/event",
    LoadRun: "dump=name, nodes, pods, MiB, read s, cluster s, decision s, total s, peak MiB",
    CommandRun: "simulate=name, nodes, pods, placed, total s, CPU s, pods/CPU s, peak MiB",
    QuestionRun: "question=question, nodes, pods, total s, CPU s, after reading, peak MiB",
    PlanRun: "plan=name, nodes, pods, price, bound, gap, first fit, saved, first plan s, total s",
}
"""By kind of run: the heading and the attribute of its name, and the other columns."""


def run_table(kind: type[Run], runs: Sequence[Run]) -> Listing:
    """The runs of a kind."""
    first, *columns = COLUMNS[kind].split(", ")
    heading, _, name = first.partition("=")
    own = [run for run in runs if isinstance(run, kind)]
    forms = [f"{{.{name}}}", *(FORMS[column] for column in columns)]
    if kind is PlanRun:
        forms[-1] = "{.seconds:.1f}"  # its search takes a minute
    rows = ((*(text.format(run) for text in forms), *_spread(run)) for run in own)
    return _table(heading, columns, rows, own)


def cache_table(runs: Sequence[PodRun]) -> Listing:
    """Caches: how often each had the answer, had none, and dropped its answers."""
    rows = (
        (run.name, name, f"{used.hits:,}", f"{used.misses:,}", f"{used.drops:,}", *_spread(run))
        for run in runs
        for name, used in run.caches.items()
    )
    return _table("workload", ("cache", "hits", "misses", "drops"), rows, runs)


def growth_table(growths: Sequence[Growth[PodRun]]) -> Listing:
    """Growth: the cost of a pod at each number of nodes, and the factors between."""
    sizes = sorted({run.nodes for growth in growths for run in growth.runs})
    headings = [f"µs/pod at {nodes:,}" for nodes in sizes]
    figures = {
        "× µs/pod": attrgetter("us_per_pod"),
        "× p50": attrgetter("p50_us"),
        "× p99": attrgetter("p99_us"),
        "× MiB/10k pods": attrgetter("mib_per_10k_pods"),
    }
    rows = []
    for growth in growths:
        costs = {run.nodes: f"{run.us_per_pod:,.1f}" for run in growth.runs}
        factors = (growth.factors(figure) for figure in figures.values())
        shown = (" ".join(f"{factor:.1f}" for factor in each) for each in factors)
        rows.append((growth.workload, *(costs.get(nodes, "") for nodes in sizes), *shown))
    return _table("growth", (*headings, *figures), rows)


def command_growth_table(growths: Sequence[Growth[CommandRun]]) -> Listing:
    """Growth: time and memory of a command at each number of nodes."""
    sizes = sorted({run.nodes for growth in growths for run in growth.runs})
    headings = [f"{figure} at {nodes:,}" for figure in ("CPU s", "MiB") for nodes in sizes]
    rows = []
    for growth in growths:
        times = {run.nodes: f"{run.cpu_s:,.1f}" for run in growth.runs}
        peaks = {run.nodes: f"{run.peak_mib:,.0f}" for run in growth.runs}
        figures = (each.get(nodes, "") for each in (times, peaks) for nodes in sizes)
        rows.append((growth.workload, *figures))
    return _table("growth", headings, rows)


def change_table(changes: Sequence[RunComparison]) -> Listing:
    """Changes: the cost of a run before and now."""
    right = ("nodes", "before µs", "now µs", "change")
    table = Listing(("compared", *right, ""), right=right)
    for change in changes:
        before = "" if change.before is None else f"{change.before.cost:,.1f}"
        by = "" if change.by is None else f"{100 * change.by:+,.0f}%"
        now, numbers = change.now, (f"{change.now.nodes:,}", before, f"{change.now.cost:,.1f}", by)
        table.add(now.name, *numbers, _judgement(change))
    return table


def _judgement(change: RunComparison) -> list[Piece]:
    if change.before is None:
        return [("new", "")]
    words: list[Piece] = []
    if change.is_slower:
        words.append(("slower", "red"))
    elif change.is_faster:
        words.append(("faster", "green"))
    if change.is_bigger:
        words += [*([(", ", "")] if words else []), ("more memory", "red")]
    return words


def _spread(run: Run) -> list[str]:
    """Distance of the worst of several runs from the best."""
    return [f"+{100 * run.spread:.0f}%"] if run.repeats > 1 else []


def _table(
    first: str, numbers: Sequence[str], rows: Iterable[Sequence[str]], runs: Sequence[Run] = ()
) -> Listing:
    spread = ("spread",) if any(run.repeats > 1 for run in runs) else ()
    headings = (first, *numbers, *spread)
    return Listing(headings, rows, right=headings[1:])
