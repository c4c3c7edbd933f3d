"""Scaling down: the nodes that go, the times, and the reasons to stay."""

from itertools import pairwise
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import AutoscalerOptions, autoscaled
from bayplan.autoscaling.scale_down import NodeDrains
from bayplan.planning.pools import NodeBudget
from bayplan.sim import SimulationReport
from bayplan.sim.autoscaling_record import waiting_times
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node
from tests.autoscaling.scaled import (
    GROUPS,
    KARPENTER,
    make_pool,
    make_timeline,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

HOUR = 3600.0
SMALL, BIG = make_type("small", 4, 0.2), make_type("big", 16, 0.7)
AT_NOON = "10m"
BOTH = [
    pytest.param(KARPENTER, id="Karpenter"),
    pytest.param(GROUPS, id="Cluster Autoscaler"),
]
DO_NOT_DISRUPT = {"karpenter.sh/do-not-disrupt": "true"}
NOT_SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def make_budget(app: str, **spec: Any) -> Any:
    selector = {"matchLabels": {"app": app}}
    return decode_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app},
            "spec": {"selector": selector} | spec,
        }
    )


def live_types(report: SimulationReport) -> list[str]:
    return sorted(node.type for node in scaling_of(report).nodes if node.removed_s is None)


def reasons(report: SimulationReport) -> set[str]:
    return {node.why for node in scaling_of(report).nodes if node.removed_s is not None}


@pytest.mark.parametrize("options", BOTH)
def test_empty_nodes_go(options: AutoscalerOptions) -> None:
    objects = [make_workload("web", 8), make_timeline((AT_NOON, {"web": 0}))]

    report = run_scaled(objects, [make_pool(SMALL)], options)

    scaling = scaling_of(report)
    assert [node.why for node in scaling.nodes] == ["empty", "empty"]
    assert scaling.series()[1].values[-1] == 0
    assert not scaling.evictions


@pytest.mark.parametrize(
    ("pool", "removed_s"),
    [
        # The pods need their 30 seconds to end; Karpenter searches every ten, and validates after 15.
        pytest.param(make_pool(SMALL), 655.0, id="at once"),
        pytest.param(make_pool(SMALL, consolidate_after_s=300.0), 945.0, id="after five minutes"),
        pytest.param(make_pool(SMALL, consolidate_after_s=None), None, id="never"),
        pytest.param(make_pool(SMALL, minimum=1), None, id="not below the minimum"),
    ],
)
def test_karpenter_waits_as_long_as_the_pool_says(pool: Any, removed_s: float | None) -> None:
    objects = [make_workload("web", 4), make_timeline((AT_NOON, {"web": 0}))]

    (node,) = scaling_of(run_scaled(objects, [pool], until_s=HOUR)).nodes

    assert node.removed_s == removed_s


@pytest.mark.parametrize(
    ("at", "launched"),
    [
        pytest.param("10m50s", 1, id="pods that come before the validation keep their node"),
        pytest.param("10m58s", 2, id="pods that come after it need another one"),
    ],
)
def test_karpenter_validates_a_decision_before_it_acts(at: str, launched: int) -> None:
    changes = make_timeline((AT_NOON, {"web": 0}), (at, {"web": 4}))

    report = run_scaled([make_workload("web", 4), changes], [make_pool(SMALL)], until_s=HOUR)

    assert scaling_of(report).launched == launched


def test_karpenter_keeps_the_places_of_pods_on_a_new_node_until_they_are_there() -> None:
    """Else the pod of `late` would take the room of pods that are evicted when the new node has joined."""
    late = make_workload("late", 0, "2")
    changes = make_timeline((AT_NOON, {"web": 3}), ("11m20s", {"late": 1}))

    report = run_scaled(
        [make_workload("web", 14), late, changes], [make_pool(SMALL, BIG)], until_s=HOUR
    )

    big, first, second = scaling_of(report).nodes
    assert (big.why, first.type, second.type) == ("underutilized", "small", "small")
    assert first.joined_s is not None
    assert first.launched_s < 680
    assert second.launched_s == 681
    assert second.launched_s < first.joined_s
    assert waiting_times(report.pods)["max"] < 2 * 60, (
        "no pod waits for two nodes one after the other"
    )


def test_cluster_autoscaler_waits_until_a_node_was_unneeded_for_ten_minutes() -> None:
    objects = [make_workload("web", 4), make_timeline((AT_NOON, {"web": 0}))]

    (node,) = scaling_of(run_scaled(objects, [make_pool(SMALL)], GROUPS, until_s=HOUR)).nodes

    assert node.removed_s is not None
    assert 1230 <= node.removed_s <= 1300


@pytest.mark.parametrize("options", BOTH)
def test_nodes_go_whose_pods_fit_elsewhere(options: AutoscalerOptions) -> None:
    objects = [
        make_workload("a", 4, "900m"),
        make_workload("b", 4, "900m"),
        make_timeline((AT_NOON, {"a": 1, "b": 1})),
    ]

    report = run_scaled(objects, [make_pool(SMALL)], options, until_s=2 * HOUR)

    assert live_types(report) == ["small"]
    assert not report.pending
    assert len(scaling_of(report).evictions) <= 1


def test_cluster_autoscaler_gives_up_a_drain_that_takes_too_long_and_tries_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until 40 minutes no pod can be evicted, though the planner sees no reason."""
    objects = [make_workload("web", 5), make_timeline((AT_NOON, {"web": 4}))]
    simulation = autoscaled(Settings(seed=0), objects, [make_pool(SMALL)], GROUPS)
    begun: list[float] = []
    begin, evict = NodeDrains.begin, NodeDrains._evict

    def noted(drains: NodeDrains, node: Any, why: str, *more: Any) -> None:
        if node.pods:
            begun.append(simulation.clock.monotonic())
        begin(drains, node, why, *more)

    def evict_later(drains: NodeDrains, drain: Any) -> None:
        if simulation.clock.monotonic() >= 2400:
            evict(drains, drain)

    monkeypatch.setattr(NodeDrains, "begin", noted)
    monkeypatch.setattr(NodeDrains, "_evict", evict_later)

    report = simulation.run(until_s=2 * HOUR)

    assert len(begun) > 2
    gaps = [later - earlier for earlier, later in pairwise(begun)]
    assert all(120 + 180 <= gap <= 120 + 180 + 30 for gap in gaps[:-1]), "2m, then 3m of delay"
    evictions = scaling_of(report).evictions
    (evicted_s,) = {one.time_s for one in evictions}
    assert max(begun[-1], 2400) <= evicted_s < begun[-1] + 120
    assert live_types(report) == ["small"]
    nodes = simulation.cluster.list("Node")
    assert not any(taint.key.startswith("ToBeDeleted") for node in nodes for taint in node.taints)


def test_karpenter_replaces_a_node_by_a_cheaper_one_that_is_ready_before() -> None:
    objects = [make_workload("web", 14), make_timeline((AT_NOON, {"web": 2}))]

    report = run_scaled(objects, [make_pool(SMALL, BIG)], until_s=HOUR)

    big, small = scaling_of(report).nodes
    assert (big.type, big.why, small.type) == ("big", "underutilized", "small")
    assert small.joined_s is not None
    assert {one.time_s >= small.joined_s for one in scaling_of(report).evictions} == {True}
    assert len(scaling_of(report).evictions) == 2
    assert not report.pending


@pytest.mark.parametrize(
    ("options", "objects", "pool"),
    [
        pytest.param(
            KARPENTER,
            [make_workload("web", 14, annotations=DO_NOT_DISRUPT)],
            make_pool(SMALL, BIG),
            id="an annotation of a pod, for Karpenter",
        ),
        pytest.param(
            GROUPS,
            [make_workload("web", 14, annotations=NOT_SAFE)],
            make_pool(BIG),
            id="an annotation of a pod, for Cluster Autoscaler",
        ),
        pytest.param(
            KARPENTER,
            [make_workload("web", 14), make_budget("web", maxUnavailable=0)],
            make_pool(SMALL, BIG),
            id="a disruption budget",
        ),
        pytest.param(
            KARPENTER,
            [make_workload("web", 14)],
            make_pool(SMALL, BIG, consolidation_policy="WhenEmpty"),
            id="the policy WhenEmpty",
        ),
        pytest.param(
            KARPENTER,
            [make_workload("web", 14)],
            make_pool(SMALL, BIG, budgets=(NodeBudget("0"),)),
            id="a pool's budget of no nodes",
        ),
        pytest.param(
            KARPENTER,
            [make_workload("web", 14)],
            make_pool(SMALL, BIG, budgets=(NodeBudget("0", ("Underutilized",)), NodeBudget("9"))),
            id="a pool's budget for the reason",
        ),
        pytest.param(
            KARPENTER,
            [make_workload("web", 14)],
            make_pool(SMALL, BIG, budgets=(NodeBudget("0", (), "0 0 * * *", 7200.0),)),
            id="a pool's budget at that time of the day",
        ),
    ],
)
def test_what_keeps_a_node(options: AutoscalerOptions, objects: list[Any], pool: Any) -> None:
    spare = make_node("spare", cpu="4", memory="16Gi").replace(
        annotations={"bayplan.dev/created-at": "9m"}
    )
    others = [spare] if options is GROUPS else []
    events = make_timeline((AT_NOON, {"web": 2}))

    report = run_scaled([*objects, *others, events], [pool], options, until_s=HOUR)

    assert live_types(report) == ["big"]
    assert not scaling_of(report).evictions


def test_a_budget_holds_for_its_time_only() -> None:
    """The clock begins at midnight; the budget ends half an hour later."""
    budget = NodeBudget("0", (), "0 0 * * *", 1800.0)
    objects = [make_workload("web", 4), make_timeline((AT_NOON, {"web": 0}))]

    report = run_scaled(objects, [make_pool(SMALL, budgets=(budget,))], until_s=HOUR)

    (node,) = scaling_of(report).nodes
    assert node.removed_s is not None
    assert 1800 <= node.removed_s <= 1900


@pytest.mark.parametrize(
    ("annotations", "is_removed"),
    [
        pytest.param({}, True, id="none"),
        pytest.param(
            {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"},
            False,
            id="scale-down-disabled",
        ),
    ],
)
def test_annotations_of_nodes(annotations: dict[str, str], is_removed: bool) -> None:
    labels = {"bayplan.dev/pool": "p", "node.kubernetes.io/instance-type": "small"}
    node = make_node("given", cpu="4", memory="16Gi", labels=labels).replace(
        annotations=annotations
    )

    (record,) = scaling_of(run_scaled([node], [make_pool(SMALL)], GROUPS, until_s=HOUR)).nodes

    assert (record.removed_s is not None) == is_removed


def test_a_node_at_half_its_capacity_is_needed() -> None:
    objects = [
        make_workload("web", 8),
        make_node("spare", cpu="16", memory="64Gi", taints=["x=y:NoSchedule"]),
        make_timeline((AT_NOON, {"web": 4})),
    ]

    report = run_scaled(objects, [make_pool(make_type("t", 8, 1.0))], GROUPS, until_s=HOUR)

    assert live_types(report) == ["t"]


def test_disruption_budgets_of_pods_are_kept_while_a_node_is_drained() -> None:
    objects = [
        make_workload("web", 14, terminationGracePeriodSeconds=20),
        make_budget("web", maxUnavailable=1),
        make_timeline((AT_NOON, {"web": 3})),
    ]

    report = run_scaled(objects, [make_pool(SMALL, BIG)], until_s=HOUR)

    times = [one.time_s for one in scaling_of(report).evictions]
    assert live_types(report) == ["small"]
    assert len(times) == len(set(times)) == 3


def test_nodes_expire_and_their_pods_find_others() -> None:
    pool = make_pool(SMALL, expire_after_s=1800.0)

    report = run_scaled([make_workload("web", 4)], [pool], until_s=HOUR)

    first, second = scaling_of(report).nodes
    assert first.why == "expired"
    assert {one.time_s for one in scaling_of(report).evictions} == {1801.0}
    assert second.removed_s is None
    assert not report.pending


def test_expiry_alone_does_not_make_a_run_longer() -> None:
    pool = make_pool(SMALL, expire_after_s=1800.0)

    assert run_scaled([make_workload("web", 4)], [pool]).time_s < 200


def test_interruptions_take_nodes_with_all_their_pods_and_are_drawn_from_the_seed() -> None:
    spot = make_type("spot", 4, 0.05, interruption_rate=2.0)
    work = make_workload("web", 8, annotations=DO_NOT_DISRUPT)

    def run(seed: int) -> dict[str, Any]:
        report = run_scaled([work], [make_pool(spot)], AutoscalerOptions(seed=seed), 6 * HOUR)
        assert not report.pending
        assert reasons(report) == {"interrupted"}
        document: dict[str, Any] = report.to_dict()["scaling"]
        return document

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_pods_without_a_controller_come_back_after_an_interruption() -> None:
    spot = make_type("spot", 4, 0.05, interruption_rate=4.0)
    pod = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "bare"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        }
    )

    report = run_scaled([pod], [make_pool(spot)], until_s=4 * HOUR)

    assert scaling_of(report).evictions_by_reason()["interrupted"] > 1
    assert report.pods[-1].is_placed
