"""Bench tables: tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from ...sim.bench.measurements import (
    CommandRun,
    EventRun,
    LoadRun,
    PlanRun,
    PodRun,
    QuestionRun,
    Run,
    RunComparison,
    find_growth,
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


GROWTH: dict[type[Any], tuple[dict[str, str], dict[str, str]]] = {
    PodRun: (
        {"µs/pod": "{.us_per_pod:,.1f}"},
        {
            "× µs/pod": "us_per_pod",
            "× p50": "p50_us",
            "× p99": "p99_us",
            "× MiB/10k pods": "mib_per_10k_pods",
        },
    ),
    CommandRun: ({"CPU s": "{.cpu_s:,.1f}", "MiB": "{.peak_mib:,.0f}"}, {}),
}
"""Costs at each number of nodes, and those whose factors are shown."""


def growth_table(kind: type[Any], runs: Sequence[Run]) -> Listing:
    """Growth: the costs at each number of nodes, and the factors between."""
    growths, (costs, factors) = find_growth(runs, kind), GROWTH[kind]
    sizes = sorted({run.nodes for growth in growths for run in growth.runs})
    rows = []
    for growth in growths:
        at = {run.nodes: run for run in growth.runs}
        cells = (form.format(at[n]) if n in at else "" for form in costs.values() for n in sizes)
        grown = (growth.factors(attrgetter(figure)) for figure in factors.values())
        shown = (" ".join(f"{factor:.1f}" for factor in each) for each in grown)
        rows.append((growth.workload, *cells, *shown))
    headings = (f"{figure} at {nodes:,}" for figure in costs for nodes in sizes)
    return _table("growth", (*headings, *factors), rows)


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
