"""The parts of the search: relaxed problems, first fit, sums of prices, exchanges."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.planning import NodePool, NodeType
from bayplan.planning.exchanges import FleetExchanges
from bayplan.planning.first_fit import pack_first_fit
from bayplan.planning.fleet import NodeGroupKey, NodeOption, next_sum, spread_over_zones
from bayplan.planning.fluid import (
    PLAIN,
    RESERVE_ACCURACY,
    FleetVariant,
    FluidPlan,
    PlanningProblem,
    above_threshold,
    pool_rows,
    rounded,
    usual_sizes,
)
from bayplan.planning.knapsack import best_pattern, greedy_patterns, most_copies
from bayplan.planning.master import Master
from bayplan.planning.node_probe import NO_CAP, Probe
from bayplan.planning.solver import Rows, maximize
from tests.rig.random_examples import examples

PENALTY = 1000.0


def make_option(cpu: int, memory: int, price: float, classes: int, **more: Any) -> NodeOption:
    """A node with at most 10 pods."""
    amounts = {"cpu": cpu, "memory": memory, "pods": 10}
    one = NodeType(f"{cpu}-{memory}", amounts, amounts, price=price)
    return NodeOption(
        more.get("pool") or NodePool("p", (one,)),
        one,
        more.get("zones", ("",)),
        np.array([10, cpu, memory]),
        np.ones(classes, dtype=np.bool_),
        np.array(more.get("caps", [NO_CAP] * classes)),
    )


def make_problem(
    options: Sequence[NodeOption], sizes: Sequence[tuple[int, int]], demand: Sequence[int]
) -> PlanningProblem:
    requests = np.array([(1, *size) for size in sizes])
    return PlanningProblem(options, requests, np.array(demand, float), list(pool_rows(options)))


def relaxed(problem: PlanningProblem) -> float:
    found = FluidPlan(problem, PENALTY).relax()
    assert found is not None
    return found.price


def test_the_fluid_problem_mixes_pods_of_different_shapes() -> None:
    option = make_option(4, 4, 1.0, 2)

    # A node holds one of each.
    assert relaxed(make_problem([option], [(3, 1), (1, 3)], [4, 4])) == pytest.approx(4.0)


def test_copies_that_do_not_fill_a_node_raise_the_fluid_bound() -> None:
    # Parts of pods would need 2.25 nodes; a node holds one whole pod.
    assert relaxed(make_problem([make_option(4, 99, 1.0, 1)], [(3, 1)], [3])) == pytest.approx(3.0)


def test_a_cap_per_node_raises_the_fluid_bound() -> None:
    option = make_option(4, 4, 1.0, 1, caps=[1])

    assert relaxed(make_problem([option], [(1, 1)], [5])) == pytest.approx(5.0)


def test_minimum_and_maximum_of_a_pool_are_part_of_the_bound() -> None:
    def pool_of(**limits: Any) -> NodeOption:
        one = NodeType("t", {"cpu": 4}, {"cpu": 4}, price=1.0)
        return make_option(4, 4, 1.0, 1, pool=NodePool("p", (one,), **limits))

    dear = make_option(4, 4, 3.0, 1)

    assert relaxed(make_problem([pool_of(minimum=3)], [(4, 4)], [1])) == pytest.approx(3.0)
    assert relaxed(make_problem([pool_of(maximum=2), dear], [(4, 4)], [4])) == pytest.approx(8.0)


def test_a_reserve_prefers_large_nodes() -> None:
    small, large = make_option(4, 40, 1.0, 1), make_option(20, 200, 5.1, 1)
    fluid = FluidPlan(make_problem([small, large], [(2, 1)], [9]), PENALTY)

    assert fluid.whole(0.0) == {0: 5}
    assert fluid.whole(0.8) == {1: 1}


def test_a_variant_leaves_types_out_or_has_more_of_a_resource() -> None:
    cpu_rich, memory_rich = make_option(8, 4, 1.0, 1), make_option(4, 8, 1.1, 1)
    fluid = FluidPlan(make_problem([cpu_rich, memory_rich], [(1, 1)], [16]), PENALTY)

    plain, tilted = fluid.whole(0.5), fluid.whole(0.5, FleetVariant(tilts=(2,)))

    assert fluid.whole(0.0, FleetVariant(frozenset({0}))) == {1: 4}
    assert fluid.whole(0.0, FleetVariant(frozenset({0, 1}))) is None
    assert plain is not None
    assert tilted is not None
    assert tilted[1] > plain[1]


def test_the_reserve_for_a_price_is_the_largest_one() -> None:
    fluid = FluidPlan(make_problem([make_option(8, 80, 1.0, 1)], [(2, 1)], [12]), PENALTY)

    # 3 nodes hold 12 pods, 4 nodes with room for a further one on each.
    assert fluid.reserve_for(2.9, PLAIN) is None
    assert fluid.reserve_for(4.0, PLAIN) == pytest.approx(1.0, abs=RESERVE_ACCURACY)


def test_the_usual_size_has_half_of_what_is_requested_below_it() -> None:
    requests, demand = np.array([(1, 1), (1, 10), (1, 100)]), np.array([30.0, 10.0, 1.0])

    assert usual_sizes(requests, demand).tolist() == [1.0, 10.0]


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(1, 24), st.integers(1, 15))
def test_no_pods_that_fit_on_a_node_weigh_more_than_1_in_a_cut(
    sizes: list[int], k: int, least: int
) -> None:
    pods, room = np.array(sizes), max(sum(sizes), 30)

    assert rounded(pods, room, k).sum() <= 1 + 1e-9
    assert above_threshold(pods, room, min(least, room // 2)).sum() <= 1 + 1e-9


def test_cuts_raise_the_fluid_bound_for_pods_of_several_sizes() -> None:
    # No two of these pods fit on a node; parts of pods would need 4.6 nodes.
    option = make_option(100, 999, 1.0, 3)
    problem = make_problem([option], [(51, 1), (60, 1), (70, 1)], [3, 3, 2])

    assert relaxed(problem) == pytest.approx(8.0)


def brute_force(problem: PlanningProblem) -> float:
    """The price of the cheapest whole nodes with whole pods, found by trying all numbers of nodes."""
    best = np.inf
    for counts in itertools.product(range(5), repeat=len(problem.options)):
        price = sum(one.price * count for one, count in zip(problem.options, counts, strict=True))
        nodes = [problem.options[i].free for i, n in enumerate(counts) for _ in range(n)]
        if price < best and _holds(nodes, _pods(problem)):
            best = price
    return best


def _pods(problem: PlanningProblem) -> list[Any]:
    return [problem.requests[i] for i, n in enumerate(problem.demand.astype(int)) for _ in range(n)]


def _holds(nodes: list[Any], pods: list[Any]) -> bool:
    if not pods:
        return True
    for i, free in enumerate(nodes):
        if (pods[0] <= free).all():
            rest = [*nodes[:i], free - pods[0], *nodes[i + 1 :]]
            if _holds(rest, pods[1:]):
                return True
    return False


sizes = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(st.tuples(sizes, st.integers(1, 2)), min_size=1, max_size=3),
    st.floats(0.5, 3.0, allow_nan=False),
)
def test_no_bound_is_above_the_cheapest_whole_nodes(
    kinds: list[tuple[tuple[int, int], int]], price: float
) -> None:
    options = [make_option(4, 4, 1.0, len(kinds)), make_option(8, 6, round(price, 2), len(kinds))]
    problem = make_problem(options, [size for size, _ in kinds], [n for _, n in kinds])
    fluid = FluidPlan(problem, PENALTY).relax()
    assert fluid is not None
    master = Master(problem, PENALTY, fluid)
    for _ in master.relax(lambda: False):
        pass
    optimum = brute_force(problem)

    assert fluid.price <= master.relaxation.bound + 1e-6
    assert next_sum(master.relaxation.bound, [one.price for one in options]) <= optimum + 1e-6
    assert master.relaxation.bound <= master.relaxation.price + 1e-6


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(st.tuples(sizes, st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=5))
def test_the_best_pattern_is_worth_what_trying_all_finds(
    kinds: list[tuple[tuple[int, int], int, int]],
) -> None:
    option = make_option(7, 6, 1.0, len(kinds))
    requests = np.array([(1, *size) for size, _, _ in kinds])
    limits = most_copies(option, requests, np.array([n for _, n, _ in kinds]))
    values = np.array([float(value) for _, _, value in kinds])
    best = max(
        float(values @ copies)
        for copies in itertools.product(*(range(limit + 1) for limit in limits))
        if (np.array(copies) @ requests <= option.free).all()
    )

    found = best_pattern(option, requests, limits, values)

    assert found.value == pytest.approx(best, rel=0.004)
    assert found.bound >= best - 1e-6
    assert all(
        pattern.value <= best + 1e-9
        for pattern in greedy_patterns(option, requests, limits, values)
    )


@pytest.mark.parametrize(
    ("bound", "prices", "expected"),
    [
        pytest.param(0.5, [0.3], 0.6, id="the next multiple of the only price"),
        pytest.param(0.65, [0.3, 0.5], 0.8, id="a sum of two prices"),
        pytest.param(0.6, [0.3], 0.6, id="a bound that is a sum stays"),
        pytest.param(0.0, [0.3], 0.0, id="nothing to cover"),
        pytest.param(1.0, [1 / 3], 1.0, id="a price with too many digits leaves the bound"),
    ],
)
def test_a_bound_rises_to_the_next_sum_of_prices(
    bound: float, prices: list[float], expected: float
) -> None:
    assert next_sum(bound, prices) == pytest.approx(expected)


def test_first_fit_places_pods_by_cpu_and_takes_the_cheapest_type_for_each_node() -> None:
    options = [make_option(4, 4, 1.0, 2), make_option(4, 16, 1.5, 2)]
    requests = np.array([(1, 1, 8), (1, 4, 1)])

    # The pod with most cpu opens a node of its own, the cheap one; the other two share one with enough memory.
    assert pack_first_fit(options, requests, np.array([2, 1]))[0] == {0: 1, 1: 1}


def test_first_fit_prefers_the_node_with_the_fewest_pods() -> None:
    options = [make_option(10, 10, 1.0, 3)]
    requests = np.array([(1, 6, 1), (1, 3, 1), (1, 1, 1)])

    # Two nodes with 6, one of which gets a 3; then each pod of size 1 goes where fewer pods are.
    assert pack_first_fit(options, requests, np.array([2, 2, 2]))[0] == {0: 2}
    assert pack_first_fit(options, requests, np.array([2, 2, 3]))[0] == {0: 3}


def exchanges_of(options: Sequence[NodeOption], demand: int) -> FleetExchanges:
    """For pods of cpu 2 and memory 2."""
    probe = Probe([], list(options), ["pods", "cpu", "memory"], np.array([(1, 2, 2)]))
    probe.classes = [type("One", (), {"count": demand})()]
    return FleetExchanges(probe)


def test_exchanges_are_within_the_prices_and_have_enough() -> None:
    options = [make_option(4, 4, 1.0, 1), make_option(8, 8, 1.8, 1)]
    exchanges = exchanges_of(options, 8)
    known = {(fleet := spread_over_zones(Counter({0: 5}), options)).key()}
    found: set[tuple[int, int]] = set()
    while (one := exchanges.draw(fleet, (0.0, 4.9), lambda f: f.key() in known)) is not None:
        known.add(one.key())
        counts = one.by_option()
        found.add((counts[0], counts[1]))

    # 16 of each resource are needed: nodes of size 4 and 8, for less than 4.9.
    assert {(4, 0), (2, 1), (3, 1)} <= found <= {(4, 0), (2, 1), (3, 1), (0, 2), (1, 2)}


def test_exchanges_keep_the_minimum_and_the_maximum_of_pools() -> None:
    one = NodeType("t", {"cpu": 4}, {"cpu": 4}, price=1.0)
    pool = NodePool("p", (one,), minimum=3, maximum=4)
    options = [make_option(4, 4, 1.0, 1, pool=pool)]
    fleet = spread_over_zones(Counter({0: 4}), options)

    assert exchanges_of(options, 2).draw(fleet, (3.0, 3.0), lambda _: False) == {
        NodeGroupKey(0, ""): 3
    }
    assert exchanges_of(options, 2).draw(fleet, (1.0, 2.0), lambda _: False) is None
    assert exchanges_of(options, 2).draw(fleet, (5.0, 9.0), lambda _: False) is None


def test_many_nodes_are_exchanged_at_a_time() -> None:
    options = [make_option(4, 4, 1.0, 1), make_option(9, 9, 2.0, 1)]
    fleet = spread_over_zones({0: 100}, options)

    for prices in ((10.0, 99.0), (101.0, 500.0)):
        found = exchanges_of(options, 1).draw(fleet, prices, lambda _: False, scale=8)

        assert found is not None
        counts = found.by_option()
        assert (counts[0] - 100) % 8 == counts[1] % 8 == 0


def test_a_drawn_fleet_may_have_a_node_in_another_zone() -> None:
    options = [make_option(4, 4, 1.0, 1, zones=("x", "y"))]
    fleet = spread_over_zones(Counter({0: 4}), options)
    exchanges, known = exchanges_of(options, 8), {fleet.key()}

    found = exchanges.draw(fleet, (4.0, 4.0), lambda f: f.key() in known)

    assert found is not None
    assert found.size() == 4
    assert found.key() != fleet.key()


def test_nodes_that_run_different_pods_are_spread_over_zones_apart_from_each_other() -> None:
    spot = make_option(8, 8, 0.5, 2, zones=("x", "y"))
    spot.accepts[:] = [True, False]
    other = make_option(4, 4, 1.0, 2, zones=("x", "y"))

    fleet = spread_over_zones(Counter({0: 1, 1: 2}), [spot, other])

    assert {key.zone for key in fleet if key.option == 1} == {"x", "y"}


def test_exchanges_keep_the_nodes_that_some_pods_need() -> None:
    options = [make_option(4, 4, 1.0, 2), make_option(8, 8, 3.0, 2)]
    requests = np.array([(1, 2, 2), (1, 7, 7)])
    probe = Probe([], options, ["pods", "cpu", "memory"], requests)
    probe.classes = [type("One", (), {"count": count})() for count in (4, 1)]
    fleet = spread_over_zones(Counter({0: 3, 1: 1}), options)

    exchanges, known = FleetExchanges(probe), set[object]()
    while (one := exchanges.draw(fleet, (0.0, 5.9), lambda f: f.key() in known)) is not None:
        known.add(one.key())
        assert one.by_option()[1] >= 1

    assert known


def test_the_solver_is_limited_by_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, *([0.5] * 3), *([2.0] * 10_000)])
    monkeypatch.setattr("bayplan.planning.solver.time.process_time", lambda: next(times))
    random = np.random.default_rng(0)
    rows = Rows(random.integers(1, 100, (40, 200)).astype(float), np.full(40, 3000.0))
    values = random.integers(1, 100, 200).astype(float)

    found, bound = maximize(values, rows, np.full(200, 5.0), 1.0)

    assert found is not None
    assert values @ found < bound < values.sum() * 5, "it was interrupted before it was optimal"
    assert next(times) == 2.0
