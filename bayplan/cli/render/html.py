"""Html: the page about a run, on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..options.output_files import WholeFile, whole_target

if TYPE_CHECKING:
    from ...answers.compare import Comparison
    from ...manifests.measured_use import MeasuredUse
    from ...sim import Simulation, SimulationReport
    from ...sim.settings import Settings
    from ...trials import TrialCluster
    from ...web.history import History


class NoPage:
    """No page is wanted: nothing is followed and nothing written."""

    def follow(self, simulation: Simulation, settings: Settings) -> None:
        """The run, of a scheduler with these settings, is about to begin."""

    def write(
        self, report: SimulationReport, sources: Sequence[str], use: MeasuredUse | None = None
    ) -> None:
        """The run has ended; `use` is the measured use of its pods."""


class PageWriter(NoPage):
    """Follows a run, and writes its page to `file`."""

    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def follow(self, simulation: Simulation, settings: Settings) -> None:
        from ...web.history import History

        self._history = History(simulation.clock)
        self._history.scheduler = simulation.scheduler
        simulation.watch(self._history)
        self._simulation, self._settings = simulation, settings

    def write(
        self, report: SimulationReport, sources: Sequence[str], use: MeasuredUse | None = None
    ) -> None:
        from ...web.group_rows import PageGroup
        from ...web.page_file import write_report

        for result in report.pods:
            self._history.note(result.attempt)
        write_report(
            self._file,
            self._history,
            sources=sources,
            preempted=report.preempted,
            groups=[
                PageGroup(
                    group.namespace,
                    group.name,
                    group.has_started,
                    group.place,
                    group.cause,
                    group.uids,
                )
                for group in report.groups
            ],
            make_view=self._view,
            series={
                one.name: list(zip(one.times_s, one.values, strict=True))
                for one in (report.scaling.series() if report.scaling is not None else ())
            },
            use={} if use is None else use.by_pod(),
        )
        self._file.keep()  # independent of later output

    def _view(self) -> TrialCluster:
        """The cluster as it is at the end of the run, for questions."""
        from ...trials import TrialCluster

        cluster = self._simulation.cluster
        objects = [obj for kind in cluster.kinds() for obj in cluster.list(kind)]
        return TrialCluster(objects, self._settings, self._simulation.clock)


class ComparisonPage:
    """Follows the runs of a comparison, and writes their page to `file`; does nothing without one."""

    def __init__(self, file: WholeFile | None) -> None:
        self._file = file
        self._runs: list[tuple[str, History]] = []

    def follow(self, name: str, simulation: Simulation) -> None:
        """A run is about to begin."""
        if self._file is None:
            return
        from ...web.history import History

        history = History(simulation.clock)
        history.scheduler = simulation.scheduler
        simulation.watch(history)
        self._runs.append((name, history))

    def write(self, answer: Comparison, sources: Sequence[str]) -> None:
        """All runs have ended."""
        if self._file is None:
            return
        from ...web.page_file import write_comparison

        write_comparison(self._file, self._runs, answer.wide_rows(), sources)
        self._file.keep()


@contextmanager
def comparison_to(path: Path | None) -> Iterator[ComparisonPage]:
    """A page that follows the runs of a comparison; InputError, at once, when the file cannot be written."""
    if path is None:
        yield ComparisonPage(None)
        return
    with whole_target("--html", path) as file:
        yield ComparisonPage(file)


@contextmanager
def html_to(path: Path | None) -> Iterator[NoPage]:
    """A page that follows a run and is written to the file; InputError, at once, when it cannot be written.

    A run that fails leaves the file that was there.
    """
    if path is None:
        yield NoPage()
        return
    with whole_target("--html", path) as file:
        yield PageWriter(file)
