"""Consolidation as Karpenter v1.14 does it: its pace under a budget, its policies, and where pods may go."""

from itertools import pairwise
from typing import Any

import pytest

from bayplan.autoscaling.pool_nodes import eviction_cost
from bayplan.planning.pools import NodeBudget
from bayplan.testing.builders import make_pod
from tests.autoscaling.scaled import (
    make_pool,
    make_timeline,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

SMALL = make_type("small", 4, 0.2)


def test_empty_nodes_under_a_budget_go_every_25_s() -> None:
    pool = make_pool(SMALL, budgets=(NodeBudget("1"),))
    objects = [make_workload("web", 5, "4"), make_timeline(("5m", {"web": 0}))]

    report = run_scaled(objects, [pool], until_s=3600.0)

    ends = sorted(node.removed_s or 0.0 for node in scaling_of(report).nodes)
    assert len(ends) == 5
    assert {later - earlier for earlier, later in pairwise(ends)} == {25.0}


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("WhenEmptyOrUnderutilized", 1, id="all that saves"),
        pytest.param("WhenEmpty", 2, id="no node with pods"),
        pytest.param("Balanced", 2, id="not for a share of disruption that is too large"),
    ],
)
def test_policies(policy: str, left: int) -> None:
    """Moving five pods from a cheap node to an expensive one saves a hundredth of the cost."""
    types = make_type("cheap", 2, 0.01), make_type("dear", 4, 1.0)
    pool = make_pool(*types, consolidation_policy=policy, budgets=(NodeBudget("100%"),))
    objects = [
        make_workload("many", 5, "100m"),
        make_workload("large", 0, "3"),
        make_timeline(("5m", {"large": 1})),
    ]

    report = run_scaled(objects, [pool], until_s=3600.0)

    assert not report.pending
    assert sum(node.removed_s is None for node in scaling_of(report).nodes) == left


@pytest.mark.parametrize(
    ("more", "cost"),
    [
        pytest.param({}, 1.0, id="by default"),
        pytest.param({"priority": 1 << 25}, 2.0, id="priority"),
        pytest.param({"priority": -(1 << 30)}, -10.0, id="at least"),
        pytest.param(
            {"annotations": {"controller.kubernetes.io/pod-deletion-cost": str(1 << 27)}},
            2.0,
            id="deletion cost",
        ),
        pytest.param(
            {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "dear"}},
            1.0,
            id="no number",
        ),
    ],
)
def test_eviction_cost(more: dict[str, Any], cost: float) -> None:
    assert eviction_cost(make_pod("p", **more)) == cost
