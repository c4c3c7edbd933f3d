"""Recorded long runs of kube-scheduler v1.36.4: cached answers equal fresh ones from pod to pod.

Every eighth case is run here, `make conformance` runs them all.
"""

from pathlib import Path

import pytest

from tests.rig.conformance.cli import read_cases
from tests.rig.conformance.long_run import is_long_run, run_long_run

FILE = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "long-run.jsonl.gz"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the recorded decisions are not here")


def test_every_decision_agrees() -> None:
    decisions, disagreements = 0, []
    for number, case in enumerate(read_cases(FILE)):
        assert is_long_run(case), case["id"]
        for _, found in run_long_run(case) if number % 8 == 1 else ():
            decisions += 1
            disagreements += [str(one) for one in found]

    assert disagreements == []
    assert decisions >= 1000, "a case has some two hundred"
