"""Plans that must stand a loss or keep room, judged by simulations of their nodes that the planner has no part in."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bayplan.api.node import ZONE, Node
from bayplan.api.wire.decode import decode_object
from bayplan.planning import NodePool, NodeType
from bayplan.planning.fleet_check import Demands
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.planning.rightsizing import rightsize
from bayplan.sim.settings import Settings
from bayplan.sim.simulation import Simulation
from tests.rig.random_examples import examples

GI = 1 << 30
HIGH = 100


def make_type(name: str, cpu: int, memory_gi: int, price: float) -> NodeType:
    amounts = {"cpu": cpu * 1000, "memory": memory_gi * GI, "pods": 20}
    labels = {"bayplan.dev/pool": "p"}
    return NodeType(name, amounts, amounts, labels, price=price, zones=("x", "y", "z"))


POOL = NodePool("p", (make_type("small", 2, 4, 0.10), make_type("large", 8, 16, 0.36)))


def make_pods(name: str, count: int, cpu: str, memory: str, priority: int) -> list[Any]:
    requests = {"cpu": cpu, "memory": memory}
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    trees = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "labels": {"app": name}},
            "spec": spec | {"priority": priority},
        }
        for i in range(count)
    ]
    return [decode_object(tree) for tree in trees]


kinds = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["300m", "1", "1900m"]),
        st.sampled_from(["256Mi", "2Gi"]),
        st.sampled_from([0, HIGH]),
    ),
    min_size=1,
    max_size=3,
)
quick = settings(max_examples=examples(3), deadline=None, phases=[Phase.explicit, Phase.generate])


def workload(drawn: list[tuple[int, str, str, int]]) -> list[Any]:
    return [pod for i, kind in enumerate(drawn) for pod in make_pods(f"k{i}", *kind)]


def plan(objects: list[Any], **request: Any) -> list[Node]:
    found = plan_nodes(objects, [POOL], Settings(seed=0), PlanRequest(time_limit_s=2.0, **request))
    assert found.is_complete
    nodes = [decode_object(tree) for tree in found.nodes()]
    return [node for node in nodes if isinstance(node, Node)]


def pending(nodes: list[Any], objects: list[Any]) -> list[str]:
    if not nodes:
        return [pod.name for pod in objects]
    report = Simulation([*nodes, *objects], seed=0).run()
    return [result.pod.name for result in report.pods if not result.is_placed]


@quick
@given(kinds)
def test_with_any_zone_gone_every_pod_fits_on_the_rest(
    drawn: list[tuple[int, str, str, int]],
) -> None:
    objects = workload(drawn)

    nodes = plan(objects, demands=Demands("zone"))

    assert len({node.labels[ZONE] for node in nodes}) >= 2
    for zone in ("x", "y", "z"):
        assert pending([node for node in nodes if node.labels[ZONE] != zone], objects) == []


@quick
@given(kinds)
def test_with_any_node_gone_every_pod_fits_on_the_rest(
    drawn: list[tuple[int, str, str, int]],
) -> None:
    objects = workload(drawn)

    nodes = plan(objects, demands=Demands("node"))

    for gone in nodes:
        assert pending([node for node in nodes if node is not gone], objects) == []


@quick
@given(kinds)
def test_with_any_zone_gone_pods_of_the_priority_fit_on_the_rest(
    drawn: list[tuple[int, str, str, int]],
) -> None:
    objects = workload(drawn)
    low = {pod.name for pod in objects if pod.priority < HIGH}

    nodes = plan(objects, demands=Demands("zone", survive_priority=HIGH))

    assert pending(nodes, objects) == []
    for zone in ("x", "y", "z"):
        rest = [node for node in nodes if node.labels[ZONE] != zone]
        assert set(pending(rest, objects)) <= low


@quick
@given(kinds, st.sampled_from([0.1, 0.3]))
def test_a_headroom_stays_free_on_every_node(
    drawn: list[tuple[int, str, str, int]], headroom: float
) -> None:
    objects = workload(drawn)

    nodes = plan(objects, demands=Demands(headroom=headroom))

    smaller = [
        node.replace(
            allocatable={
                name: amount if name == "pods" else int(amount * (1 - headroom))
                for name, amount in node.allocatable.items()
            }
        )
        for node in nodes
    ]
    assert pending(smaller, objects) == []


@quick
@given(kinds)
def test_nodes_that_stay_and_the_planned_ones_hold_every_pod(
    drawn: list[tuple[int, str, str, int]],
) -> None:
    objects, kept = workload(drawn), [POOL.types[0].make_node("kept", "x")]

    nodes = plan([*kept, *objects], keep_existing=True)

    assert pending([*kept, *nodes], objects) == []


@quick
@given(kinds, st.integers(1, 3))
def test_the_nodes_after_an_exchange_hold_every_pod_and_cost_no_more(
    drawn: list[tuple[int, str, str, int]], count: int
) -> None:
    objects = workload(drawn)
    old = [POOL.types[1].make_node(f"old-{i}", "xyz"[i]) for i in range(count)]

    found = rightsize([*old, *objects], [POOL], Settings(seed=0), PlanRequest(time_limit_s=2.0))

    assert found.exchange is not None
    assert found.exchange.price_before == pytest.approx(0.36 * count)
    nodes = [decode_object(tree) for tree in found.nodes()]
    assert pending(nodes, objects) == []
    if not pending(old, objects):
        assert found.price <= 0.36 * count + 1e-9
