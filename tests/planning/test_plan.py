"""The planner: plans with a known optimum, and invariants."""

import itertools
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.api.node import ZONE
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import (
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from bayplan.config.types import Extender
from bayplan.errors import InputError
from bayplan.planning import NodePool, NodeType
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import NO_DEMANDS, Demands, Verifier
from bayplan.planning.fleet_search import FleetSearch
from bayplan.planning.node_plan import NodePlan
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.planning.rightsizing import rightsize
from bayplan.planning.search_state import SearchState
from bayplan.planning.time_budget import TimeBudget
from bayplan.sim.settings import Settings
from bayplan.sim.simulation import Simulation

SEEDED = Settings(seed=0)
BY_MIX = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: NodeResourcesAlignment, weight: 10}]}}}]
"""
GI = 1 << 30


def make_type(name: str, cpu: int, memory_gi: int, price: float | None, **more: Any) -> NodeType:
    amounts = {"cpu": cpu * 1000, "memory": memory_gi * GI, "pods": 20}
    labels = {"bayplan.dev/pool": "p"} | more.pop("labels", {})
    return NodeType(name, amounts, amounts, labels, price=price, **more)


def make_deployment(name: str, replicas: int, cpu: str, memory: str = "1Gi", **spec: Any) -> Any:
    labels = {"app": name}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]} | spec}
    return decode_object(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
    )


def make_like_deployment(kind: str, api_version: str, replicas: int) -> Any:
    tree = to_dict(make_deployment("r", replicas, "1"))
    return decode_object({**tree, "apiVersion": api_version, "kind": kind})


def make_daemon(cpu: str) -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}}}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    return decode_object(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}
    )


def apart(name: str) -> dict[str, Any]:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SMALL, LARGE = make_type("small", 2, 4, 0.10), make_type("large", 8, 16, 0.36)
POOL = NodePool("p", (SMALL, LARGE))


def plan(*objects: Any, pool: NodePool = POOL, **request: Any) -> NodePlan:
    return plan_nodes(objects, [pool], SEEDED, PlanRequest(time_limit_s=20.0, **request))


def counts(found: NodePlan) -> dict[str, int]:
    return {group.type: group.count for group in found.groups}


def test_the_cheapest_mix_of_types_is_found() -> None:
    found = plan(make_deployment("a", 5, "2"))

    assert counts(found) == {"large": 1, "small": 1}
    assert found.price == pytest.approx(0.46)
    assert found.bound <= found.price
    assert found.is_complete


def test_daemons_take_their_part_of_every_node() -> None:
    found = plan(make_deployment("a", 4, "1900m"), make_daemon("200m"))

    assert counts(found) == {"large": 1}


def test_a_type_without_room_for_its_daemons_is_not_used() -> None:
    found = plan(make_deployment("a", 1, "1"), make_daemon("3"))

    assert counts(found) == {"large": 1}
    assert found.notices == ["p: small is not used: no room for daemon d"]


def test_pods_that_a_quota_refuses_and_custom_workloads_are_named() -> None:
    quota = decode_object(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "3"}},
        }
    )
    rollout = make_like_deployment("Rollout", "argoproj.io/v1alpha1", 1)

    found = plan(quota, make_deployment("a", 4, "1"), rollout)

    *refused, stand_in = found.notices
    starts = (
        "refused: 1 pod of deployment default/a: ",
        "refused: 1 pod of replicaset default/r: ",
    )
    assert len(refused) == 2
    assert all(map(str.startswith, refused, starts))
    assert stand_in == "Rollout.argoproj.io default/r: 1 pod, made by a ReplicaSet in its place"


def test_the_plan_for_a_custom_workload_is_that_for_a_replica_set() -> None:
    custom = plan(make_like_deployment("Rollout", "argoproj.io/v1alpha1", 8))
    built_in = plan(make_like_deployment("ReplicaSet", "apps/v1", 8))

    assert counts(custom) == counts(built_in) == {"large": 1}
    assert custom.bound == built_in.bound


def test_anti_affinity_needs_a_node_each() -> None:
    found = plan(make_deployment("a", 3, "100m", affinity=apart("a")))

    assert counts(found) == {"small": 3}
    assert found.headline() == "3 nodes, 0.30 per hour; no plan is cheaper"


def test_nodes_are_spread_over_zones_for_spread_constraints() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "minDomains": 3,
    }
    pool = NodePool("p", (make_type("small", 2, 4, 0.1, zones=("x", "y", "z")),))

    found = plan(make_deployment("a", 3, "1", topologySpreadConstraints=[constraint]), pool=pool)

    assert sorted(group.zone for group in found.groups) == ["x", "y", "z"]


def test_pods_that_need_a_zone_get_a_node_there() -> None:
    pool = NodePool("p", (make_type("small", 2, 4, 0.1, zones=("x", "y")),))

    found = plan(make_deployment("a", 2, "1500m", nodeSelector={ZONE: "y"}), pool=pool)

    assert [(group.zone, group.count) for group in found.groups] == [("y", 2)]


def test_minimum_maximum_and_limits_of_pools_are_kept() -> None:
    pools = [
        NodePool("cheap", (SMALL,), maximum=2),
        NodePool(
            "dear",
            (make_type("other", 2, 4, 0.2, labels={"bayplan.dev/pool": "dear"}),),
            1,
            limits={"cpu": 4000},
        ),
    ]

    found = plan_nodes([make_deployment("a", 4, "2")], pools, SEEDED, PlanRequest(time_limit_s=20))

    assert counts(found) == {"small": 2, "other": 2}


def test_a_maximum_that_is_too_small_is_named() -> None:
    found = plan(make_deployment("a", 5, "8"), pool=NodePool("p", (SMALL, LARGE), maximum=2))

    assert not found.is_complete
    assert found.pending == {"deployment default/a": 3}
    assert "p: the maximum of 2 nodes is too small" in found.notices
    assert found.messages["deployment default/a"].startswith("0/2 nodes are available")
    assert found.headline().startswith("no plan: 3 pods stay pending")


def test_without_a_plan_the_use_of_nodes_and_a_scheduler_that_spreads_pods_are_shown() -> None:
    spread = NodePool("p", (SMALL,), maximum=2)
    workload = [make_deployment("a", 2, "1"), make_deployment("late", 1, "2")]

    found = plan(*workload, pool=spread)

    assert found.pending == {"deployment default/late": 1}
    assert [group.use["cpu"] for group in found.groups] == [0.5]
    assert found.notices[1:] == [
        "default-scheduler spreads pods over all nodes (NodeResourcesFit scores LeastAllocated), so that large "
        "pods which come late find no node with room; with MostAllocated fewer nodes may do"
    ]


def test_a_scheduler_that_fills_nodes_up_is_not_said_to_spread_pods() -> None:
    strategy = ScoringStrategy(MOST_ALLOCATED, (ResourceSpec("cpu", 1),))
    config = default_config()
    (profile,) = config.profiles
    args = {**profile.plugin_config, "NodeResourcesFit": NodeResourcesFitArgs((), (), strategy)}
    config = replace(config, profiles=(replace(profile, plugin_config=args),))
    workload = [make_deployment("a", 5, "8")]
    pool = NodePool("p", (SMALL, LARGE), maximum=2)

    found = plan_nodes(workload, [pool], Settings(config=config, seed=0), PlanRequest())

    assert found.pending
    assert not any("spreads" in one for one in found.notices)


def test_pods_that_may_not_be_together_are_no_reason_for_another_score() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    apart = make_deployment("a", 3, "1", affinity={"podAntiAffinity": required})
    full = make_deployment("full", 1, "2")
    pool = NodePool("p", (SMALL,), maximum=3)

    request = PlanRequest(Demands(seeds=1), time_limit_s=1)
    found = plan_nodes([full, apart], [pool], SEEDED, request)

    assert "Insufficient cpu" in found.messages["deployment default/a"]
    assert not any("MostAllocated" in one for one in found.notices)
    assert any("keep pods of deployment default/a from nodes" in one for one in found.notices)


@pytest.mark.parametrize("is_aligned", [False, True], ids=["without it", "with it"])
def test_a_plan_with_gaps_names_the_score_by_the_mix_of_resources(is_aligned: bool) -> None:
    lean, large = make_type("lean", 4, 8, 1.0), make_type("large", 4, 32, 1.5)
    workload = [make_deployment("a", 40, "1", "8Gi"), make_deployment("b", 40, "1", "2Gi")]
    asked = Settings(config=parse_config(BY_MIX) if is_aligned else None, seed=0)

    request = PlanRequest(Demands(seeds=1), time_limit_s=5)

    found = plan_nodes(workload, [NodePool("p", (lean, large))], asked, request)

    assert (found.gap < 0.04) == is_aligned
    assert any("with NodeResourcesAlignment" in one for one in found.notices) == (not is_aligned)


def test_pods_that_fit_no_pool_are_named_and_the_others_are_planned() -> None:
    found = plan(make_deployment("huge", 2, "9"), make_deployment("a", 1, "1"))

    (one,) = found.unplaceable
    assert (one.name, one.count) == ("deployment default/huge", 2)
    assert one.reasons == {"Insufficient cpu": ["p/small", "p/large"]}
    assert counts(found) == {"small": 1}


def test_a_type_without_a_price_is_an_error() -> None:
    pool = NodePool("p", (make_type("free", 2, 4, None),), place="pools.yaml: document 1")

    with pytest.raises(
        InputError, match=r"pools\.yaml: document 1: p: free: expected a price per hour"
    ):
        plan(make_deployment("a", 1, "1"), pool=pool)


def test_a_workload_without_pods_is_an_error() -> None:
    with pytest.raises(InputError, match="expected pods that wait for a node; got none"):
        plan(make_deployment("a", 0, "1"))


def test_a_zone_may_be_gone() -> None:
    pool = NodePool("p", (make_type("small", 2, 4, 0.1, zones=("x", "y", "z")),))

    found = plan(make_deployment("a", 4, "1"), pool=pool, demands=Demands("zone"))

    by_zone = {group.zone: group.count for group in found.groups}
    assert all(sum(by_zone.values()) - gone >= 2 for gone in by_zone.values())
    assert found.node_count == 3
    assert found.bound == pytest.approx(0.3)


def test_pods_below_the_priority_may_wait_when_a_zone_is_gone() -> None:
    pool = NodePool("p", (make_type("small", 2, 4, 0.1, zones=("x", "y")),))
    low = make_deployment("low", 2, "2")

    found = plan(low, pool=pool, demands=Demands("zone", survive_priority=1))

    assert found.node_count == 2


def test_a_node_may_be_gone() -> None:
    found = plan(make_deployment("a", 2, "1"), demands=Demands("node"))

    assert counts(found) == {"small": 2}


def test_a_headroom_stays_free_on_every_node() -> None:
    found = plan(make_deployment("a", 2, "1"), demands=Demands(headroom=0.2))

    assert counts(found) == {"small": 2}
    assert all(group.use["cpu"] <= 0.8 for group in found.groups)


def test_kept_nodes_are_used_first() -> None:
    node = SMALL.make_node("here")

    found = plan(node, make_deployment("a", 3, "1"), keep_existing=True)

    assert counts(found) == {"small": 1}
    assert found.bound <= found.price
    # First fit decreasing is computed for the pods without a place on existing nodes, too.
    assert found.first_fit_price == found.price


def test_extenders_are_named_with_what_they_are_not_asked_for() -> None:
    config = replace(default_config({}), extenders=(Extender(url_prefix="http://127.0.0.1:9/"),))
    request = PlanRequest(time_limit_s=20.0)

    found = plan_nodes(
        [make_deployment("a", 2, "1")], [POOL], Settings(config=config, seed=0), request
    )

    assert found.notices == [
        "extenders (http://127.0.0.1:9/) are asked in every simulation that verifies a plan; "
        "the bound and the choice of types leave them out"
    ]


def test_nodes_of_the_input_are_not_used_without_a_word() -> None:
    found = plan(SMALL.make_node("here"), make_deployment("a", 2, "1"))

    assert counts(found) == {"small": 1}
    assert found.notices == ["not used: 1 node of the input; all nodes are planned"]


def test_rightsizing_says_what_to_add_and_what_to_drain() -> None:
    nodes = [SMALL.make_node(f"old-{i}") for i in range(4)]

    found = rightsize(
        [*nodes, make_deployment("a", 8, "1", "512Mi")],
        [POOL],
        SEEDED,
        PlanRequest(time_limit_s=20),
    )

    exchange = found.exchange
    assert exchange is not None
    assert exchange.price_before == pytest.approx(0.4)
    assert found.price == pytest.approx(0.36)
    assert (exchange.added, len(exchange.removed)) == (["new-p-large-1"], 4)
    assert {move.now.node for move in exchange.moves} == {"new-p-large-1"}
    assert exchange.pending == {}


def test_a_good_cluster_stays_as_it_is() -> None:
    found = rightsize(
        [SMALL.make_node("old"), make_deployment("a", 2, "1")],
        [POOL],
        SEEDED,
        PlanRequest(time_limit_s=20),
    )

    assert found.exchange is not None
    assert (found.exchange.kept, found.exchange.added, found.exchange.removed) == (["old"], [], [])


def test_ctrl_c_gives_the_best_plan_so_far() -> None:
    def interrupt(state: Any) -> None:
        if state.best is not None:
            raise KeyboardInterrupt

    found = plan_nodes(
        [make_deployment("a", 9, "1500m")], [POOL], SEEDED, PlanRequest(time_limit_s=20), interrupt
    )

    assert found.is_interrupted
    assert found.is_complete
    assert placed_by_a_simulation(found, [make_deployment("a", 9, "1500m")]) == 9


def test_without_a_bound_nothing_is_said_about_other_plans() -> None:
    found = NodePlan([], 1.0, 0.0, 1)

    assert found.headline() == "0 nodes, 1.00 per hour; there was no time for a bound"
    assert found.to_dict()["gap"] is None


def placed_by_a_simulation(found: NodePlan, objects: list[Any]) -> int:
    nodes = [decode_object(tree) for tree in found.nodes()]
    report = Simulation([*nodes, *objects], seed=0).run()  # type: ignore[list-item]
    assert all(result.is_placed for result in report.pods)
    return len(report.pods)


workloads = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["300m", "700m", "1", "1900m"]),
        st.sampled_from(["256Mi", "1Gi", "3Gi"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def cheapest_by_brute_force(objects: list[Any]) -> float:
    """The least price of up to 4 + 2 nodes on which the scheduler places every pod."""
    given_ = prepare_input(objects)
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    best = float("inf")
    for numbers in itertools.product(range(5), range(3)):
        fleet = Fleet({NodeGroupKey(i, ""): n for i, n in enumerate(numbers) if n})
        price = fleet.price(probe.options)
        if 0 < price < best and verifier.verify(fleet).is_good:
            best = price
    return best


@settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(workloads)
def test_bound_brute_force_and_plan_are_in_order(kinds: list[tuple[int, str, str, bool]]) -> None:
    objects = [
        make_deployment(f"a{i}", n, cpu, memory, **({"affinity": apart(f"a{i}")} if alone else {}))
        for i, (n, cpu, memory, alone) in enumerate(kinds)
    ]

    found = plan_nodes(objects, [POOL], SEEDED, PlanRequest(Demands(seeds=1), time_limit_s=10))
    best = cheapest_by_brute_force(objects)

    assert found.bound <= best + 1e-6
    if counts(found).get("small", 0) < 5 and counts(found).get("large", 0) < 3:
        assert best <= found.price + 1e-6
    assert placed_by_a_simulation(found, objects) == sum(n for n, *_ in kinds)


def test_exchanges_reach_much_cheaper_fleets_where_fleets_are_small() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    search = FleetSearch(probe, verifier, NO_DEMANDS, SearchState(TimeBudget(20.0)))
    search._offer(verifier.verify(Fleet({NodeGroupKey(1, ""): 1})))
    assert search.state.price == pytest.approx(LARGE.price)

    search._improve()

    assert search.state.price == pytest.approx(SMALL.price)


def test_a_good_fleet_is_tried_without_the_nodes_that_run_no_pods() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1"), make_daemon("100m")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    search = FleetSearch(probe, verifier, NO_DEMANDS, SearchState(TimeBudget(20.0)))
    verdict = verifier.verify(Fleet({NodeGroupKey(1, ""): 4}))

    search._offer(verdict)

    assert verdict.idle == {NodeGroupKey(1, ""): 2}
    assert search.state.price == pytest.approx(2 * (LARGE.price or 0))
