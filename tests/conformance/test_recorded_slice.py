"""Slices of the recorded decisions of kube-scheduler v1.36.4, Karpenter and Cluster Autoscaler: always run.

Of Karpenter every sixth case is run here, of Cluster Autoscaler every third; `make conformance` runs them all.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.rig.conformance.autoscalers import run_autoscaler_case
from tests.rig.conformance.cases import run_case
from tests.rig.conformance.cli import read_cases
from tests.rig.conformance.long_run import run_long_run
from tests.rig.conformance.pod_groups import run_group_case

FOLDER = Path(__file__).parent / "cases"
CASES = list(read_cases(FOLDER / "recorded-runs.jsonl.gz"))
TIES = list(read_cases(FOLDER / "preemption-ties.jsonl.gz"))
KARPENTER = list(read_cases(FOLDER / "karpenter-runs.jsonl.gz"))
GROUPS = list(read_cases(FOLDER / "pod-groups.jsonl.gz"))
SCALED = list(read_cases(FOLDER / "cluster-autoscaler-recorded.jsonl.gz"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_every_decision_agrees(case: dict[str, Any]) -> None:
    decisions, disagreements = 0, []
    for _, found in run_long_run(case):
        decisions += 1
        disagreements += [str(one) for one in found]

    assert disagreements == []
    assert decisions >= 100


def test_the_slice_has_cases_of_every_step() -> None:
    steps = [step for case in CASES for step in case["steps"]]

    assert len(CASES) == 6
    assert all(any(kind in step for step in steps) for kind in ("schedule", "apply", "delete"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in TIES])
def test_every_order_of_victims_agrees(case: dict[str, Any]) -> None:
    assert [str(one) for _, found in run_case(case) for one in found] == []


def test_the_slice_has_ties_of_every_kind() -> None:
    tags = {tag for case in TIES for tag in case["tags"]}

    assert tags >= {"equal", "none", "mixed", "ports", "pdb", "removed", "many"}
    assert any(case.get("deleted") for case in TIES)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in GROUPS])
def test_every_cycle_of_a_pod_group_agrees(case: dict[str, Any]) -> None:
    assert [str(one) for found in run_group_case(case) for one in found] == []


def test_the_slice_has_cycles_of_every_kind() -> None:
    attempts = [attempt for case in GROUPS for attempt in case["expected"]["attempts"]]

    outcomes = {attempt["outcome"] for attempt in attempts}
    assert outcomes == {"Success", "Unschedulable", "WaitingOnPreemption", "Error", "Held"}
    assert any(attempt["placement"] for attempt in attempts)
    assert any(attempt["workloadPreemption"] for attempt in attempts)
    assert any(member["preemption"] for attempt in attempts for member in attempt["members"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in KARPENTER[::6]])
def test_every_decision_of_karpenter_agrees(case: dict[str, Any]) -> None:
    assert [str(one) for _, found in run_autoscaler_case(case) for one in found] == []


def test_the_slice_has_decisions_of_karpenter_of_every_kind() -> None:
    expected = [case["steps"][0]["expected"] for case in KARPENTER]

    assert {case["about"] for case in KARPENTER} == {"plan", "consolidation"}
    assert {one.get("why") for one in expected} == {None, "", "empty", "underutilized"}
    assert all(any(one.get(key) for one in expected) for key in ("existing", "leftGroups"))
    assert any(one["launches"] for one in expected if "removed" in one)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SCALED[::3]])
def test_every_decision_of_cluster_autoscaler_agrees(case: dict[str, Any]) -> None:
    decisions = list(run_autoscaler_case(case))

    assert len(decisions) == 1
    assert [str(one) for _, found in decisions for one in found] == []


def test_the_slice_has_scaling_of_every_kind() -> None:
    expected = [case["steps"][0]["expected"] for case in SCALED if case["about"] == "plan"]
    unneeded = [case["unneeded"] for case in SCALED if case["about"] == "unneeded"]

    assert all(case["recorded"] for case in SCALED)
    assert len(expected) == len(unneeded) == 150
    assert all(any(one.get(key) for one in expected) for key in ("fitted", "options", "sizes"))
    assert any(len(one["best"]) > 1 for one in expected)
    assert any(unneeded)
    assert not all(unneeded)
