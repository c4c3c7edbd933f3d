"""Run the default experiment of "Beware of Fragmentation" (ATC'23) and compare with the published figures.

Example: python research/fgd/run.py ../shared/traces/openb --seeds 10 --to results.csv --picture allocation.svg
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parent))

import experiment

from bayplan.errors import BayplanError
from bayplan.sim.traces import find_openb

PUBLISHED = {
    "FGD": 95.23,
    "BestFit": 92.86,
    "Packing": 91.78,
    "Clustering": 91.65,
    "DotProd": 90.62,
    "Random": 86.30,
}
"""Percent of the GPUs allocated when the demand that arrived is 100 %, mean of ten seeds, in the paper's artifact."""
TRACES = "BAYPLAN_OPENB"
Course = dict[int, float]
Results = dict[str, dict[int, Course]]


def main() -> int:
    options = read_options()
    try:
        find_openb(options.folder)
    except BayplanError as error:
        print(f"{error}\n{WHERE}", file=sys.stderr)
        return 2
    results = collect(options)
    print_table(results)
    if options.to:
        write_csv(options.to, results)
    if options.picture:
        draw(options.picture, results)
    return 0


WHERE = f"""The trace is cluster-trace-gpu-v2023 of github.com/alibaba/clusterdata, for research: name the folder with
openb_node_list_gpu_node.csv and openb_pod_list_default.csv, as argument or in {TRACES}."""


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0],
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ", ".join(experiment.POLICIES)
    given = os.environ.get(TRACES, "../shared/traces/openb")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(given), help=WHERE)
    parser.add_argument("--policy", action="append", choices=experiment.POLICIES, help=known)
    parser.add_argument("--seeds", type=int, default=10, help="how many (10)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--to", type=Path, help="a CSV file: policy, seed, percent arrived, percent allocated"
    )
    parser.add_argument(
        "--picture", type=Path, help="a picture (SVG, PNG or PDF); needs matplotlib"
    )
    options = parser.parse_args()
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs: expected a number of 1 or more")
    return options


def collect(options: argparse.Namespace) -> Results:
    """Run all policies with all seeds, in processes."""
    policies = options.policy or list(experiment.POLICIES)
    seeds = range(experiment.FIRST_SEED, experiment.FIRST_SEED + options.seeds)
    runs = list(product([options.folder], policies, seeds))
    results: Results = {policy: {} for policy in policies}
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, (policy, seed, course) in enumerate(pool.map(run_in_worker, runs), start=1):
            results[policy][seed] = course
            text = f"{done} of {len(runs)}: {policy}, seed {seed}: {course[100]:.2f} %"
            print(text, file=sys.stderr, flush=True)
    return results


def run_in_worker(run: tuple[Path, str, int]) -> tuple[str, int, Course]:
    _, policy, seed = run
    return policy, seed, experiment.by_percent(experiment.run(*run))


def print_table(results: Results) -> None:
    print(
        f"{'POLICY':12}{'SEEDS':>6}{'ALLOCATED':>11}{'STDEV':>7}{'PUBLISHED':>11}{'DIFFERENCE':>12}"
    )
    for policy, courses in results.items():
        found = [course[100] for course in courses.values()]
        spread = f"{stdev(found):.2f}" if len(found) > 1 else ""
        ours, theirs = mean(found), PUBLISHED[policy]
        print(
            f"{policy:12}{len(found):6}{ours:11.2f}{spread:>7}{theirs:11.2f}{ours - theirs:+12.2f}"
        )


def rows_of(results: Results) -> Iterator[tuple[str, int, int, float]]:
    for policy, courses in results.items():
        for seed, course in courses.items():
            for arrived, allocated in sorted(course.items()):
                yield policy, seed, arrived, round(allocated, 4)


def write_csv(file: Path, results: Results) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("policy", "seed", "arrived_percent", "allocated_percent"))
        writer.writerows(rows_of(results))


def draw(file: Path, results: Results) -> None:
    """GPUs not allocated over the demand that has arrived, as in figure 9(a) of the paper: mean and range of seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for policy, courses in results.items():
        percents = sorted(set.intersection(*(set(course) for course in courses.values())))
        left = [[100 - course[percent] for course in courses.values()] for percent in percents]
        (line,) = axes.plot(percents, [mean(values) for values in left], label=policy)
        axes.fill_between(
            percents,
            [min(v) for v in left],
            [max(v) for v in left],
            alpha=0.2,
            color=line.get_color(),
        )
    axes.plot([0, 100], [100, 0], label="ideal", linestyle=":", color="grey")
    axes.set(xlim=(75, 130), ylim=(0, 25))
    axes.set_xlabel("arrived demand, % of the GPUs")
    axes.set_ylabel("GPUs not allocated, %")
    axes.grid(alpha=0.4)
    axes.legend(loc="upper right", ncols=2, frameon=False)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


if __name__ == "__main__":
    sys.exit(main())
