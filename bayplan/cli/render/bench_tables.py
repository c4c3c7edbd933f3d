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


def pod_table(runs: Sequence[PodRun]) -> Listing:
    """Pods: how many, how fast, how much memory."""
    table = _table(
        "workload",
        ("nodes", "pods", "placed", "pods/s", "µs/pod", "p50 µs", "p99 µs", "MiB/10k pods"),
        runs,
    )
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.placed:,}",
            f"{run.pods_per_s:,.0f}",
            f"{run.us_per_pod:,.1f}",
            f"{run.p50_us:,.1f}",
            f"{run.p99_us:,.1f}",
            f"{run.mib_per_10k_pods:,.1f}",
        )
        table.add(run.name, *numbers, *_spread(run))
    return table


def cache_table(runs: Sequence[PodRun]) -> Listing:
    """Caches: how often each had the answer, had none, and dropped its answers."""
    table = _table("workload", ("cache", "hits", "misses", "drops"), runs)
    for run in runs:
        for name, used in run.caches.items():
            numbers = (f"{used.hits:,}", f"{used.misses:,}", f"{used.drops:,}")
            table.add(run.name, name, *numbers, *_spread(run))
    return table


def event_table(runs: Sequence[EventRun]) -> Listing:
    """Events: the cost of each, and the number of pods it brings back."""
    table = _table("event", ("nodes", "pods waiting", "µs/event", "moved/event"), runs)
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.waiting:,}",
            f"{run.us_per_event:,.1f}",
            f"{run.moved_per_event:,.1f}",
        )
        table.add(run.event, *numbers, *_spread(run))
    return table


def load_table(runs: Sequence[LoadRun]) -> Listing:
    """Loading a dump: how long each part of it takes."""
    headings = ("nodes", "pods", "MiB", "read s", "cluster s", "decision s", "total s", "peak MiB")
    table = _table("dump", headings, runs)
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.mib:,.0f}",
            f"{run.read_s:.2f}",
            f"{run.cluster_s:.2f}",
            f"{run.decision_s:.2f}",
            f"{run.seconds:.2f}",
            f"{run.peak_mib:,.0f}",
        )
        table.add(run.name, *numbers, *_spread(run))
    return table


def command_table(runs: Sequence[CommandRun]) -> Listing:
    """`simulate` as a whole: how long it takes from start to end."""
    headings = ("nodes", "pods", "placed", "total s", "CPU s", "pods/CPU s", "peak MiB")
    table = _table("simulate", headings, runs)
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.placed:,}",
            f"{run.seconds:.2f}",
            f"{run.cpu_s:.2f}",
            f"{run.pods / max(run.cpu_s, 0.001):,.0f}",
            f"{run.peak_mib:,.0f}",
        )
        table.add(run.name, *numbers, *_spread(run))
    return table


def question_table(runs: Sequence[QuestionRun]) -> Listing:
    """Questions: how long each takes from start to end, and without reading the files."""
    headings = ("nodes", "pods", "total s", "CPU s", "after reading", "peak MiB")
    table = _table("question", headings, runs)
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.seconds:.2f}",
            f"{run.cpu_s:.2f}",
            f"{run.answer_s:.2f}",
            f"{run.peak_mib:,.0f}",
        )
        table.add(run.question, *numbers, *_spread(run))
    return table


def plan_table(runs: Sequence[PlanRun]) -> Listing:
    """Plans: prices beside first fit and the bound, and how long it took."""
    headings = (
        "nodes",
        "pods",
        "price",
        "bound",
        "gap",
        "first fit",
        "saved",
        "first plan s",
        "total s",
    )
    table = _table("plan", headings, runs)
    for run in runs:
        numbers = (
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.price:,.2f}",
            f"{run.bound:,.2f}",
            f"{run.gap:.1%}",
            f"{run.first_fit_price:,.2f}",
            f"{run.saved:.1%}",
            f"{run.first_plan_s:.1f}",
            f"{run.seconds:.1f}",
        )
        table.add(run.name, *numbers, *_spread(run))
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
