"""Run fault histories: many, or one with its trace.

python -m tests.faults --count 10000
python -m tests.faults --seed 17 --trace
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from bayplan.scheduler.collector import rare_collections

from .history import HistoryReport, run_history

AT_A_TIME = 50


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 when a history has a problem."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first history")
    parser.add_argument("--count", type=int, default=1, help="how many histories")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--trace", action="store_true", help="print all requests, and logs")
    given = parser.parse_args(arguments)
    seeds = range(given.seed, given.seed + given.count)
    if given.trace:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
        reports: Iterable[HistoryReport] = [run_history(seed, is_logged=True) for seed in seeds]
        for report in reports:
            print("\n".join(report.trace))
        return summary(reports)
    if given.count <= AT_A_TIME or given.jobs == 1:
        with rare_collections():
            return summary(map(run_briefly, seeds))
    with ProcessPoolExecutor(given.jobs, initializer=collect_rarely) as pool:
        return summary(pool.map(run_briefly, seeds, chunksize=AT_A_TIME))


def collect_rarely() -> None:
    """Let a process of the pool search for garbage seldom."""
    rare_collections().__enter__()


def run_briefly(seed: int) -> HistoryReport:
    """A history without its trace, which would have to cross to another process."""
    report = run_history(seed)
    report.trace = report.trace[:1]
    return report


def summary(reports: Iterable[HistoryReport]) -> int:
    """Print each history with a problem, and the sums."""
    count = bound = wrong = 0
    injected: Counter[str] = Counter()
    for report in reports:
        count, bound = count + 1, bound + report.bound
        injected += report.injected
        if report.problems:
            wrong += 1
            print(failure_text(report), flush=True)
    faults = ", ".join(f"{kind} {number}" for kind, number in sorted(injected.items()))
    print(f"{count} histories, {bound} pods bound, faults: {faults}")
    print(f"{wrong} histories with a problem")
    return 1 if wrong else 0


def failure_text(report: HistoryReport) -> str:
    """The problems of a history, and how to run it again."""
    problems = "\n".join(f"  {problem}" for problem in report.problems)
    return f"seed {report.seed}: run it again with python -m tests.faults --seed {report.seed} --trace\n{problems}"


if __name__ == "__main__":
    sys.exit(main())
