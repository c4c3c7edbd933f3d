"""Conformance command: `python -m tests.rig.conformance.cli FILES...` runs recorded cases and compares.

A folder `releases` in a folder is searched, too: it has a folder per release. Prints a line per release if there are
several, and ends with `agree A of B decisions in C cases`; status 0 only when A is B and B is not 0.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from bayplan.errors import InputError
from bayplan.releases.release import DEFAULT_RELEASE

from .autoscalers import is_autoscaler_case, run_autoscaler_case
from .cases import Disagreement, run_case
from .config import is_config_case, run_config_case
from .hints import is_event_case, run_event_case
from .long_run import is_long_run, run_long_run
from .pod_groups import is_group_case, run_group_case
from .queue import is_queue_script, run_queue_script

RELEASES = "releases"
FULL = 20
"""Number of differences that are printed; the rest is counted."""


@dataclass(slots=True)
class Counts:
    """The decisions that agree, all decisions, and their cases."""

    agree: int = 0
    total: int = 0
    cases: int = 0

    def __str__(self) -> str:
        return f"agree {self.agree} of {self.total} decisions in {self.cases} cases"


def case_files(names: list[str]) -> Iterator[Path]:
    """The case files among `names`; folders are searched."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            folders = [path, *sorted((path / RELEASES).glob("*/"))]
            for folder in folders:
                found = (p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
                yield from sorted(found)
        elif path.is_file():
            yield path
        else:
            raise FileNotFoundError(name)


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of one file, one JSON object per line."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise InputError(
                        f"{path}: line {number}: expected a case in JSON; got {error}"
                    ) from None


def is_placement(case: dict[str, Any]) -> bool:
    """Whether the case has pods to place with recorded decisions."""
    expected = case.get("expected")
    return (
        "objects" in case and "pods" in case and isinstance(expected, dict) and "pods" in expected
    )


def run_placement(case: dict[str, Any]) -> Iterator[list[Disagreement]]:
    """For each pod of the case, the differences."""
    return (found for _, found in run_case(case))


def run_event(case: dict[str, Any]) -> Iterator[list[Disagreement]]:
    """For the one decision of the case, the differences."""
    yield run_event_case(case)


def run_script(case: dict[str, Any]) -> Iterator[list[Disagreement]]:
    """For each step of the case, the differences."""
    return (found for _, found in run_queue_script(case))


def run_history(case: dict[str, Any]) -> Iterator[list[Disagreement]]:
    """For each attempt of the case, the differences."""
    return (found for _, found in run_long_run(case))


def run_scaling(case: dict[str, Any]) -> Iterator[list[Disagreement]]:
    """For each decision of an autoscaler, the differences."""
    return (found for _, found in run_autoscaler_case(case))


Case = dict[str, Any]
RUNNERS: tuple[
    tuple[Callable[[Case], bool], Callable[[Case], Iterator[list[Disagreement]]]], ...
] = (
    (is_placement, run_placement),
    (is_event_case, run_event),
    (is_queue_script, run_script),
    (is_group_case, run_group_case),
    (is_long_run, run_history),
    (is_config_case, run_config_case),
    (is_autoscaler_case, run_scaling),
)
"""The kinds of cases: how to recognise one, and a function that yields the differences of each
decision."""


def main(arguments: list[str] | None = None) -> int:
    """Run the cases in the named files and folders; return the exit status."""
    names = sys.argv[1:] if arguments is None else arguments
    try:
        return run_files(list(case_files(names)))
    except FileNotFoundError as error:
        print(f"{error}: expected a file or a folder; got none", file=sys.stderr)
    except InputError as error:
        print(error, file=sys.stderr)
    return 2


def run_files(files: list[Path]) -> int:
    """Run the cases in `files` and print the differences; return the exit status."""
    counts: dict[str, Counts] = {}
    other = 0
    disagreements: list[Disagreement] = []
    for path in files:
        for case in read_cases(path):
            run = next((run for is_kind, run in RUNNERS if is_kind(case)), None)
            if run is None:
                other += 1
                continue
            count = counts.setdefault(case.get("release", DEFAULT_RELEASE.patch), Counts())
            count.cases += 1
            for found in run(case):
                count.total += 1
                count.agree += not found
                disagreements.extend(found)
    report(disagreements)
    if other:
        print(f"left out: {other} cases of other kinds")
    for release in sorted(counts) if len(counts) > 1 else ():
        print(f"{release}: {counts[release]}")
    whole = Counts(*(sum(numbers) for numbers in zip(*map(astuple, counts.values()), strict=True)))
    print(whole)
    return 0 if whole.total and whole.agree == whole.total else 1


def report(disagreements: list[Disagreement]) -> None:
    """Print each difference, the first ones in full."""
    for found in disagreements[:FULL]:
        print(found)
    for found in disagreements[FULL:]:
        print(f"{found.case}: {found.pod}: {found.field}")


if __name__ == "__main__":
    sys.exit(main())
