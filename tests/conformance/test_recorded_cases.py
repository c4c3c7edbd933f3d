"""The recorded decisions of kube-scheduler v1.36.4, family by family, where the recordings are to be had."""

from pathlib import Path

import pytest

from mooring.testing.conformance_cases import run_case
from mooring.testing.conformance_cli import is_placement, main, read_cases

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
SUFFIX = ".jsonl.gz"
COMPLETE = [
    "resources",
    "scoring",
    "taints",
    "node-affinity",
    "node-misc",
    "image-locality",
    "topology-spread",
    "inter-pod-affinity",
    "profiles",
    "preemption",
    "volumes",
    "dra",
    "mixed",
]
OTHER_KINDS = ["queue", "hints", "config"]
ELSEWHERE = ["long-run"]  # in test_recorded_runs.py, to run beside this
LEFT_OUT: dict[str, str] = {}
FAMILIES = sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}"))

pytestmark = pytest.mark.skipif(not FAMILIES, reason="the recorded decisions are not here")


@pytest.mark.parametrize("family", [name for name in COMPLETE if name in FAMILIES])
def test_every_decision_agrees(family: str) -> None:
    decisions, disagreements = 0, []
    for case in read_cases(FOLDER / f"{family}{SUFFIX}"):
        assert is_placement(case), case["id"]
        for _, found in run_case(case):
            decisions += 1
            disagreements += [str(one) for one in found]

    assert disagreements == []
    assert decisions >= 100, "a family has some two hundred"


@pytest.mark.parametrize("family", [name for name in OTHER_KINDS if name in FAMILIES])
def test_every_decision_of_another_kind_agrees(
    family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([str(FOLDER / f"{family}{SUFFIX}")])

    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=pytest.mark.skip(reason=LEFT_OUT.get(name, "not known here")))
        for name in FAMILIES
        if name not in (*COMPLETE, *OTHER_KINDS, *ELSEWHERE)
    ],
)
def test_families_left_out(family: str) -> None:
    """Each with its reason, so that what is not compared can be seen."""


def test_every_family_is_compared_or_left_out_for_a_reason() -> None:
    assert set(FAMILIES) <= {*COMPLETE, *OTHER_KINDS, *ELSEWHERE, *LEFT_OUT}
    assert {*COMPLETE, *OTHER_KINDS, *ELSEWHERE} <= set(FAMILIES), "some recordings are missing"
