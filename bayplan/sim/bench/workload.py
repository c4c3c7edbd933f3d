"""BenchWorkload: a case at one size, ready to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...config.releases import choose_release
from ...errors import InputError
from ...releases.feature_gates import FeatureGates
from .cases import NODES_PARAM, PODS_PARAM, Case, find_cases, own_cases, read_cases
from .ops import SizeFile

Now: TypeAlias = Callable[[], int]
"""Returns the nanoseconds of a clock."""
ClockName: TypeAlias = Literal["wall", "cpu"]
CLOCKS: dict[ClockName, Now] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}


@dataclass(frozen=True, slots=True)
class Request:
    """A run specification: a case of a file, or a bundled one, at one of its sizes; picklable."""

    case: str
    size: str = ""
    file: str | None = None
    nodes: int | None = None
    """Number of nodes instead of the size's."""
    pods: int | None = None
    """Number of measured pods instead of the size's."""
    clock: ClockName = "wall"
    """The measuring clock: `cpu` is the processor time of the process."""
    plugins: tuple[str, ...] = ()
    """Files with plugins that run, too."""
    kubernetes_version: str = ""
    """The release whose rules are measured; "" for 1.36."""


@dataclass(frozen=True)
class BenchWorkload:
    """A case at one size."""

    case: Case
    size: SizeFile
    params: dict[str, Any]
    plugins: tuple[str, ...] = ()
    kubernetes_version: str = ""

    @property
    def name(self) -> str:
        """The name for tables: that of the case, with the size if it has several."""
        several = len(self.case.file.workloads) > 1
        return f"{self.case.name}/{self.size.name}" if several else self.case.name

    @property
    def feature_gates(self) -> FeatureGates:
        """The gates of the case and of the size, in the release; a gate that was merged into another enables that."""
        given = self.case.file.feature_gates | self.size.feature_gates
        release = choose_release(self.kubernetes_version)
        merged = {new: True for old, new in release.merged_gates.items() if given.get(old)}
        kept = {n: on for n, on in given.items() if not (on and n in release.merged_gates)}
        return FeatureGates.of(kept | merged, release)

    @property
    def threshold(self) -> float:
        """The minimum throughput in pods per second that the size requires; 0 if it requires none."""
        threshold = self.size.threshold
        return float(threshold) if isinstance(threshold, int | float) else 0.0

    def number(self, count: int, param: str, place: str) -> int:
        """The count of an op: its count, or the value of its parameter."""
        if not param:
            return count
        value = self.params.get(param[1:])
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            found = "nothing" if value is None else value
            raise InputError(
                f"{place}.countParam: expected a parameter {param} that is a number; got {found}"
            )
        return value


def find_workload(request: Request) -> BenchWorkload:
    """Load the specified workload; raises InputError if its file is invalid, or does not have it."""
    cases = own_cases() if request.file is None else read_cases(request.file)
    case, _ = next(find_cases(cases, [request.case]))
    return make_workload(case, request)


def make_workload(case: Case, request: Request) -> BenchWorkload:
    """The case at the specified size."""
    size = case.size(request.size)
    given = {NODES_PARAM: request.nodes, PODS_PARAM: request.pods}
    chosen = {name: value for name, value in given.items() if value is not None}
    version = request.kubernetes_version
    if version and not case.is_by_release:
        raise InputError(
            f"--kubernetes-version: expected workloads of pods or events; got {case.name}"
        )
    return BenchWorkload(case, size, case.params(size, chosen), request.plugins, version)
