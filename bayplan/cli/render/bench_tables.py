"""Bench tables: tables of measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...sim.bench import (
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

COLUMNS: dict[type[Run], tuple[str, str, dict[str, str]]] = {
    PodRun: (
        "workload",
        "{.name}",
        {
            "nodes": "{.nodes:,}",
            "pods": "{.pods:,}",
            "placed": "{.placed:,}",
            "pods/s": "{.pods_per_s:,.0f}",
            "µs/pod": "{.us_per_pod:,.1f}",
            "p50 µs": "{.p50_us:,.1f}",
            "p99 µs": "{.p99_us:,.1f}",
            "MiB/10k pods": "{.mib_per_10k_pods:,.1f}",
        },
    ),
    EventRun: (
        "event",
        "{.event}",
        {
            "nodes": "{.nodes:,}",
            "pods waiting": "{.waiting:,}",
            "µs/event": "{.us_per_event:,.1f}",
            "moved/event": "{.moved_per_event:,.1f}",
        },
    ),
    LoadRun: (
        "dump",
        "{.name}",
        {
            "nodes": "{.nodes:,}",
            "pods": "{.pods:,}",
            "MiB": "{.mib:,.0f}",
            "read s": "{.read_s:.2f}",
            "cluster s": "{.cluster_s:.2f}",
            "decision s": "{.decision_s:.2f}",
            "total s": "{.seconds:.2f}",
            "peak MiB": "{.peak_mib:,.0f}",
        },
    ),
    CommandRun: (
        "simulate",
        "{.name}",
        {
            "nodes": "{.nodes:,}",
            "pods": "{.pods:,}",
            "placed": "{.placed:,}",
            "total s": "{.seconds:.2f}",
            "CPU s": "{.cpu_s:.2f}",
            "pods/CPU s": "{.pods_per_cpu_s:,.0f}",
            "peak MiB": "{.peak_mib:,.0f}",
        },
    ),
    QuestionRun: (
        "question",
        "{.question}",
        {
            "nodes": "{.nodes:,}",
            "pods": "{.pods:,}",
            "total s": "{.seconds:.2f}",
            "CPU s": "{.cpu_s:.2f}",
            "after reading": "{.answer_s:.2f}",
            "peak MiB": "{.peak_mib:,.0f}",
        },
    ),
    PlanRun: (
        "plan",
        "{.name}",
        {
            "nodes": "{.nodes:,}",
            "pods": "{.pods:,}",
            "price": "{.price:,.2f}",
            "bound": "{.bound:,.2f}",
            "gap": "{.gap:.1%}",
            "first fit": "{.first_fit_price:,.2f}",
            "saved": "{.saved:.1%}",
            "first plan s": "{.first_plan_s:.1f}",
            "total s": "{.seconds:.1f}",
        },
    ),
}
"""By kind of run: the heading and the name of a row, and the other columns, each with its format."""


def run_table(kind: type[Run], runs: Sequence[Run]) -> Listing:
    """The runs of a kind."""
    heading, name, columns = COLUMNS[kind]
    own = [run for run in runs if isinstance(run, kind)]
    table = _table(heading, tuple(columns), own)
    for run in own:
        table.add(name.format(run), *(text.format(run) for text in columns.values()), *_spread(run))
    return table


def cache_table(runs: Sequence[PodRun]) -> Listing:
    """Caches: how often each had the answer, had none, and dropped its answers."""
    table = _table("workload", ("cache", "hits", "misses", "drops"), runs)
    for run in runs:
        for name, used in run.caches.items():
            numbers = (f"{used.hits:,}", f"{used.misses:,}", f"{used.drops:,}")
            table.add(run.name, name, *numbers, *_spread(run))
    return table


def growth_table(growths: Sequence[Growth[PodRun]]) -> Listing:
    """Growth: the cost of a pod at each number of nodes, and the factors between."""
    sizes = sorted({run.nodes for growth in growths for run in growth.runs})
    headings = [f"µs/pod at {nodes:,}" for nodes in sizes]
    table = _table("growth", (*headings, "× µs/pod", "× p50", "× p99", "× MiB/10k pods"))
    for growth in growths:
        costs = {run.nodes: f"{run.us_per_pod:,.1f}" for run in growth.runs}
        table.add(
            growth.workload,
            *(costs.get(nodes, "") for nodes in sizes),
            _factors(growth, lambda run: run.us_per_pod),
            _factors(growth, lambda run: run.p50_us),
            _factors(growth, lambda run: run.p99_us),
            _factors(growth, lambda run: run.mib_per_10k_pods),
        )
    return table


def command_growth_table(growths: Sequence[Growth[CommandRun]]) -> Listing:
    """Growth: time and memory of a command at each number of nodes."""
    sizes = sorted({run.nodes for growth in growths for run in growth.runs})
    headings = [f"{figure} at {nodes:,}" for figure in ("CPU s", "MiB") for nodes in sizes]
    table = _table("growth", tuple(headings))
    for growth in growths:
        times = {run.nodes: f"{run.cpu_s:,.1f}" for run in growth.runs}
        peaks = {run.nodes: f"{run.peak_mib:,.0f}" for run in growth.runs}
        table.add(
            growth.workload, *(each.get(nodes, "") for each in (times, peaks) for nodes in sizes)
        )
    return table


def change_table(changes: Sequence[RunComparison]) -> Listing:
    """Changes: the cost of a run before and now."""
    right = ("nodes", "before µs", "now µs", "change")
    table = Listing(("compared", *right, ""), right=right)
    for change in changes:
        before = "" if change.before is None else f"{change.before.cost:,.1f}"
        by = "" if change.by is None else f"{100 * change.by:+,.0f}%"
        table.add(
            change.now.name,
            f"{change.now.nodes:,}",
            before,
            f"{change.now.cost:,.1f}",
            by,
            _judgement(change),
        )
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


def _factors(growth: Growth[PodRun], figure: Callable[[PodRun], float]) -> str:
    return " ".join(f"{factor:.1f}" for factor in growth.factors(figure))


def _spread(run: Run) -> list[str]:
    """Distance of the worst of several runs from the best."""
    return [f"+{100 * run.spread:.0f}%"] if run.repeats > 1 else []


def _table(first: str, numbers: Sequence[str], runs: Sequence[Run] = ()) -> Listing:
    spread = ("spread",) if any(run.repeats > 1 for run in runs) else ()
    headings = (first, *numbers, *spread)
    return Listing(headings, right=headings[1:])
