"""Summary: the results of a sweep by input and scheduler, over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..sim.measures import Metric, PairedDifference
from .result_files import SweepEntry
from .sweep_run import SweepRun

ALWAYS = ("placed", "pending", "p95Latency")
PER_RESOURCE = ("Utilisation", "Fragmentation")
NOT_SHARED = ("run", "seed")
"""Columns in which the runs of a group differ."""
NOT_SHOWN = ("MeanUtilisation", "PeakUtilisation")


@dataclass(slots=True)
class SweepGroup:
    """The runs of one input under one scheduler, which differ in their seeds."""

    run: SweepRun
    """One of them."""
    failed: int = 0
    by_seed: dict[int, dict[str, float]] = field(default_factory=dict)
    """The measures of each run that did not fail."""

    def columns(self, paths: Iterable[str]) -> dict[str, Any]:
        """What names them."""
        named = self.run.columns(paths)
        return {name: value for name, value in named.items() if name not in NOT_SHARED}

    def metric(self, name: str, seeds: Iterable[int] | None = None) -> Metric | None:
        """A measure over the seeds; None when not every run has it."""
        chosen = list(self.by_seed if seeds is None else seeds)
        if not chosen or not all(name in self.by_seed[seed] for seed in chosen):
            return None
        return Metric(name, tuple(self.by_seed[seed][name] for seed in chosen))

    def difference(self, name: str, first: SweepGroup) -> PairedDifference | None:
        """What these runs have more than those of `first` with the same seeds; None when there are none."""
        seeds = [seed for seed in self.by_seed if seed in first.by_seed]
        mine, other = self.metric(name, seeds), first.metric(name, seeds)
        return None if mine is None or other is None else PairedDifference.of(mine, other)


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One group, with the group of the first scheduler on the same input."""

    group: SweepGroup
    first: SweepGroup

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain data: the group and these measures."""
        metrics = []
        for name in names:
            metric = self.group.metric(name)
            if metric is not None:
                difference = self.group.difference(name, self.first)
                shown = None if difference is None else difference.to_dict()
                metrics.append({**metric.to_dict(), "difference": shown})
        group = self.group
        named = {k: v for k, v in group.run.to_dict().items() if k not in NOT_SHARED}
        runs = len(group.by_seed)
        return {**named, "runs": runs, "failed": group.failed, "metrics": metrics}


def summarize(entries: Iterable[SweepEntry]) -> list[SummaryLine]:
    """The groups in the order of their first runs."""
    groups: dict[str, SweepGroup] = {}
    firsts: dict[str, SweepGroup] = {}
    lines: dict[str, SummaryLine] = {}
    for run, result in entries:
        key = repr((run.input_group, run.configuration, run.values))
        if key not in groups:
            groups[key] = SweepGroup(run)
            first = firsts.setdefault(run.input_group, groups[key])
            lines[key] = SummaryLine(groups[key], first)
        if result.is_failed:
            groups[key].failed += 1
        else:
            groups[key].by_seed[run.seed] = result.measures
    return list(lines.values())


def shown_measures(lines: Iterable[SummaryLine]) -> list[str]:
    """The measures that are shown if none are named: placed and pending pods, use and fragmentation per resource."""
    return list(dict.fromkeys(_shown(lines)))


def _shown(lines: Iterable[SummaryLine]) -> Iterator[str]:
    every = dict.fromkeys(name for line in lines for m in line.group.by_seed.values() for name in m)
    yield from (name for name in ALWAYS if name in every)
    for end in PER_RESOURCE:
        yield from (n for n in every if n.endswith(end) and not n.endswith(NOT_SHOWN))
