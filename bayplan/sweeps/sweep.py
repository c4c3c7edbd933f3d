"""Sweep: do the runs of a document that are missing, and collect the results of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..sim.html_summary import ShownAnswer, chosen, make_frame
from ..sim.settings import OnProgress
from .dispatch import Crew, CrewLostError, dispatch
from .document import SweepDocument
from .expansion import expand
from .result_files import (
    JOURNAL,
    ResultTable,
    RunJournal,
    SweepEntry,
    SweepGroup,
    shown_measures,
    summarize,
)
from .sweep_run import SweepRun
from .worker import RunResult


@dataclass(slots=True, repr=False)
class SweepResults(ShownAnswer):
    """The runs of a sweep that are finished, in its order."""

    runs: Sequence[SweepRun]
    """All runs, the unfinished included."""
    entries: Sequence[SweepEntry]
    reused: int = 0
    """Number of runs that were finished before."""
    path: Path | None = None
    """The table of results."""
    measures: Sequence[str] = ()
    """The measures that a summary shows."""

    @property
    def failed(self) -> list[SweepEntry]:
        """The runs that failed."""
        return [entry for entry in self.entries if entry.result.is_failed]

    @property
    def warnings(self) -> list[str]:
        """Notes on releases that are not known."""
        return list(dict.fromkeys(e.result.warning for e in self.entries if e.result.warning))

    @property
    def release(self) -> str:
        """The kube-scheduler whose decisions these are; empty if there are several."""
        releases = {group.release for group in self.summary()}
        return releases.pop() if len(releases) == 1 else ""

    def rows(self) -> list[dict[str, Any]]:
        """One row per finished run: its name, whether it failed and why, and its measures."""
        paths = varied_paths(self.runs)
        return [entry.row(paths) for entry in self.entries]

    def summary(self) -> list[SweepGroup]:
        """The results by input and scheduler, over the seeds."""
        return summarize(self.entries)

    def shown_measures(self) -> list[str]:
        """The measures in the summary."""
        return list(self.measures) or shown_measures(self.summary())

    def summary_rows(self) -> list[dict[str, Any]]:
        """One row per input and scheduler: means over the seeds, with the margins of their 95 % intervals."""
        names, paths = self.shown_measures(), varied_paths(self.runs)
        rows = []
        for group in self.summary():
            row = {**group.columns(paths), "kubernetesVersion": group.release or None}
            row |= {"runs": len(group.by_seed), "failed": group.failed}
            for name in names:
                metric = group.metric(name)
                row[name] = None if metric is None else metric.mean
                row[f"{name} ±"] = None if metric is None else metric.margin
            rows.append(row)
        return rows

    def to_frame(self, what: str = "runs") -> Any:
        """A pandas DataFrame with a row per run, or the `summary` over the seeds."""
        return make_frame(chosen(what, {"runs": self.rows, "summary": self.summary_rows}))

    def headline(self) -> str:
        """`98 of 100 runs done, 2 failed`."""
        done = len(self.entries) - len(self.failed)
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"{done:,} of {len(self.runs):,} runs done{failed}"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The summary."""
        return self.summary_rows()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        names = self.shown_measures()
        return {
            "results": None if self.path is None else str(self.path),
            "total": len(self.runs),
            "done": len(self.entries) - len(self.failed),
            "failed": len(self.failed),
            "reused": self.reused,
            "summary": [group.to_dict(names) for group in self.summary()],
            "runs": [entry.to_dict() for entry in self.entries],
        }


class Sweep:
    """The runs of a document. With `path`, results are written to it, and runs with results in it are not repeated."""

    def __init__(
        self, document: SweepDocument, path: Path | None = None, *, retry_failed: bool = False
    ) -> None:
        self._document = document
        self._path = path
        self._table = None if path is None else ResultTable(path)
        self.runs = expand(document)
        self.journal = RunJournal(None if path is None else path.with_name(path.name + JOURNAL))
        known = self.journal.results
        self.missing = [
            run
            for run in self.runs
            if run.id not in known or (retry_failed and known[run.id].is_failed)
        ]
        """The runs that are still to be done."""

    def run(
        self,
        *,
        jobs: int | None = None,
        ray: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> SweepResults:
        """Do the missing runs: in `jobs` processes, by default one per core, or on the Ray at this address.

        When it is interrupted, the runs that are finished stay.
        """
        reused = len(self.runs) - len(self.missing)
        done = 0

        def on_result(result: RunResult) -> None:
            nonlocal done
            self.journal.add(result)
            done += 1
            if self._table is not None:
                self._table.update(self._rows)
            if on_progress is not None:
                on_progress(done, len(self.missing))

        try:
            if self.missing:
                self._dispatch(jobs, ray, on_result)
        finally:
            if self._table is not None:
                self._table.write(self._rows())
        return SweepResults(self.runs, self._entries(), reused, self._path, self._document.measures)

    def _dispatch(
        self, jobs: int | None, ray: str | None, on_result: Callable[[RunResult], None]
    ) -> None:
        if jobs is not None and jobs < 1:
            raise InputError(f"jobs: expected a number of 1 or more; got {jobs}")
        crew: Crew
        if ray is None:
            from .dispatch import ProcessCrew

            crew, size = ProcessCrew(), jobs or cores()
        else:
            from .on_ray import RayCrew

            crew = RayCrew(ray, self.missing, jobs)
            size = jobs or crew.cpus
        try:
            dispatch(self.missing, crew, min(size, len(self.missing)), on_result)
        except CrewLostError as error:
            kept = "its results are lost: without a file of results nothing is kept"
            if self._path is not None:
                kept = f"finished runs are in {self._path}: the same call again goes on from there"
            raise CrewLostError(f"{error}; {kept}") from None
        finally:
            crew.close()

    def _entries(self) -> list[SweepEntry]:
        results = self.journal.results
        return [SweepEntry(run, results[run.id]) for run in self.runs if run.id in results]

    def _rows(self) -> list[dict[str, Any]]:
        paths = varied_paths(self.runs)
        return [entry.row(paths) for entry in self._entries()]


def varied_paths(runs: Iterable[SweepRun]) -> list[str]:
    """The paths of configurations that some run varies."""
    return list(dict.fromkeys(path for run in runs for path in run.values))


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
