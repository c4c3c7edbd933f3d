"""Runs: select workloads and sizes, and run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from ...errors import InputError
from . import load
from .cases import FIXED_SIZE, ON_REQUEST, Case, find_cases, own_cases, read_cases
from .executor import execute
from .processes import in_own_process
from .results import Run, best_of
from .workload import CLOCKS, ClockName, Request, find_workload, make_workload

GROWTH_NODES = (1000, 5000, 15_000)


@dataclass(frozen=True)
class Suite:
    """The workloads of a file, or the bundled ones."""

    cases: Sequence[Case]
    file: str | None = None

    @property
    def summaries(self) -> dict[str, str]:
        """The description of each workload."""
        known = {case.name: case.summary for case in self.cases}
        return known if self.file is not None else known | {load.NAME: load.SUMMARY}

    def requests(
        self,
        names: Sequence[str],
        nodes: Sequence[int] = (),
        pods: int | None = None,
        clock: ClockName = "wall",
        plugins: tuple[str, ...] = (),
    ) -> list[Request]:
        """The workloads to run: `names` or all, at the given numbers of nodes or at their own.

        Raises InputError for an unknown one, or an impossible size.
        """
        chosen = names or tuple(self.summaries)
        if plugins and load.NAME in names and self.file is None:
            raise InputError(f"--plugins: expected it without --workload {load.NAME}; got both")
        requests: list[Request] = []
        for name in chosen:
            if name == load.NAME and self.file is None:
                if names or not (nodes or plugins):
                    requests += self._at_sizes(Request(load.NAME, pods=pods, clock=clock), nodes)
                continue
            for case, size in find_cases(self.cases, [name], tuple(self.summaries)):
                labels = (*size.labels, *case.file.labels)
                if not names and (ON_REQUEST in labels or (nodes and FIXED_SIZE in labels)):
                    continue
                one = Request(case.name, size.name, self.file, None, pods, clock, plugins)
                asked = self._at_sizes(one, nodes)
                for request in asked:
                    make_workload(case, request)  # report errors before the first run
                requests += asked
        return requests

    @staticmethod
    def _at_sizes(request: Request, nodes: Iterable[int]) -> list[Request]:
        return [replace(request, nodes=count) for count in nodes] or [request]


def read_suite(file: Path | None) -> Suite:
    """The workloads of a file; the bundled ones without a file. Raises InputError if the file is
    invalid."""
    return Suite(own_cases()) if file is None else Suite(read_cases(file), str(file))


def run_request(request: Request, repeat: int = 1) -> list[Run]:
    """Run a workload, each time in a separate process, and return the best."""
    return [
        structs.replace(run, clock=request.clock)
        for run in best_of([_run(request) for _ in range(repeat)])
    ]


def _run(request: Request) -> list[Run]:
    if request.case == load.NAME and request.file is None:
        nodes, pods = request.nodes or load.NODES, request.pods or load.PODS
        return [load.run_load(nodes, pods, request.clock)]
    return in_own_process(_execute, request)


def _execute(request: Request) -> list[Run]:
    return execute(find_workload(request), CLOCKS[request.clock])
