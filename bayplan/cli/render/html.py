"""Html: the page about a run, or about several, on request."""

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


class RunPage:
    """Follows runs, and writes their page to `file`; does nothing without one."""

    def __init__(self, file: WholeFile | None) -> None:
        self._file = file
        self._runs: list[tuple[str, History]] = []

    def follow(self, name: str, simulation: Simulation) -> None:
        """Prepare for a run that begins."""
        if self._file is None:
            return
        from ...web.history import History

        history = History(simulation.clock)
        history.scheduler = simulation.scheduler
        simulation.watch(history)
        self._runs.append((name, history))

    def write(
        self,
        simulation: Simulation,
        settings: Settings,
        report: SimulationReport,
        sources: Sequence[str],
        use: MeasuredUse | None = None,
    ) -> None:
        """Write the page of the run that has ended; `use` is the measured use of its pods."""
        if self._file is None:
            return
        from ...trials import TrialCluster
        from ...web.page_file import write_report

        def view() -> TrialCluster:
            cluster = simulation.cluster
            return TrialCluster(cluster.objects(), settings, simulation.clock)

        [(_, history)] = self._runs
        for result in report.pods:
            history.note(result.attempt)
        write_report(
            self._file,
            history,
            sources=sources,
            preempted=report.preempted,
            groups=report.groups,
            make_view=view,
            series={
                one.name: list(zip(one.times_s, one.values, strict=True))
                for one in (report.scaling.series() if report.scaling is not None else ())
            },
            use={} if use is None else use.by_pod(),
        )
        self._file.keep()  # keep the file whatever later output fails

    def write_comparison(self, answer: Comparison, sources: Sequence[str]) -> None:
        """All runs have ended."""
        if self._file is not None:
            from ...web.page_file import write_comparison

            write_comparison(self._file, self._runs, answer.shown_rows(), sources)
            self._file.keep()


@contextmanager
def html_to(path: Path | None) -> Iterator[RunPage]:
    """A page that is written to the file; InputError, at once, when it cannot be written.

    A run that fails leaves the file that was there.
    """
    if path is None:
        yield RunPage(None)
        return
    with whole_target("--html", path) as file:
        yield RunPage(file)
