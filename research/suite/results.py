"""Results of the suite: entries per run, as JSON with hashes, and the table of rows and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from description import Suite

from bayplan import __version__
from bayplan.errors import BayplanError
from bayplan.sim.measures import MeasureUnit, Metric, PairedDifference, measure_of
from bayplan.sim.measures.metric import other_filters

GPU = "bayplan.dev/gpu-milli"
KEPT = (
    *("placed", "pending", "preempted", "meanLatency", "p95Latency", "p99Latency"),
    *("meanSlowdown", "p95Slowdown", "meanJobCompletion", "p95JobCompletion"),
    *("namespaceFairness", "slowdownFairness", "podGroupsStarted", "podGroupMeanLatency"),
    *("cpuUtilisation", "cpuMeanUtilisation", "cpuFragmentation", "memoryUtilisation"),
    *(f"{GPU}{end}" for end in ("Utilisation", "MeanUtilisation", "AtFullDemand", "Delivered")),
    *(f"{GPU}{end}" for end in ("Overpromised", "OverpromisedNodes", "Fragmentation")),
    *("cost", "peakCostPerHour", "nodesLaunched", "scalingEvictions", "unplaceablePods"),
)
"""The measures in results.json, where a run has them."""
DIGITS = 9


class RunEntry(msgspec.Struct, frozen=True):
    """The measures of one run."""

    input: str
    row: str
    seed: int
    run: str
    """A hash of all that the result depends on."""
    measures: dict[str, float]
    filters: tuple[str, ...] = ()


class SuiteResults(msgspec.Struct, frozen=True):
    """The runs of a version of the suite."""

    suite: int
    bayplan: str
    files: dict[str, str]
    entries: list[RunEntry]

    @staticmethod
    def of(suite: Suite, entries: Iterable[RunEntry]) -> SuiteResults:
        """The results of this version of Bayplan."""
        return SuiteResults(suite.version, __version__, dict(suite.tree["files"]), list(entries))

    @staticmethod
    def read(file: Path) -> SuiteResults:
        """Results that were written before."""
        return msgspec.json.decode(file.read_bytes(), type=SuiteResults)

    def write(self, file: Path) -> None:
        """Write the results, one run per line."""
        head = {"suite": self.suite, "bayplan": self.bayplan, "files": self.files}
        lines = ",\n".join(msgspec.json.encode(each).decode() for each in self.entries)
        start = msgspec.json.encode(head).decode().removesuffix("}")
        file.write_text(f'{start},\n"entries":[\n{lines}\n]}}\n', encoding="utf-8")

    def with_entries(self, others: Iterable[RunEntry]) -> SuiteResults:
        """The same with further rows."""
        return msgspec.structs.replace(self, entries=[*self.entries, *others])

    def differences(self, other: SuiteResults) -> list[str]:
        """The runs of both with other measures, as texts."""
        known = {(each.input, each.row, each.seed): each for each in other.entries}
        found = []
        for each in self.entries:
            before = known.get((each.input, each.row, each.seed))
            if before is not None and before.measures != each.measures:
                found.append(f"{each.input}, {each.row}, seed {each.seed}: other measures")
        return found


def kept_measures(found: Mapping[str, float]) -> dict[str, float]:
    """The measures that results have, rounded."""
    return {name: round(found[name], DIGITS) for name in KEPT if name in found}


def table_lines(results: SuiteResults, columns: Mapping[str, str]) -> Iterator[str]:
    """The table in Markdown: a line per row, a column per input with its headline measure."""
    by_cell: dict[tuple[str, str], dict[int, RunEntry]] = {}
    for each in results.entries:
        by_cell.setdefault((each.row, each.input), {})[each.seed] = each
    rows = list(dict.fromkeys(each.row for each in results.entries))
    used = [name for name in columns if any((row, name) in by_cell for row in rows)]
    titles = [f"{name}: {heading(columns[name])}" for name in used]
    yield f"| | {' | '.join(titles)} |"
    yield f"|---|{'---|' * len(used)}"
    for row in rows:
        cells = [
            cell(columns[name], by_cell.get((row, name), {}), by_cell.get((rows[0], name), {}))
            for name in used
        ]
        yield f"| {row} | {' | '.join(cells)} |"


def heading(name: str) -> str:
    """A measure as the head of a column."""
    measure = measure_of(name)
    arrow = {1: " ↑", -1: " ↓"}.get(measure.direction, "")
    unit = {MeasureUnit.SHARE: ", %", MeasureUnit.SECONDS: ", min"}.get(measure.unit, "")
    return f"{measure.title.replace(GPU, 'GPUs')}{unit}{arrow}"


def cell(name: str, mine: Mapping[int, RunEntry], first: Mapping[int, RunEntry]) -> str:
    """Mean and 95 % interval over the seeds, with a mark where it differs from the first row."""
    values = [each.measures[name] for each in mine.values() if name in each.measures]
    if not values:
        return ""
    metric = Metric(name, tuple(values))
    shown = number(name, metric.mean)
    if metric.margin is not None:
        shown = f"{shown} ±{number(name, metric.margin)}"
    seeds = [seed for seed in mine if seed in first and name in first[seed].measures]
    if not seeds or mine is first:
        return shown
    pair = [Metric(name, tuple(each[s].measures[name] for s in seeds)) for each in (mine, first)]
    one, other = next(iter(mine.values())), next(iter(first.values()))
    same = not other_filters(one.filters, other.filters)
    return shown + PairedDifference.of(pair[0], pair[1], same).mark


def number(name: str, value: float) -> str:
    """A value in the unit of the column."""
    match measure_of(name).unit:
        case MeasureUnit.SHARE:
            return f"{100 * value:.2f}"
        case MeasureUnit.SECONDS:
            return f"{value / 60:.1f}"
        case MeasureUnit.COUNT:
            return f"{value:.1f}"
    return f"{value:.2f}"


def entries_of(sweep_results: Any) -> list[RunEntry]:
    """The finished runs of a sweep; raises BayplanError when one failed."""
    for entry in sweep_results.failed:
        raise BayplanError(f"{entry.run.label}: {entry.result.error}")
    return [
        RunEntry(
            entry.run.input,
            entry.run.configuration,
            entry.run.seed,
            entry.run.id,
            kept_measures(entry.result.measures),
            entry.result.filters,
        )
        for entry in sweep_results.entries
    ]


def in_order(
    entries: Iterable[RunEntry], rows: Sequence[str], columns: Iterable[str]
) -> list[RunEntry]:
    """The entries by row, input and seed."""
    inputs = list(columns)
    return sorted(
        entries, key=lambda each: (rows.index(each.row), inputs.index(each.input), each.seed)
    )
