"""A simulated week with an autoscaler: 200 Deployments that follow the day.

With pods that consolidation evicts and that come back, and daemons, Karpenter's week has some 200,000 pods, and 2,000
nodes at the peak.

`make bench-week`, or `python -m benchmarks.autoscaling_week --autoscaler cluster-autoscaler`; `--days` and
`--scale` make it shorter and smaller. `tests/autoscaling/test_week.py` holds the result of a small one.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import AutoscalerOptions, autoscaled
from bayplan.cluster.memory.absent_owners import is_daemon
from bayplan.planning import NodePool
from bayplan.sim import Simulation, SimulationReport
from bayplan.sim.settings import Settings
from tests.autoscaling.scaled import make_pool, make_type, make_workload

DAY_S = 86_400.0
ZONES = ("a", "b", "c")
TYPES = [
    make_type("large", 2, 0.1, zones=ZONES),
    make_type("xlarge", 4, 0.2, zones=ZONES),
    make_type("2xlarge", 8, 0.4, zones=ZONES),
]
REPLICAS = {"250m": 158, "500m": 126, "1": 95, "2": 47, "3": 26}
"""Of Deployments at the peak, by the cpu of a pod."""


def make_series(name: str, low: int, high: int, phase_h: float, days: int) -> dict[str, Any]:
    """Replicas every hour, from night to noon and back, with a load that is up to 7 % above or below."""
    points, draws = [], random.Random(name)
    for hour in range(24):
        height = (1 - math.cos((hour - phase_h) / 24 * 2 * math.pi)) / 2
        load = (low + (high - low) * height**3) * draws.uniform(0.93, 1.07)
        points.append({"at": f"{hour}h", "replicas": max(round(load), 1)})
    return {
        "target": f"deployment/{name}",
        "replicas": points,
        "every": "24h",
        "until": f"{24 * days}h",
    }


def make_week(scale: float, days: int, deployments: int = 200) -> Iterator[Any]:
    """Deployments that follow the day, with requests of five sizes."""
    series = []
    for i in range(deployments):
        cpu, replicas = list(REPLICAS.items())[i % len(REPLICAS)]
        high = max(round(replicas * scale), 1)
        yield make_workload(f"app-{i}", max(high // 10, 1), cpu)
        series.append(make_series(f"app-{i}", max(high // 10, 1), high, (i % 8) / 4, days))
    yield make_workload("agent", 0, "100m", kind="DaemonSet")
    tree = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "series": series}
    yield decode_object(tree)


def make_fleet(**more: Any) -> NodePool:
    """Three types in three zones, which consolidate five minutes after the last change of a node."""
    return make_pool(*TYPES, consolidate_after_s=300.0, **more)


def make_simulation(autoscaler: str, scale: float, days: int) -> Simulation:
    options = AutoscalerOptions(autoscaler=autoscaler)
    return autoscaled(Settings(seed=0), list(make_week(scale, days)), [make_fleet()], options)


class ProgressLine:
    """Shows how far a run is, on one line of stderr."""

    def __init__(self, simulation: Simulation, days: int) -> None:
        self._simulation, self._days = simulation, days
        self._shown_h = -1

    def show(self, tried: int, seen: int) -> None:
        hour = int(self._simulation.clock.monotonic() / 3600)
        if hour == self._shown_h:
            return
        self._shown_h = hour
        nodes = self._simulation.cluster.count("Node")
        print(
            f"\rday {hour / 24:.1f} of {self._days}: {seen:,} pods, {nodes:,} nodes, "
            f"{time.process_time():.0f} s of CPU  ",
            end="" if sys.stderr.isatty() else "\n",
            file=sys.stderr,
            flush=True,
        )


def describe(report: SimulationReport) -> str:
    """The size of the run and its result."""
    scaling = report.scaling
    assert scaling is not None
    daemons = sum(is_daemon(one.pod) for one in report.pods)
    return (
        f"{len(report.pods) - daemons:,} pods and {daemons:,} daemons, {len(report.pending):,} pending, "
        f"{scaling.series()[1].peak:,.0f} nodes at the peak, {scaling.launched:,} launched, "
        f"{scaling.removed:,} removed, {len(scaling.evictions):,} evictions, cost {scaling.cost:,.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--autoscaler", default="karpenter")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--days", type=int, default=7)
    given = parser.parse_args()
    started, cpu = time.perf_counter(), time.process_time()
    simulation = make_simulation(given.autoscaler, given.scale, given.days)
    line = ProgressLine(simulation, given.days)
    report = simulation.run(line.show, until_s=given.days * DAY_S)
    spent = time.perf_counter() - started, time.process_time() - cpu
    print(f"{given.autoscaler}, {given.days} days: {describe(report)}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{spent[0]:.1f} s, {spent[1]:.1f} s of CPU, {memory:,.0f} MB")
    began = time.process_time()
    size = len(json.dumps(report.to_dict()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"as JSON: {size / 1e6:,.0f} MB in {time.process_time() - began:.1f} s; {memory:,.0f} MB")


if __name__ == "__main__":
    main()
