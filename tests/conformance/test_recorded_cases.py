"""The recorded decisions of kube-scheduler v1.36.4, family by family, where the recordings are to be had.

Of pod groups every other case is run here, `make conformance` runs them all.
"""

import gzip
from itertools import islice
from pathlib import Path

import pytest

from tests.rig.conformance.cases import run_case
from tests.rig.conformance.cli import is_placement, main, read_cases

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
    "preemption-ties",
    "volumes",
    "dra",
    "mixed",
]
OTHER_KINDS = ["queue", "hints", "config", "pod-groups"]
ELSEWHERE = ["long-run"]  # in test_recorded_runs.py, so that another worker runs them
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
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{family}.jsonl"
    with gzip.open(FOLDER / f"{family}{SUFFIX}", "rt", encoding="utf-8") as stream:
        file.write_text("".join(islice(stream, 0, None, 2 if family == "pod-groups" else 1)))

    status = main([str(file)])

    assert status == 0, capsys.readouterr().out


def test_every_family_is_compared() -> None:
    assert set(FAMILIES) == {*COMPLETE, *OTHER_KINDS, *ELSEWHERE}
