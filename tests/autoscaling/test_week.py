"""Two small days: the result of a run with an autoscaler stays the same when only its speed changes."""

import hashlib
import json
from typing import Any

import pytest

from bayplan.autoscaling import AutoscalerOptions
from bayplan.autoscaling.relocation import Relocation
from bayplan.autoscaling.unneeded import UnneededNodes
from bayplan.planning.pools import NodeBudget
from benchmarks.autoscaling_week import DAY_S, TYPES, make_week
from tests.autoscaling.scaled import GROUPS, KARPENTER, make_pool, make_type, run_scaled, scaling_of

SPOT = make_type("spot", 4, 0.07, zones=("a", "b"), interruption_rate=0.01)


@pytest.mark.parametrize(
    ("autoscaler", "totals", "digest"),
    [
        pytest.param("karpenter", (113, 105, 463, 118.392), "840fd07faa08872a", id="Karpenter"),
        pytest.param(
            "cluster-autoscaler",
            (93, 84, 130, 67.85),
            "558305ff12feebef",
            id="Cluster Autoscaler",
        ),
    ],
)
def test_week_has_its_recorded_result(
    autoscaler: str, totals: tuple[int, int, int, float], digest: str
) -> None:
    """Change the records only with an intended change of decisions."""
    pool = make_pool(
        *TYPES, SPOT, consolidate_after_s=300.0, expire_after_s=DAY_S, budgets=(NodeBudget("10%"),)
    )
    options = AutoscalerOptions(autoscaler=autoscaler, expander="price", seed=1)

    report = run_scaled(list(make_week(0.1, 2, deployments=20)), [pool], options, until_s=2 * DAY_S)

    scaling = scaling_of(report)
    found = (scaling.launched, scaling.removed, len(scaling.evictions), round(scaling.cost, 3))
    record = {**scaling.to_dict(report.pods), "remarks": []}  # words decide nothing
    text = json.dumps(record, sort_keys=True)
    assert (found, hashlib.sha256(text.encode()).hexdigest()[:16]) == (totals, digest)


def test_nodes_that_are_not_tried_could_not_go_or_could_without_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit, find = Relocation._fit, Relocation._find
    said: list[bool | None] = []
    wrong: list[Any] = []

    def noted(self: Relocation, *given: Any) -> None:
        said.append(fit(self, *given))

    def tried(self: Relocation, *given: Any, **more: Any) -> Any:
        plan = find(self, *given, **more)
        found = plan is not None and (None if plan.launches else True)
        if said[-1] not in (None, found):
            wrong.append(given)
        return plan

    monkeypatch.setattr(Relocation, "_fit", noted)
    monkeypatch.setattr(Relocation, "_find", tried)
    pool = make_pool(*TYPES, consolidate_after_s=300.0)

    run_scaled(list(make_week(0.1, 1, deployments=20)), [pool], KARPENTER, until_s=DAY_S)

    assert not wrong
    assert {True, False} <= set(said)


def test_a_question_about_nodes_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """With answers that are found again, and twice each time, the same happens."""
    asked: list[Any] = []

    def play() -> Any:
        pool = make_pool(*TYPES, consolidate_after_s=300.0)
        objects = list(make_week(0.1, 1, deployments=30))
        report = run_scaled(objects, [pool], KARPENTER, until_s=DAY_S)
        return scaling_of(report).to_dict(report.pods)

    def again(self: Relocation, leaving: Any, closed: Any, *, may_replace: bool) -> Any:
        self._look(closed)
        asked.append(self._find(leaving, may_replace=may_replace))
        return self._find(leaving, may_replace=may_replace)

    before = play()
    monkeypatch.setattr(Relocation, "find", again)

    assert play() == before
    assert any(plan is not None for plan in asked)


def test_a_search_for_unneeded_nodes_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    update = UnneededNodes.update
    found: list[int] = []

    def watched(self: UnneededNodes, now_s: float, leaving: set[str]) -> None:
        table = self._shadow.table
        before = (
            [list(pods) for pods in table.pods],
            {r: a.copy() for r, a in table.requested.items()},
        )
        update(self, now_s, leaving)
        found.append(sum(bool(self._nodes.live[name].pods) for name in self.since_s))
        assert [list(pods) for pods in table.pods] == before[0]
        assert all((table.requested[r] == amounts).all() for r, amounts in before[1].items())

    monkeypatch.setattr(UnneededNodes, "update", watched)

    run_scaled(list(make_week(0.1, 1, deployments=30)), [make_pool(*TYPES)], GROUPS, until_s=DAY_S)

    assert max(found) > 1
