"""Dispatch: workers are replaced, runs are repeated, and a worker keeps to its input."""

from collections import deque

import pytest

from bayplan.sweeps.dispatch import TRIES, WorkerReport, dispatch
from bayplan.sweeps.sweep_run import RunInput, SweepRun
from bayplan.sweeps.worker import RunResult


def make_run(name: str, file: str = "a.yaml") -> SweepRun:
    return SweepRun(id=name, input=file, configuration="", what=RunInput(files=(file,)))


class FakeCrew:
    """Workers that finish in the order in which they got their runs, and die on runs whose names are in `deadly`."""

    def __init__(self, deadly: dict[str, int] | None = None) -> None:
        self.deadly = deadly or {}
        self.started = 0
        self.given: list[tuple[int, str]] = []
        self.read: dict[int, list[str]] = {}
        self.reports: deque[WorkerReport] = deque()

    def start(self) -> int:
        self.started += 1
        return self.started

    def give(self, worker: int, run: SweepRun) -> None:
        self.given.append((worker, run.id))
        inputs = self.read.setdefault(worker, [])
        if inputs[-1:] != [run.input]:
            inputs.append(run.input)
        if self.deadly.get(run.id, 0):
            self.deadly[run.id] -= 1
            self.reports.append(WorkerReport(worker, None, "killed"))
        else:
            self.reports.append(WorkerReport(worker, RunResult(id=run.id)))

    def next_report(self) -> WorkerReport:
        return self.reports.popleft()

    def close(self) -> None:
        pass


def results(crew: FakeCrew, runs: list[SweepRun], size: int) -> dict[str, str]:
    found: list[RunResult] = []
    dispatch(runs, crew, size, found.append)
    assert len(found) == len({result.id for result in found})
    return {result.id: result.error for result in found}


def test_all_runs_are_done_by_as_many_workers_as_are_needed() -> None:
    crew = FakeCrew()

    found = results(crew, [make_run(f"r{i}") for i in range(5)], size=2)

    assert found == {f"r{i}": "" for i in range(5)}
    assert crew.started == 2


def test_a_run_of_a_worker_that_died_is_done_by_another() -> None:
    crew = FakeCrew({"r1": 1})

    found = results(crew, [make_run(f"r{i}") for i in range(4)], size=2)

    assert set(found.values()) == {""}
    workers = [worker for worker, run in crew.given if run == "r1"]
    assert len(workers) == len(set(workers)) == 2


def test_a_run_that_kills_its_workers_has_failed() -> None:
    crew = FakeCrew({"r1": 99})

    found = results(crew, [make_run(f"r{i}") for i in range(4)], size=2)

    assert [name for name, error in found.items() if error] == ["r1"]
    assert f"it ended {TRIES} times, killed" in found["r1"]
    assert [run for _, run in crew.given].count("r1") == TRIES


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_worker_reads_an_input_once(size: int) -> None:
    files = ["a", "b", "c"]
    runs = [make_run(f"{file}{i}", file) for i in range(6) for file in files]
    crew = FakeCrew()

    assert len(results(crew, runs, size)) == 18

    for inputs in crew.read.values():
        assert len(inputs) == len(set(inputs))


def test_a_worker_that_ended_while_it_was_idle_gets_no_run() -> None:
    crew = FakeCrew({"r1": 1})
    give_first = crew.give

    def give(worker: int, run: SweepRun) -> None:
        give_first(worker, run)
        if run.id == "r0":
            crew.reports.append(WorkerReport(worker, None, "killed"))

    crew.give = give  # type: ignore[method-assign]

    found = results(crew, [make_run("r0"), make_run("r1")], size=2)

    assert found == {"r0": "", "r1": ""}
    assert crew.given == [(1, "r0"), (2, "r1"), (3, "r1")]
