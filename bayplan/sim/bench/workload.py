"""Workload: a case at one size, ready to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...errors import InputError
from .cases import NODES_PARAM, PODS_PARAM, Case, find_cases, own_cases, read_cases
from .ops import SizeFile

Now: TypeAlias = Callable[[], int]
"""Gives the nanoseconds on a clock."""
ClockName: TypeAlias = Literal["wall", "cpu"]
CLOCKS: dict[ClockName, Now] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}


@dataclass(frozen=True, slots=True)
class Request:
    """What to run: a case of a file, or of the package, at one of its sizes; it can be sent to another process."""

    case: str
    size: str = ""
    file: str | None = None
    nodes: int | None = None
    """So many nodes instead of those of the size."""
    pods: int | None = None
    """So many measured pods instead of those of the size."""
    clock: ClockName = "wall"
    """By which clock to measure: `cpu` is the time the process had a processor."""


@dataclass(frozen=True)
class Workload:
    """A case at one size."""

    case: Case
    size: SizeFile
    params: dict[str, Any]

    @property
    def name(self) -> str:
        """The name for tables: that of the case, with the size if it has several."""
        several = len(self.case.file.workloads) > 1
        return f"{self.case.name}/{self.size.name}" if several else self.case.name

    @property
    def feature_gates(self) -> dict[str, bool]:
        """Those of the case and of the size."""
        return self.case.file.feature_gates | self.size.feature_gates

    @property
    def threshold(self) -> float:
        """How many pods a second the size asks for at least; 0: it does not say."""
        threshold = self.size.threshold
        return float(threshold) if isinstance(threshold, int | float) else 0.0

    def number(self, count: int, param: str, place: str) -> int:
        """How many an op wants: its count, or the value of its parameter."""
        if not param:
            return count
        value = self.params.get(param[1:])
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            found = "nothing" if value is None else value
            raise InputError(
                f"{place}.countParam: expected a parameter {param} that is a number; got {found}"
            )
        return value


def find_workload(request: Request) -> Workload:
    """The workload that is asked for; InputError if its file is wrong, or does not have it."""
    cases = own_cases() if request.file is None else read_cases(request.file)
    case, _ = next(find_cases(cases, [request.case]))
    return make_workload(case, request)


def make_workload(case: Case, request: Request) -> Workload:
    """The case at the size that is asked for."""
    size = case.size(request.size)
    given = {NODES_PARAM: request.nodes, PODS_PARAM: request.pods}
    chosen = {name: value for name, value in given.items() if value is not None}
    return Workload(case, size, case.params(size, chosen))
