"""Dominance: options that a search leaves out because others replace them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.devices import ResourceSliceSpec
from bayplan.planning import NodePool, NodeType
from bayplan.planning.fleet import NodeOption
from bayplan.planning.fluid import FluidPlan, PlanningProblem, least_price, pool_rows
from bayplan.planning.node_probe import NO_CAP, without_replaceable
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.planning.rightsizing import rightsize
from tests.rig.random_examples import examples

from .test_plan import SEEDED, counts, make_deployment, make_type
from .test_searching_parts import PENALTY, make_problem

ROOMY, LIMITED = NodePool("roomy", ()), NodePool("limited", (), limits={"cpu": 100})
AT_MOST = NodePool("at-most", (), maximum=3)


def option(name: str, price: float = 1.0, cpu: int = 4, **more: Any) -> NodeOption:
    amounts = {"cpu": cpu, "memory": 8, "pods": 10}
    return NodeOption(
        more.get("pool", ROOMY),
        NodeType(
            name,
            amounts,
            amounts,
            price=price,
            csi_limits=more.get("csi_limits", {}),
            slices=more.get("slices", ()),
        ),
        more.get("zones", ("a", "b")),
        np.array([10, cpu, 8]),
        np.array(more.get("accepts", (True, True))),
        np.array(more.get("caps", (NO_CAP, NO_CAP))),
    )


PLAIN = option("plain")


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        pytest.param(option("dear", 1.1), False, id="a dearer one of the same size goes"),
        pytest.param(option("small", 1.0, 2), False, id="a smaller one at the same price goes"),
        pytest.param(option("equal"), False, id="of two that are equal the first stays"),
        pytest.param(option("cheap", 0.5, 2), True, id="a smaller one that is cheaper stays"),
        pytest.param(option("large", 1.5, 8), True, id="a larger one stays"),
        pytest.param(option("zone", 1.1, zones=("c",)), True, id="one in another zone stays"),
        pytest.param(
            option("one-zone", 1.1, zones=("a",)), False, id="a dearer one in fewer zones goes"
        ),
        pytest.param(
            option("few", 1.1, accepts=(True, False)), False, id="one that runs fewer pods goes"
        ),
        pytest.param(
            option("other-pool", 1.1, pool=NodePool("q", ())),
            False,
            id="a dearer one of another pool goes",
        ),
        pytest.param(
            option("limited", 1.1, pool=LIMITED), True, id="one of a pool with limits stays"
        ),
        pytest.param(
            option("at-most", 1.1, pool=AT_MOST), True, id="one of a pool with a maximum stays"
        ),
    ],
)
def test_an_option_goes_if_another_holds_as_much_for_less(other: NodeOption, stays: bool) -> None:
    found = without_replaceable([PLAIN, other], [])

    assert [one.type.name for one in found] == ["plain"] + [other.type.name] * stays


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        pytest.param(
            option("a", 1.0, accepts=(True, False)),
            option("b", 1.1),
            2,
            id="one that runs more pods stays though it is dearer",
        ),
        pytest.param(
            option("a", 1.0, caps=(1, NO_CAP)),
            option("b", 1.1),
            2,
            id="one that runs more copies stays though it is dearer",
        ),
        pytest.param(
            option("a", 1.0, 8, pool=LIMITED),
            option("b", 1.0, 4, pool=LIMITED),
            2,
            id="a smaller one stays where it takes less of a limit",
        ),
        pytest.param(
            option("a", 1.0, 4, pool=LIMITED),
            option("b", 1.1, 4, pool=LIMITED),
            1,
            id="a dearer one of the same size goes also where pools have limits",
        ),
        pytest.param(
            option("a", 1.0, csi_limits={"disks": 1}),
            option("b", 1.1, csi_limits={"disks": 9}),
            2,
            id="a dearer one stays if it takes more volumes",
        ),
        pytest.param(
            option("a", 1.0, csi_limits={"disks": 1}),
            option("b", 1.1, csi_limits={"disks": 0}),
            1,
            id="a dearer one goes if it takes no volumes",
        ),
        pytest.param(
            option("a", 1.0, csi_limits={"disks": 9}),
            option("b", 1.1, csi_limits={"disks": 9}),
            1,
            id="a dearer one goes if it takes as many volumes",
        ),
        pytest.param(
            option("a", 1.0),
            option("b", 1.1, slices=(ResourceSliceSpec(driver="gpus"),)),
            2,
            id="a dearer one stays if it has devices",
        ),
        pytest.param(
            option("a", 1.0, pool=AT_MOST),
            option("b", 1.0, 2, pool=AT_MOST),
            1,
            id="a smaller one goes where only the number of nodes is limited",
        ),
    ],
)
def test_what_pods_and_pools_allow_is_kept(
    first: NodeOption, second: NodeOption, left: int
) -> None:
    assert len(without_replaceable([first, second], [])) == left


def test_needed_types_stay() -> None:
    dear = option("dear", 2.0)

    assert without_replaceable([PLAIN, dear], [dear.type]) == [PLAIN, dear]


sizes = st.lists(
    st.tuples(st.integers(1, 8), st.integers(1, 16), st.integers(1, 9)), min_size=1, max_size=9
)


@settings(max_examples=examples(15), deadline=None)
@given(sizes, st.integers(1, 3), st.integers(1, 40))
def test_the_bound_is_the_same_without_replaceable_options(
    kinds: list[tuple[int, int, int]], size: int, count: int
) -> None:
    options = [
        NodeOption(
            ROOMY,
            NodeType(f"t{i}", {"cpu": cpu}, {"cpu": cpu}, price=price / 4),
            ("",),
            np.array([10, cpu, memory]),
            np.ones(1, dtype=np.bool_),
            np.full(1, NO_CAP),
        )
        for i, (cpu, memory, price) in enumerate(kinds)
    ]

    def bound(some: list[NodeOption]) -> float:
        problem = PlanningProblem(
            some, np.array([[1, size, 1]]), np.array([float(count)]), list(pool_rows(some))
        )
        found = FluidPlan(problem, PENALTY).relax()
        assert found is not None
        assert least_price(problem) <= found.price + 1e-6
        return found.price

    assert bound(without_replaceable(options, [])) == pytest.approx(bound(options))


def test_a_bound_is_there_when_there_is_no_time_for_a_linear_program() -> None:
    problem = make_problem([option("a", 2.0), option("b", 3.0, 8)], [(2, 1), (1, 1)], [9, 9])

    assert least_price(problem) == pytest.approx(27 / 8 * 3.0)


SMALL, LARGE = make_type("small", 2, 4, 0.10), make_type("large", 8, 16, 0.36)
DEAR = make_type("dear", 2, 4, 0.11)


def test_types_that_are_left_out_are_counted() -> None:
    pool = NodePool("p", (SMALL, LARGE, DEAR))

    found = plan_nodes([make_deployment("a", 5, "2")], [pool], SEEDED, PlanRequest())

    assert counts(found) == {"large": 1, "small": 1}
    assert found.notices == [
        "1 of 3 node types are left out: others hold as much at no higher price"
    ]


def test_the_types_of_a_cluster_that_is_planned_again_are_not_left_out() -> None:
    pool = NodePool("p", (SMALL, LARGE, DEAR))
    nodes = [DEAR.make_node(f"old-{i}") for i in range(2)]

    found = rightsize([*nodes, make_deployment("a", 4, "1")], [pool], SEEDED, PlanRequest())

    assert found.exchange is not None
    assert found.exchange.price_before == pytest.approx(0.22)
    assert counts(found) == {"small": 2}
