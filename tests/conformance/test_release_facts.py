"""Facts of releases, and the recorded cases of v1.36 that each changes; `make release-facts` runs all cases."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.answers.release_changes import single_changes
from bayplan.releases.feature_gates import DEFAULT_GATES
from bayplan.releases.release import RELEASES
from tests.rig.conformance import release_facts
from tests.rig.conformance.cli import read_cases
from tests.rig.conformance.release_facts import CaseTrials, predict_all

CASES = {
    case["id"].partition(":")[0]: case
    for case in read_cases(Path(__file__).parent / "cases" / "own.jsonl")
    if case["id"].startswith(("scoring:", "taints:", "resources: the message"))
}


def test_the_cases_that_change_are_those_that_facts_change() -> None:
    others = [release for version, release in RELEASES.items() if version != "1.36"]

    reports = predict_all(CASES.values(), others)

    assert [str(each) for report in reports.values() for each in report.wrong] == []
    found = {
        version: {case.partition(":")[0]: facts for case, facts in report.changed.items()}
        for version, report in reports.items()
    }
    balance = {"scoring": ("balance_scores_change",)}
    assert found == {
        "1.33": {
            **balance,
            "taints": ("names_taints",),
            "resources": ("fit_unresolvable",),
        },
        "1.34": balance,
        "1.35": balance,
        "1.37": {},
    }


def test_a_case_that_two_facts_leave_as_it_was_is_predicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which allocator of devices v1.36 uses depends on several gates: some pairs of them lead to the same one."""
    alone = {"balance_scores_change"}

    def differs(case: Any, gates: Any) -> bool:
        old = DEFAULT_GATES.release
        changed = {
            fact
            for fact in ("balance_scores_change", "dra_scores")
            if getattr(gates.release, fact) != getattr(old, fact)
        }
        return changed == alone

    monkeypatch.setattr(release_facts, "changes", differs)
    monkeypatch.setattr(CaseTrials, "_changes", lambda self, name, gates: differs(None, gates))

    found = CaseTrials(CASES["taints"]).predict(RELEASES["1.34"])

    assert (found.changes, found.facts) == (False, ("balance_scores_change",))
    assert found.is_right


def test_a_difference_without_a_fact_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def others(*args: Any) -> Any:
        return (each for each in known(*args) if each[0] != "names_taints")

    known = single_changes
    monkeypatch.setattr(release_facts, "single_changes", others)

    found = CaseTrials(CASES["taints"]).predict(RELEASES["1.33"])

    assert (found.changes, found.facts, found.is_right) == (True, (), False)
    assert str(found).endswith("changes, and no single fact or gate changes it")
