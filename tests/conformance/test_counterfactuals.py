"""The remedies that explain names for the pending pods of our own small set let them run; the recorded ones take
minutes.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.conformance.cli import is_placement, read_cases
from tests.rig.conformance.counterfactuals import CounterfactualTally, check_case, main

FOLDER = Path(__file__).parent / "cases"
CASES = [c for f in sorted(FOLDER.glob("*.jsonl")) for c in read_cases(f) if is_placement(c)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_what_is_named_lets_the_pod_run(case: dict[str, Any]) -> None:
    tally = CounterfactualTally()

    check_case(case, tally)

    assert tally.faults == []
    assert not tally.unknown


def test_the_command_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([str(FOLDER / "own.jsonl")]) == 0
    assert "pending pods" in capsys.readouterr().out.splitlines()[-1]
    assert main([str(tmp_path / "none")]) == 2
    assert main([str(tmp_path)]) == 1, "no pod at all is no success"
