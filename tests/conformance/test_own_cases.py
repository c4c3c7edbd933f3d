"""Our own small set of cases: decisions worked out by hand from the rules, always run."""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.conformance.autoscalers import is_autoscaler_case, run_autoscaler_case
from tests.rig.conformance.cases import run_case
from tests.rig.conformance.cli import is_placement, main, read_cases
from tests.rig.conformance.long_run import is_long_run, run_long_run

FOLDER = Path(__file__).parent / "cases"
FILES = sorted(FOLDER.glob("*.jsonl"))
ALL = [case for file in FILES for case in read_cases(file)]
CASES = [case for case in ALL if is_placement(case)]
RUNS = [case for case in ALL if is_long_run(case)]
SCALED = [case for case in ALL if is_autoscaler_case(case)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_every_decision_agrees(case: dict[str, Any]) -> None:
    decisions = list(run_case(case))

    assert [pod for pod, _ in decisions] == [pod["pod"] for pod in case["expected"]["pods"]]
    assert [str(one) for _, found in decisions for one in found] == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in RUNS])
def test_every_decision_of_a_run_agrees(case: dict[str, Any]) -> None:
    decisions = list(run_long_run(case))

    assert len(decisions) == sum("schedule" in step for step in case["steps"])
    assert [str(one) for _, found in decisions for one in found] == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SCALED])
def test_every_decision_of_an_autoscaler_agrees(case: dict[str, Any]) -> None:
    decisions = list(run_autoscaler_case(case))

    assert decisions
    assert [str(one) for _, found in decisions for one in found] == []


def test_every_case_is_of_a_kind_that_is_run() -> None:
    assert len(CASES) + len(RUNS) + len(SCALED) == len(ALL)


def test_the_set_covers_what_it_should() -> None:
    """Every kind of outcome is in it: a runner for one of them only is not enough."""
    records = [record for case in CASES for record in case["expected"]["pods"]]

    assert len({case["id"] for case in CASES}) == len(CASES) >= 10
    assert {case["id"].partition(":")[0] for case in CASES} >= {
        "resources",
        "taints",
        "node-affinity",
        "topology-spread",
        "inter-pod-affinity",
        "ports",
        "preemption",
        "profiles",
    }
    assert any(record["preEnqueue"] for record in records)
    assert any(record["hostFromNomination"] for record in records)
    assert any(record["postFilter"] and record["postFilter"]["victims"] for record in records)
    assert any(record["preFilter"] and record["preFilter"]["nodeNames"] for record in records)
    assert any(record["fitError"] for record in records)


def test_the_command_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    decisions = sum(len(case["expected"]["pods"]) for case in ALL if case not in SCALED)
    decisions += sum(len(case.get("steps", [case])) for case in SCALED)

    assert main([str(file) for file in FILES]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"agree {decisions} of {decisions} decisions in {len(ALL)} cases"
    assert [line.split(":")[0].split(" ")[0] for line in lines[:-1]] == [
        "cluster-autoscaler",
        "karpenter",
        "v1.36.4",
    ]
