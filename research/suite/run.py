"""Run the suite: every baseline on every input, and print the table.

Example: python research/suite/run.py clusterdata --to build/suite
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from description import HERE, Suite
from pool_runs import pool_runs, run_all
from results import RunEntry, SuiteResults, entries_of, in_order, table_lines

from bayplan.errors import BayplanError
from bayplan.sweeps import Sweep

TRACES = "BAYPLAN_CLUSTERDATA"
PUBLISHED = HERE / "results.json"


def main() -> int:
    options = read_options()
    try:
        return run(options)
    except BayplanError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(options: argparse.Namespace) -> int:
    suite = Suite.read(options.suite, options.folder)
    for name in options.input:
        if name not in suite.columns:
            raise BayplanError(f'--input: expected one of {", ".join(suite.columns)}; got "{name}"')
    suite.check_files()
    options.to.mkdir(parents=True, exist_ok=True)
    rows = [own_row(options)] if options.row else suite.rows
    found = in_order(collect(suite, rows, options), [row["name"] for row in rows], suite.columns)
    results = SuiteResults.of(suite, found)
    shown = results
    if options.row and PUBLISHED.is_file():
        shown = SuiteResults.read(PUBLISHED).with_entries(found)
    results.write(options.to / "results.json")
    text = "\n".join(table_lines(shown, suite.columns))
    (options.to / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return check(results, options)


def collect(
    suite: Suite, rows: list[dict[str, Any]], options: argparse.Namespace
) -> list[RunEntry]:
    """Do all runs; those of sweeps that are in the folder of results are not repeated."""
    found: list[RunEntry] = []
    for name, document in suite.sweeps(options.to, rows, options.input, options.seeds):
        started = time.monotonic()
        sweep = Sweep(document, options.to / f"{name}.csv")
        found += entries_of(sweep.run(jobs=options.jobs))
        report(name, len(sweep.runs), started)
    runs = [
        each
        for each in pool_runs(suite, rows, options.seeds)
        if not options.input or f"pools, {each.autoscaler}" in options.input
    ]
    if runs:
        started = time.monotonic()
        found += run_all(runs, options.jobs)
        report("pools", len(runs), started)
    return found


def report(name: str, runs: int, started: float) -> None:
    text = f"{name}: {runs} runs, {time.monotonic() - started:.0f} s"
    print(text, file=sys.stderr, flush=True)


def own_row(options: argparse.Namespace) -> dict[str, Any]:
    """The row that is given on the command line."""
    row: dict[str, Any] = {"name": options.row}
    if options.config:
        row["file"] = str(options.config.absolute())
    if options.plugins:
        row["plugins"] = [str(each.absolute()) for each in options.plugins]
    return row


def check(results: SuiteResults, options: argparse.Namespace) -> int:
    """Whether the runs have the measures of earlier results."""
    if not options.check:
        return 0
    different = results.differences(SuiteResults.read(options.check))
    for text in different:
        print(text, file=sys.stderr)
    print(
        f"{len(different)} of {len(results.entries)} runs differ from {options.check}",
        file=sys.stderr,
    )
    return 1 if different else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0],
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    given = os.environ.get(TRACES, "clusterdata")
    where = f"a copy of github.com/alibaba/clusterdata; by default {TRACES}, or clusterdata"
    parser.add_argument("folder", nargs="?", type=Path, default=Path(given), help=where)
    parser.add_argument("--to", type=Path, default=Path("build/suite"), help="folder of results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--input", action="append", default=[], help="only this input")
    parser.add_argument("--seeds", type=int, help="only the first seeds of each input")
    parser.add_argument("--row", help="a name: run this one row instead of the baselines")
    parser.add_argument("--config", type=Path, help="the configuration of the row")
    parser.add_argument("--plugins", type=Path, action="append", help="a plugin file of the row")
    parser.add_argument("--check", type=Path, help="a results.json that must have equal measures")
    parser.add_argument("--suite", type=Path, default=HERE / "suite.yaml", help="another suite")
    options = parser.parse_args()
    if options.jobs < 1 or (options.seeds is not None and options.seeds < 1):
        parser.error("--seeds and --jobs: expected a number of 1 or more")
    if (options.config or options.plugins) and not options.row:
        parser.error("--config and --plugins: expected a name of their row in --row")
    return options


if __name__ == "__main__":
    sys.exit(main())
