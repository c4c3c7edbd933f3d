"""Settings without effect in a run are named in its report."""

import re
from typing import Any

import pytest

from bayplan.autoscaling import AutoscalerOptions
from bayplan.autoscaling.cluster_autoscaler_flags import PriorityRules
from tests.autoscaling.scaled import (
    GROUPS,
    KARPENTER,
    make_pool,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

RULES = PriorityRules(((10, (re.compile("^p/"), re.compile("spot"))),))
OF_KARPENTER = {"expire_after_s": 3600.0, "consolidate_after_s": None}
UNNEEDED = {"scaledownunneededtime": 60.0}


def by(expander: str, priorities: PriorityRules | None = RULES) -> AutoscalerOptions:
    return AutoscalerOptions(
        autoscaler="cluster-autoscaler", expander=expander, priorities=priorities
    )


@pytest.mark.parametrize(
    ("options", "pool", "remarks"),
    [
        pytest.param(KARPENTER, {}, [], id="nothing is set"),
        pytest.param(KARPENTER, OF_KARPENTER | {"weight": 3}, [], id="Karpenter has these"),
        pytest.param(
            KARPENTER,
            {"group_options": UNNEEDED},
            ["autoscalingOptions of p: without effect; Karpenter has none"],
            id="options of groups with Karpenter",
        ),
        pytest.param(GROUPS, {"group_options": UNNEEDED}, [], id="groups have these"),
        pytest.param(
            GROUPS,
            OF_KARPENTER,
            [
                "disruption of p: without effect; Cluster Autoscaler has none",
                "expireAfter of p: without effect; Cluster Autoscaler has none",
            ],
            id="disruption and expiry with Cluster Autoscaler",
        ),
        pytest.param(by("priority", None), {"weight": 3}, [], id="priority goes by the weight"),
        pytest.param(
            GROUPS,
            {"weight": 3},
            [
                "weight of p: without effect; only the expander priority without a ConfigMap goes by it"
            ],
            id="a weight with another expander",
        ),
        pytest.param(
            by("least-waste"),
            {},
            [
                "ConfigMap cluster-autoscaler-priority-expander: without effect; the expander is least-waste, "
                "not priority"
            ],
            id="priorities with another expander",
        ),
        pytest.param(
            by("priority,least-waste"),
            {},
            [
                'ConfigMap cluster-autoscaler-priority-expander: no group matches "spot"; there are p/small'
            ],
            id="a pattern that matches no group",
        ),
    ],
)
def test_a_setting_without_effect_is_named(
    options: AutoscalerOptions, pool: dict[str, Any], remarks: list[str]
) -> None:
    pools = [make_pool(make_type("small", 4, 0.2), **pool)]

    report = run_scaled([make_workload("web", 1)], pools, options, until_s=300.0)

    assert scaling_of(report).remarks == remarks
