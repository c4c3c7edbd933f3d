"""Plan seeds: `make bench-plan`, which plans ten seeds of each workload and prints the means."""

from __future__ import annotations

import argparse
from statistics import mean

from bayplan.sim.bench.end_to_end import run_plan
from bayplan.sim.bench.ops import PLAN_WORKLOADS, PlanNodes


def main() -> None:
    """Print a line per workload, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--unseen", type=int, default=8, help="seeds of ties that the plan was not verified with"
    )
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--deployments", type=int, default=200)
    parser.add_argument("--time-limit", default="60s")
    parser.add_argument(
        "--plain",
        action="store_true",
        help="only kube-scheduler's own plugins, no NodeResourcesAlignment",
    )
    parser.add_argument("--workload", choices=PLAN_WORKLOADS, action="append")
    given = parser.parse_args()
    print(
        "WORKLOAD  SEED    PODS   NODES     PRICE  FIRST FIT  SAVED    GAP  FIRST PLAN   CPU S  HELD"
    )
    gaps: list[float] = []
    for name in given.workload or PLAN_WORKLOADS:
        runs = []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            asked = PlanNodes(
                name,  # type: ignore[arg-type]
                seed,
                given.deployments,
                is_aligned=not given.plain,
                time_limit=given.time_limit,
            )
            run = run_plan(name, asked, given.pods, given.unseen)
            runs.append(run)
            print(
                f"{name:8} {seed:5} {run.pods:7,} {run.nodes:7,} {run.price:9.2f} {run.first_fit_price:10.2f}"
                f" {run.saved:6.1%} {run.gap:6.1%} {run.first_plan_s:9.1f} s {run.cpu_s:7.1f}"
                f" {run.held:2} of {given.unseen}",
                flush=True,
            )
        saved, gap = mean(run.saved for run in runs), mean(run.gap for run in runs)
        print(f"{name}: in the mean {saved:.1%} below first fit, {gap:.1%} above the bound")
        gaps += [run.gap for run in runs]
    print(f"all {len(gaps)}: in the mean {mean(gaps):.1%} above the bound")


if __name__ == "__main__":
    main()
