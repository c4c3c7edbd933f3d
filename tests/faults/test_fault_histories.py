"""The live driver on a simulated API server: no pod is lost or bound twice, no node is overcommitted, the caches equal
the server soon after the faults, and equal seeds give equal histories. `make life` runs ten thousand."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.rig.mutants import ROOT

from .__main__ import failure_text
from .history import run_history

SEEDS = range(int(os.environ.get("BAYPLAN_FAULT_HISTORIES", "24")))
AT_A_TIME = 8
PARTS = [SEEDS[first : first + AT_A_TIME] for first in range(0, len(SEEDS), AT_A_TIME)]
KINDS = {"refused", "delayed", "cut", "lost", "torn", "watch_cut", "watch_stalled", "watch_expired"}
PRINT_DIGEST = "from tests.faults.test_fault_histories import digest; print(digest({seed}))"


def digest(seed: int) -> str:
    """Digest of the requests of a history, with their times, and its problems."""
    report = run_history(seed)
    return hashlib.sha256("\n".join([*report.trace, *report.problems]).encode()).hexdigest()


@pytest.mark.parametrize(
    "seeds", [pytest.param(part, id=f"seeds {part[0]} to {part[-1]}") for part in PARTS]
)
def test_faults_lose_and_overcommit_nothing(seeds: range) -> None:
    reports = [run_history(seed) for seed in seeds]

    problems = [failure_text(report) for report in reports if report.problems]
    assert not problems, "\n".join(problems)
    assert sum(report.bound for report in reports) > 5 * len(reports)
    injected = sum((report.injected for report in reports), Counter())
    assert injected.keys() <= KINDS
    assert len(injected) > 3, "histories without faults show nothing"


def test_equal_seeds_have_equal_requests_in_every_process() -> None:
    """Another process has other hashes of strings."""
    seed = 3
    here = digest(seed)

    there = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST.format(seed=seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "17", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert digest(seed) == here
    assert there.stdout.strip() == here
