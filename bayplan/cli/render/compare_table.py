"""Compare table: a row per metric, a column per configuration, and the pods that land elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ...answers.compare import Comparison, Contender
from ...answers.release_changes import ReleaseChanges
from ...errors import counted
from ...sim.measures import MeasureUnit, measure_of
from ...sim.totals import MAIN_RESOURCES
from .consoles import conclude, say
from .node_names import NodeNames
from .table_layout import Listing
from .tables import (
    amount,
    hint,
    section,
    show_other_filters,
    shown_metric,
    titled,
    value_change,
)

MAX_PODS = 20
MAX_MESSAGES = 5
ALWAYS = {
    "placed",
    "pending",
    "preempted",
    "attempts",
    "fragmentation",
    "meanLatency",
    "maxLatency",
}
"""Metrics that are shown also when they are 0."""


def render_comparison(
    console: Console, answer: Comparison, everything: bool = False, details: bool = False
) -> None:
    """Print the comparison; a long table of pods is cut unless `everything`, equal metrics are counted unless
    `details`."""
    table, equal = _metric_table(answer, details)
    section(console, table)
    if equal:
        verb, them = ("is", "it") if equal == 1 else ("are", "them")
        say(console, f"{counted(equal, 'metric')} {verb} equal (--all shows {them})\n", "dim")
    differences = answer.differences()
    shown = differences if everything else differences[:MAX_PODS]
    names = NodeNames.told(console, (node for pod in shown for node in pod.nodes if node))
    rows = [(pod.pod, *(names.short(n) or "pending" for n in pod.nodes)) for pod in shown]
    section(console, Listing(("POD", *(each.name for each in answer.contenders)), rows))
    hint(console, len(differences) - len(shown), "pod")
    _show_changes(console, answer, everything)
    if any(
        d.is_significant for each in answer.contenders for d in answer.against_first(each).values()
    ):
        first = answer.contenders[0].name
        text = f"* differs from {first}: 95 % interval of the differences, seed by seed"
        say(console, text, "dim")
    for each in answer.contenders:
        if text := answer.other_filters(each):
            show_other_filters(console, each.name, answer.contenders[0].name, text)
    pods, others = len(answer.common_pods()), answer.other_pod_count()
    if others:
        say(console, f"{counted(others, 'further pod')} in some of the runs only", "dim")
    verb = "lands" if len(differences) == 1 else "land"
    seeds = f", {counted(len(answer.seeds), 'run')} each" if len(answer.seeds) > 1 else ""
    text = f"{len(differences):,} of {counted(pods, 'pod')} {verb} elsewhere{seeds}"
    conclude(console, Text(text, style="bold"))


KINDS = {
    "node": "go elsewhere",
    "devices": "get devices in one release only",
    "pending": "fit no longer",
    "schedulable": "fit now",
    "victims": "have other victims",
    "message": "have another message",
}


def _show_changes(console: Console, answer: Comparison, everything: bool) -> None:
    """Print the changes by the releases for each pod in the same cluster, with the causes; pods of the first seed."""
    for first in range(0, len(answer.changes), len(answer.seeds)):
        by_seed = answer.changes[first : first + len(answer.seeds)]
        changes = by_seed[0]
        if changes.pods or not changes.left_out:
            section(console, _change_table(by_seed), even_empty=True)
        moved = [each for each in changes.changed if each.kind == "node"]
        heads = ("POD", changes.before, changes.after, "SCORE", "CAUSE")
        rows = [(e.pod, e.before, e.after, e.plugin, ", ".join(e.causes)) for e in moved]
        section(console, Listing(heads, rows), most=None if everything else MAX_PODS, what="pod")
        for (before, after), number in changes.messages().most_common(MAX_MESSAGES):
            say(console, f"message of {counted(number, 'pod')}:\n  was: {before}\n  is:  {after}")
        for note in (*changes.notes, *_followers(answer, changes)):
            say(console, note)


def _change_table(by_seed: Sequence[ReleaseChanges]) -> Listing:
    """The numbers of changed pods, with the first seed; with several seeds, also the range and the share over all."""
    changes, pods = by_seed[0], sum(each.pods for each in by_seed)
    title = f"{changes.before} to {changes.after}, each pod in the same cluster"
    seeds = [f"{len(by_seed)} SEEDS", "SHARE"] if len(by_seed) > 1 else []
    table = Listing((title, "PODS", *seeds), right=("PODS", *seeds))

    def add(text: str, numbers: Sequence[int], among: str = "") -> None:
        if any(numbers):
            ends = " to ".join(dict.fromkeys(f"{n:,}" for n in (min(numbers), max(numbers))))
            of_all = [ends, f"{sum(numbers) / pods:.1%}"] if seeds else []
            table.add(text, f"{numbers[0]:,}{among}", *of_all)

    kinds, causes = [each.counts() for each in by_seed], [each.causes() for each in by_seed]
    among = f" of {changes.pods:,}"
    for kind, text in KINDS.items():
        add(text, [counts[kind] for counts in kinds], among)
    for cause, _ in sum(causes, Counter[str]()).most_common():
        add(f"because of {cause}", [counts[cause] for counts in causes])
    if not any(kinds):
        add("the same decision", [each.pods for each in by_seed], among)
    return table


def _followers(answer: Comparison, changes: ReleaseChanges) -> Iterator[str]:
    """A sentence about the pods that land elsewhere in the run of the second release, though decided the same way."""
    changed = {each.pod for each in changes.changed}
    number = sum(each.pod not in changed for each in answer.differences())
    if number and len(answer.contenders) == 2:
        verb = "lands" if number == 1 else "land"
        yield (
            f"{counted(number, 'pod')} without a changed decision {verb} elsewhere in the run: "
            "after other pods, at another time, or by ties"
        )


def _metric_table(answer: Comparison, details: bool) -> tuple[Listing, int]:
    """The metrics that differ, or all with `details`; and the number of those that are left out."""
    contenders = [each.name for each in answer.contenders]
    certain = [answer.against_first(each) for each in answer.contenders]
    rows: list[list[str]] = []
    for name in _shown_names(answer):
        cells = []
        for each, differences in zip(answer.contenders, certain, strict=True):
            metric = each.metrics.get(name)
            mark = differences[name].mark if name in differences else ""
            cells.append("-" if metric is None else f"{shown_metric(metric)}{mark}")
        rows.append([titled(measure_of(name)), *cells])
    for resource in MAIN_RESOURCES:
        rows.append([f"{resource} free", *(_free(each, resource) for each in answer.contenders)])
    is_alone = len(contenders) == 1
    shown = [row for row in rows if details or is_alone or len(set(row[1:])) > 1]
    return Listing(("METRIC", *contenders), shown, right=contenders), len(rows) - len(shown)


def _shown_names(answer: Comparison) -> list[str]:
    """The metrics in the table: without amounts and times on the wall clock, and of others than `ALWAYS` not those that
    are 0."""
    metrics = [metric for each in answer.contenders for metric in each.metrics.values()]
    telling = {metric.name for metric in metrics if any(metric.values)} | ALWAYS
    names = dict.fromkeys(metric.name for metric in metrics if metric.name in telling)
    return [
        name
        for name in names
        if measure_of(name).unit is not MeasureUnit.AMOUNT and measure_of(name).is_repeatable
    ]


def _free(contender: Contender, resource: str) -> str:
    """Free amounts of nodes that are open to every pod, before and after."""
    totals = contender.totals
    both = (totals.before.of(resource).free, totals.after.of(resource).free)
    return value_change(*(amount(free, resource) for free in both))
