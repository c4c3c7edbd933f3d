"""A simulated week with an autoscaler: 200 Deployments that follow the day, some 50,000 pods a day.

`make bench-week`, or `python -m tests.planning.autoscaling.bench_week --autoscaler cluster-autoscaler`.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Iterator
from typing import Any

from bayplan.api.decode import decode_object
from bayplan.planning.autoscaling import AutoscalerOptions, autoscaled
from bayplan.sim.settings import Settings
from tests.planning.autoscaling.scaled import make_pool, make_type, make_workload

DAY_S = 86_400.0
TYPES = [
    make_type("small", 4, 0.19, zones=("a", "b", "c")),
    make_type("medium", 8, 0.38, zones=("a", "b", "c")),
    make_type("large", 16, 0.76, zones=("a", "b", "c")),
]


def make_series(name: str, low: int, high: int, phase_h: float, days: int) -> dict[str, Any]:
    """Replicas every hour, from night to noon and back."""
    points = []
    for hour in range(24):
        height = (1 - math.cos((hour - phase_h) / 24 * 2 * math.pi)) / 2
        points.append({"at": f"{hour}h", "replicas": round(low + (high - low) * height**3)})
    return {
        "target": f"deployment/{name}",
        "replicas": points,
        "every": "24h",
        "until": f"{24 * days}h",
    }


def make_week(scale: float, days: int) -> Iterator[Any]:
    """200 Deployments that follow the day, with requests of five sizes."""
    sizes = ["250m", "500m", "1", "2", "3"]
    series = []
    for i in range(200):
        high = round((60, 44, 30, 15, 8)[i % 5] * 4.3 * scale)
        yield make_workload(f"app-{i}", max(high // 10, 1), sizes[i % 5])
        series.append(make_series(f"app-{i}", max(high // 10, 1), high, (i % 8) / 4, days))
    yield make_workload("agent", 0, "100m", kind="DaemonSet")
    tree = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "series": series}
    yield decode_object(tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--autoscaler", default="karpenter")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--days", type=int, default=7)
    given = parser.parse_args()
    options = AutoscalerOptions(autoscaler=given.autoscaler)
    pool = make_pool(*TYPES, consolidate_after_s=300.0)
    started, cpu = time.perf_counter(), time.process_time()
    objects = list(make_week(given.scale, given.days))
    report = autoscaled(Settings(seed=0), objects, [pool], options).run(until_s=given.days * DAY_S)
    scaling = report.scaling
    assert scaling is not None
    peak = scaling.series()[1].peak
    print(
        f"{given.autoscaler}: {len(report.pods):,} pods, {len(report.pending):,} pending, "
        f"{peak:,.0f} nodes at the peak, "
        f"{scaling.launched:,} launched, {scaling.removed:,} removed, {len(scaling.evictions):,} evictions, "
        f"cost {scaling.cost:,.0f}"
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{time.perf_counter() - started:.1f} s, {time.process_time() - cpu:.1f} s of CPU, {memory:,.0f} MB"
    )


if __name__ == "__main__":
    main()
