"""`python -m tests.field`: every question about every project, as a table; exit status 1 if one has no answer.

REFUSED counts questions without a subject, as a plan without pods, which must be refused with their own sentence.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .material import Project, own_projects, shared_projects
from .questions import Question, ask_all


def main() -> int:
    """Print the table, then each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="a project of your own: its files, in this order"
    )
    parser.add_argument(
        "--cluster", type=Path, help="nodes: each of the files is then a project of its own"
    )
    parser.add_argument("--breadth", type=int, default=5, help="workloads per project to ask about")
    options = parser.parse_args()
    projects = [*own_projects(), *shared_projects()]
    if options.cluster:
        projects = [Project(file.stem, (options.cluster, file)) for file in options.files]
    elif options.files:
        projects = [Project("given", tuple(options.files))]
    faults: list[str] = []
    asked = 0
    print(f"{'PROJECT':<24}{'QUESTION':<20}{'ASKED':>7}{'REFUSED':>9}{'FAILED':>8}")
    with ProcessPoolExecutor() as pool:
        runs = [(one, pool.submit(_answers, one, options.breadth)) for one in projects]
        for project, run in runs:
            answers, seconds = run.result()
            asked += len(answers)
            kinds = [question.name.split()[0] for question, _ in answers]
            refused = Counter(one.name.split()[0] for one, _ in answers if one.complaint)
            failed = Counter(one.name.split()[0] for one, fault in answers if fault)
            for kind, count in Counter(kinds).items():
                numbers = f"{count:>7}{refused[kind]:>9}{failed[kind]:>8}"
                print(f"{project.name:<24}{kind:<20}{numbers}")
            numbers = f"{len(answers):>7}{refused.total():>9}{failed.total():>8}"
            print(f"{project.name:<24}{'all':<20}{numbers}  {seconds:.0f} s")
            faults += [f"{project.name}: {one.name}: {fault}" for one, fault in answers if fault]
    for fault in faults:
        print(fault)
    print(f"{asked - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


def _answers(project: Project, breadth: int) -> tuple[list[tuple[Question, str | None]], float]:
    start = time.perf_counter()
    return list(ask_all(project, breadth)), time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
