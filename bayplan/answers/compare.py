"""Compare: one workload under several schedulers: metrics, and the pods placed differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec.structs import replace

from ..errors import InputError
from ..manifests.timeline import InputObject
from ..releases.release import DEFAULT_RELEASE
from ..sim import Simulation
from ..sim.html_summary import ShownAnswer, chosen, make_frame
from ..sim.measures import Metric, PairedDifference, RequestMix, measure_of, measure_run
from ..sim.measures.fragmentation import typical_request
from ..sim.measures.metric import other_filters
from ..sim.plain_part import PlainPart
from ..sim.settings import OnProgress, Settings
from ..sim.totals import TotalsChange
from .release_changes import ReleaseChanges, find_release_changes
from .stage import PlaceOf

OnRun: TypeAlias = Callable[[str, Simulation], None]
MakeSimulation: TypeAlias = Callable[[Settings, Sequence[InputObject], PlaceOf | None], Simulation]
"""Makes the simulation of a run, with an autoscaler for example."""


@dataclass(slots=True)
class Contender(PlainPart):
    """The result of one scheduler."""

    PLAIN = "name kubernetesVersion=release metrics=repeatable placements totals filters"

    name: str
    metrics: dict[str, Metric]
    placements: dict[str, str]
    """The node of each pod that was pending, with the first seed; empty for one that is still
    pending."""
    totals: TotalsChange = field(default_factory=TotalsChange)
    """The resources of all nodes before and after the run with the first seed."""
    filters: tuple[str, ...] = ()
    """The rules by which it filters nodes."""
    release: str = DEFAULT_RELEASE.patch
    """The kube-scheduler whose decisions these are."""

    def repeatable(self) -> list[Metric]:
        """The metrics that are the same in each run with the seeds."""
        return [each for each in self.metrics.values() if each.measure.is_repeatable]


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that gets different nodes under different schedulers."""

    pod: str
    nodes: tuple[str, ...]
    """Its node under each scheduler; empty where it is pending."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"pod": self.pod, "nodes": [node or None for node in self.nodes]}


@dataclass(slots=True, repr=False)
class Comparison(ShownAnswer):
    """One workload under several schedulers."""

    contenders: list[Contender]
    seeds: list[int]
    typical: dict[str, int] = field(default_factory=dict)
    """Requests of a typical pod of the workload; used to measure fragmentation."""
    changes: list[ReleaseChanges] = field(default_factory=list)
    """For schedulers of different releases: what the second and later change against the first, by seed."""
    notices: list[str] = field(default_factory=list)
    """Refused objects and remarks of the runs with the first seed, after the scheduler's name if not all have them."""

    @property
    def release(self) -> str:
        """The kube-scheduler whose decisions these are; empty if there are several."""
        releases = {each.release for each in self.contenders}
        return releases.pop() if len(releases) == 1 else ""

    def differences(self) -> list[Difference]:
        """The pods that get different nodes, of those that are in every run, with the first seed."""
        found = []
        for key in self.common_pods():
            nodes = tuple(each.placements[key] for each in self.contenders)
            if len(set(nodes)) > 1:
                found.append(Difference(key, nodes))
        return found

    def common_pods(self) -> list[str]:
        """The pods that are in every run; one that takes the place of an evicted pod has a name of its own."""
        first, *others = (each.placements for each in self.contenders)
        return [key for key in first if all(key in each for each in others)]

    def other_pod_count(self) -> int:
        """Number of pods that are in some of the runs only."""
        return len({key for each in self.contenders for key in each.placements}) - len(
            self.common_pods()
        )

    def metric_rows(self) -> list[dict[str, Any]]:
        """One row per scheduler and metric: over the seeds, and the difference to the first scheduler."""
        rows = []
        for each in self.contenders:
            differences = self.against_first(each)
            for name, m in each.metrics.items():
                difference = differences.get(name)
                rows.append(
                    {
                        "scheduler": each.name,
                        "metric": name,
                        "mean": m.mean,
                        "margin": m.margin,
                        "deviation": m.deviation,
                        "values": list(m.values),
                        "difference": None if difference is None else difference.mean,
                        "difference margin": None if difference is None else difference.margin,
                        "significant": difference is not None and difference.is_significant,
                    }
                )
        return rows

    def better(self, name: str) -> str:
        """The scheduler with the best mean of a metric; empty when they are equal, the metric has no direction, or
        it means something else under different filters.
        """
        means = {c.name: c.metrics[name].mean for c in self.contenders if name in c.metrics}
        direction = measure_of(name).direction
        if any(map(self.other_filters, self.contenders)) and not measure_of(name).is_comparable:
            return ""
        if not direction or len(set(means.values())) < 2:
            return ""
        best = max if direction > 0 else min
        return best(means, key=means.__getitem__)

    def against_first(self, contender: Contender) -> dict[str, PairedDifference]:
        """Difference of each metric of a scheduler from the first one, seed by seed."""
        first = self.contenders[0].metrics
        same = not self.other_filters(contender)
        return {
            name: PairedDifference.of(metric, first[name], same)
            for name, metric in contender.metrics.items()
            if name in first
        }

    def other_filters(self, contender: Contender) -> str:
        """The filters in which a scheduler differs from the first one, in words; empty when it does not."""
        return other_filters(contender.filters, self.contenders[0].filters)

    def headline(self) -> str:
        """`spread, pack: 3 of 40 pods land elsewhere, 5 runs each`."""
        names = ", ".join(each.name for each in self.contenders)
        pods = len(self.common_pods())
        text = f"{names}: {len(self.differences()):,} of {pods:,} pods land elsewhere"
        return f"{text}, {len(self.seeds)} runs each" if len(self.seeds) > 1 else text

    def shown_rows(self) -> list[dict[str, Any]]:
        """One row per metric: the mean of each scheduler and the better one.

        With several seeds also the margin of each mean, and the schedulers that differ significantly from the first.
        """
        rows = []
        differences = {each.name: self.against_first(each) for each in self.contenders[1:]}
        for name in dict.fromkeys(name for each in self.contenders for name in each.metrics):
            row: dict[str, Any] = {"metric": name}
            for each in self.contenders:
                metric = each.metrics.get(name)
                row[each.name] = None if metric is None else metric.mean
                if len(self.seeds) > 1:
                    row[f"{each.name} ±"] = None if metric is None else metric.margin
            row["better"] = self.better(name) or None
            if len(self.seeds) > 1:
                certain = (
                    n for n, d in differences.items() if name in d and d[name].is_significant
                )
                row["significant"] = ", ".join(certain) or None
            rows.append(row)
        return rows

    def placement_rows(self) -> list[dict[str, Any]]:
        """One row per pod that gets different nodes: its node under each scheduler."""
        names = [each.name for each in self.contenders]
        return [
            {"pod": each.pod, **dict(zip(names, (n or None for n in each.nodes), strict=True))}
            for each in self.differences()
        ]

    def to_frame(self, what: str = "metrics") -> Any:
        """A pandas DataFrame of `metrics` (by name, a column per scheduler), `runs` (a row per scheduler and metric) or
        `pods` (those that get different nodes).

        With several seeds each scheduler has a column with the margin of the 95 % confidence interval, too.
        """
        rows = {
            "metrics": self.shown_rows,
            "runs": self.metric_rows,
            "pods": self.placement_rows,
        }
        frame = make_frame(chosen(what, rows))
        return frame.set_index("metric") if what == "metrics" else frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        return {
            "seeds": list(self.seeds),
            "typicalPod": dict(self.typical),
            "contenders": [self._contender_dict(each) for each in self.contenders],
            "differences": [each.to_dict() for each in self.differences()],
            "releaseChanges": [each.to_dict() for each in self.changes],
            **({"remarks": list(self.notices)} if self.notices else {}),
        }

    def _contender_dict(self, contender: Contender) -> dict[str, Any]:
        differences = self.against_first(contender)
        found = contender.to_dict()
        for metric in found["metrics"]:
            difference = differences.get(metric["name"])
            metric["difference"] = None if difference is None else difference.to_dict()
        return found


def compare(
    objects: Sequence[InputObject],
    schedulers: Sequence[tuple[str, Settings]],
    *,
    seeds: int = 1,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
    on_run: OnRun | None = None,
    makers: Mapping[str, MakeSimulation] | None = None,
    until_s: float | None = None,
) -> Comparison:
    """Simulate `objects` under each of the named `schedulers`, once per seed, until nothing changes any more.

    `on_run` is called with the name and the simulation of the first run of each, before it begins. `makers` maps the
    names to makers of their simulations, those with an autoscaler.
    """
    if not schedulers or seeds < 1:
        raise InputError("expected at least one scheduler and one seed; got none")
    first = schedulers[0][1].seed or 0
    numbers = list(range(first, first + seeds))
    typical: dict[str, int] | None = None
    mix: RequestMix | None = None
    contenders, done = [], 0
    names_of: dict[str, list[str]] = {}
    for name, settings in schedulers:
        make = (makers or {}).get(name, Settings.simulation)
        runs: list[Mapping[str, float]] = []
        placements: dict[str, str] = {}
        totals = TotalsChange()
        filters: tuple[str, ...] = ()
        for seed in numbers:
            simulation = make(replace(settings, seed=seed), objects, place_of)
            if on_run is not None and not runs:
                on_run(name, simulation)
            report = simulation.run(until_s=until_s)
            if mix is None:
                mix = RequestMix.of(result.pod for result in report.pods)
                typical = typical_request(result.pod for result in report.pods)
            if not runs:
                placements = {
                    result.pod.key: result.attempt.node_name if result.is_placed else ""
                    for result in report.pods
                }
                totals, filters = report.totals, report.filters
                for notice in report.notices:
                    names_of.setdefault(notice, []).append(name)
            scaled = {} if report.scaling is None else report.scaling.measures()
            runs.append(measure_run(report, mix, typical) | scaled)
            done += 1
            if on_progress is not None:
                on_progress(done, len(schedulers) * seeds)
        shared = [key for key in runs[0] if all(key in run for run in runs)]
        metrics = {key: Metric(key, tuple(run[key] for run in runs)) for key in shared}
        release = settings.release.patch
        contenders.append(Contender(name, metrics, placements, totals, filters, release))
    changes = [] if makers else _release_changes(objects, schedulers, numbers, place_of, until_s)
    notices = [
        text if len(names) == len(schedulers) else f"{', '.join(names)}: {text}"
        for text, names in names_of.items()
    ]
    return Comparison(contenders, numbers, typical or {}, changes, notices)


def _release_changes(
    objects: Sequence[InputObject],
    schedulers: Sequence[tuple[str, Settings]],
    seeds: Sequence[int],
    place_of: PlaceOf | None,
    until_s: float | None,
) -> list[ReleaseChanges]:
    """Changes by each scheduler of another release against the first, seed by seed."""
    (_, first), *others = schedulers
    return [
        find_release_changes(objects, replace(first, seed=seed), other, place_of, until_s)
        for _, other in others
        if other.release is not first.release
        for seed in seeds
    ]
