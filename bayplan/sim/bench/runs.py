"""Runs: select workloads and sizes, and run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from ...errors import ConfigError, InputError
from . import dump_load
from .cases import FIXED_SIZE, ON_REQUEST, SEVERAL_SIZES, Case, find_cases, own_cases, read_cases
from .measurement import in_own_process
from .measurements import Run, best_of
from .op_executor import execute
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
        return known if self.file is not None else known | {dump_load.NAME: dump_load.SUMMARY}

    def requests(
        self,
        names: Sequence[str],
        nodes: Sequence[int] = (),
        pods: int | None = None,
        clock: ClockName = "wall",
        plugins: tuple[str, ...] = (),
        kubernetes_version: str = "",
    ) -> list[Request]:
        """The workloads to run: `names` or all, at the given numbers of nodes or at their own.

        Raises InputError for an unknown one, or an impossible size.
        """
        chosen = names or tuple(self.summaries)
        given = "--plugins" if plugins else "--kubernetes-version" if kubernetes_version else ""
        if given and dump_load.NAME in names and self.file is None:
            raise InputError(f"{given}: expected it without --workload {dump_load.NAME}; got both")
        requests: list[Request] = []
        for name in chosen:
            if name == dump_load.NAME and self.file is None:
                if names or not (nodes or given):
                    requests += self._at_sizes(
                        Request(dump_load.NAME, pods=pods, clock=clock), nodes
                    )
                continue
            for case, size in find_cases(self.cases, [name], tuple(self.summaries)):
                labels = (*size.labels, *case.file.labels)
                left_out = FIXED_SIZE if nodes else SEVERAL_SIZES
                if not names and (ON_REQUEST in labels or left_out in labels):
                    continue
                one = Request(
                    case.name, size.name, self.file, None, pods, clock, plugins, kubernetes_version
                )
                if kubernetes_version and not names and not _is_in_release(case, one):
                    continue
                asked = self._at_sizes(one, nodes)
                for request in asked:
                    make_workload(case, request)  # report errors before the first run
                requests += asked
        return requests

    @staticmethod
    def _at_sizes(request: Request, nodes: Iterable[int]) -> list[Request]:
        return [replace(request, nodes=count) for count in nodes] or [request]


def _is_in_release(case: Case, request: Request) -> bool:
    """Whether the workload can be run with the rules of the release: it has the feature gates, too."""
    if not case.is_by_release:
        return False
    try:
        make_workload(case, request).feature_gates  # noqa: B018
    except ConfigError:
        return False
    return True


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
    if request.case == dump_load.NAME and request.file is None:
        nodes, pods = request.nodes or dump_load.NODES, request.pods or dump_load.PODS
        return [dump_load.run_load(nodes, pods, request.clock)]
    return in_own_process(_execute, request)


def _execute(request: Request) -> list[Run]:
    return execute(find_workload(request), CLOCKS[request.clock])
