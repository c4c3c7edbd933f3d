"""Fleets that grow until there is a plan: nodes for a scheduler that spreads pods, and pools at their limit."""

from typing import Any

import numpy as np
import pytest

from bayplan.planning import NodePool
from bayplan.planning.first_fit import grow, with_larger, with_more
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import Demands, FleetVerdict
from bayplan.planning.node_probe import Probe, probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.testing.builders import make_pod

from .test_plan import (
    LARGE,
    POOL,
    SEEDED,
    SMALL,
    make_deployment,
    make_type,
    placed_by_a_simulation,
)

MANY = 300
ONE_SEED = Demands(seeds=1)


def many_and_a_late_one() -> list[Any]:
    """Small pods, which the default scheduler spreads over all nodes, then one that needs a whole node."""
    return [make_deployment("a", MANY, "100m", "64Mi"), make_pod("late", cpu="8", memory="1Gi")]


def probe_of(*objects: Any, pool: NodePool = POOL) -> Probe:
    return probe_workload(prepare_input(objects), [pool], SEEDED)


def fleet_of(*numbers: int) -> Fleet:
    return Fleet({NodeGroupKey(i, ""): n for i, n in enumerate(numbers) if n})


def pending_on(fleet: Fleet, probe: Probe, *missing: int) -> FleetVerdict:
    pods = [one.pod for one, n in zip(probe.classes, missing, strict=True) for _ in range(n)]
    return FleetVerdict(fleet, pods, np.array(missing))


def test_there_is_a_plan_for_a_scheduler_that_spreads_pods_however_dear_it_is() -> None:
    found = plan_nodes(
        many_and_a_late_one(), [POOL], SEEDED, PlanRequest(ONE_SEED, time_limit_s=10)
    )

    assert found.is_complete
    assert placed_by_a_simulation(found, many_and_a_late_one()) == MANY + 1
    # Each small pod is on its own node, so there are almost as many nodes as pods.
    assert found.node_count <= MANY + 1
    assert any("spreads pods over all nodes" in one for one in found.notices)


def test_a_maximum_below_what_the_scheduler_needs_is_named() -> None:
    pool = NodePool("p", (SMALL, LARGE), maximum=100)

    found = plan_nodes(
        many_and_a_late_one(), [pool], SEEDED, PlanRequest(ONE_SEED, time_limit_s=30)
    )

    assert found.pending == {"pod default/late": 1}
    assert "p: the maximum of 100 nodes is too small" in found.notices


def test_nodes_of_a_used_up_pool_are_replaced_by_larger_ones() -> None:
    pool = NodePool("p", (SMALL, LARGE), maximum=2)
    probe = probe_of(make_deployment("a", 4, "1500m"), pool=pool)
    tried: list[Fleet] = []

    def verify(fleet: Fleet) -> FleetVerdict:
        tried.append(fleet)
        return pending_on(fleet, probe, 4 if fleet.by_option()[1] < 2 else 0)

    found = grow(pending_on(fleet_of(2), probe, 2), probe, verify, lambda: False)

    assert found.is_good
    assert tried == [fleet_of(1, 1), fleet_of(0, 2)]


def test_larger_nodes_take_the_same_pods_and_stay_within_the_limits_of_their_pool() -> None:
    other = make_type("other", 8, 4, 0.5)
    probe = probe_of(
        make_deployment("a", 4, "1"),
        pool=NodePool("p", (SMALL, LARGE, other), limits={"cpu": 10_000}),
    )

    assert with_larger(fleet_of(2), probe) == fleet_of(1, 1)
    assert with_larger(fleet_of(3), probe) is None  # 2 x 8 + 2 cores are above the limit
    assert with_larger(fleet_of(0, 1), probe) is None  # the more expensive type has less memory


def test_growing_ends_when_a_node_more_for_every_pod_does_not_help() -> None:
    probe = probe_of(make_deployment("a", 64, "8"))
    sizes: list[int] = []

    def verify(fleet: Fleet) -> FleetVerdict:
        sizes.append(fleet.size())
        return pending_on(fleet, probe, 1)

    found = grow(pending_on(fleet_of(64), probe, 1), probe, verify, lambda: False)

    assert sizes == [64 + 8, 64 + 8 + 16, 64 + 8 + 16 + 32, 64 + 8 + 16 + 32 + 64]
    assert not found.is_good


def test_growing_ends_with_the_time() -> None:
    probe = probe_of(make_deployment("a", 64, "8"))
    start = pending_on(fleet_of(64), probe, 1)

    def verify(fleet: Fleet) -> FleetVerdict:
        raise AssertionError

    assert grow(start, probe, verify, lambda: True) is start


@pytest.mark.parametrize(
    ("missing", "times", "nodes"),
    [
        pytest.param(2, 3, 6, id="so many times the pods"),
        pytest.param(2, 100, 10, id="at most for as many pods as there are"),
        pytest.param(8, 2, 8, id="at least for those that stay pending"),
    ],
)
def test_nodes_are_added_for_many_times_the_pending_pods(
    missing: int, times: int, nodes: int
) -> None:
    probe = probe_of(make_deployment("a", 10, "8"))

    found = with_more(pending_on(fleet_of(5), probe, missing), times, probe)

    assert found == fleet_of(5 + nodes)
