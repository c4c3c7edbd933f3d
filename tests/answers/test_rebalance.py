"""Rebalance: the filters accept every move, budgets hold, and the objective falls as planned."""

from collections import Counter
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers.rebalance import even_use, plan_rebalance
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.choices import Objective
from bayplan.errors import InputError
from bayplan.framework import CycleState, FilterPlugin, NodeInfo, Status, unschedulable
from bayplan.scheduler import Inquiry
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned

LABELS = {"app": "web"}


def make_owned(name: str, node: str, kind: str = "ReplicaSet", **fields: Any) -> Pod:
    return owned(make_pod(name, node_name=node, labels=LABELS, **fields), kind=kind)


def make_budget(**spec: Any) -> Any:
    fields = {"selector": {"matchLabels": LABELS}, **spec}
    return make_object("PodDisruptionBudget", "web", spec=fields)


def make_pinned(name: str, node: str, wanted: str) -> Pod:
    """A pod that may only run on the node `wanted`."""
    field = {"key": "metadata.name", "operator": "In", "values": [wanted]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return make_owned(name, node, cpu="1", node_affinity=affinity)


def make_priced(name: str, cost: str) -> Node:
    return make_node(name, annotations={"bayplan.dev/cost": cost})


UNSCHEDULABLE = ["node.kubernetes.io/unschedulable:NoSchedule"]


@pytest.mark.parametrize(
    ("objective", "objects", "values", "moves"),
    [
        pytest.param(
            Objective.PACK,
            [
                make_node("a"),
                make_node("b"),
                make_node("c"),
                make_owned("on-a", "a", cpu="2"),
                make_owned("b1", "b", cpu="1"),
                make_owned("b2", "b", cpu="1"),
                make_owned("c1", "c", cpu="3"),
                make_owned("log", "b", kind="DaemonSet"),
            ],
            [3, 2],
            ["on-a from a to b: a is empty then"],
            id="pack empties a node or leaves it alone",
        ),
        pytest.param(
            Objective.COST,
            [
                make_priced("cheap", "1"),
                make_priced("dear", "9.5"),
                make_priced("roomy", "2"),
                make_owned("c", "cheap", cpu="3"),
                make_owned("d", "dear", cpu="3"),
                make_owned("r", "roomy", cpu="1"),
            ],
            [12.5, 3.0],
            ["d from dear to roomy: dear is empty then"],
            id="cost empties the node that costs most",
        ),
        pytest.param(
            Objective.COST,
            [
                make_priced("a", "9"),
                make_priced("b", "1"),
                make_owned("p", "a", cpu="1"),
                make_owned("q", "a", cpu="2"),
                make_owned("r", "b", cpu="1"),
            ],
            [10, 10, 1],
            ["q from a to b: 1 of 2 moves that empty a", "p from a to b: a is empty then"],
            id="a move that gains something only with others is marked",
        ),
        pytest.param(
            Objective.COST,
            [
                make_priced("a", "0"),
                make_node("b"),
                make_owned("p", "a", cpu="1"),
                make_pod("without-owner", node_name="b", cpu="1"),
            ],
            [8],
            [],
            id="to empty a node that costs nothing gains nothing",
        ),
        pytest.param(
            Objective.SPREAD,
            [
                make_node("a", cpu="100", memory="400Gi"),
                make_node("b", cpu="100", memory="400Gi"),
                make_owned("tiny-1", "a", cpu="3m"),
                make_owned("tiny-2", "a", cpu="3m"),
            ],
            [0],
            [],
            id="a gain too small to be shown does not count",
        ),
        pytest.param(
            Objective.CONSTRAINTS,
            [
                make_node("tainted", taints=["gpu:NoSchedule"]),
                make_node("cordoned", unschedulable=True, taints=UNSCHEDULABLE),
                make_node("small", cpu="1"),
                make_node("free"),
                make_owned("wrong", "tainted"),
                make_owned("tolerant", "tainted", tolerations=["gpu:NoSchedule"]),
                make_owned("stays", "cordoned"),
                make_owned("too-large", "small", cpu="2"),
            ],
            [2, 1, 0],
            [
                "wrong from tainted to free: node(s) had untolerated taint(s)",
                "too-large from small to free: Insufficient cpu",
            ],
            id="constraints moves pods that their node would reject",
        ),
        pytest.param(
            Objective.CONSTRAINTS,
            [
                make_node("a"),
                make_node("b"),
                make_pinned("right", "a", "a"),
                make_pinned("wrong", "a", "b"),
            ],
            [1, 0],
            ["wrong from a to b: node(s) didn't satisfy plugin(s) [NodeAffinity]"],
            id="pods that name different nodes are judged separately",
        ),
    ],
)
def test_moves_by_objective(
    objective: Objective, objects: list[Any], values: list[float], moves: list[str]
) -> None:
    plan = plan_rebalance(objects, objective)

    found = [f"{m.pod.split('/')[1]} from {m.source} to {m.target}: {m.why}" for m in plan.moves]
    assert found == moves
    steps = [plan.before, *(move.after for move in plan.moves)]
    assert steps == pytest.approx(values, abs=1e-3)
    assert plan.after == steps[-1]
    assert [move.before for move in plan.moves] == steps[:-1]


def test_spread_moves_from_the_fullest_to_the_emptiest() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    pods = [make_owned(f"p{i}", "a", cpu="1", memory="4Gi") for i in range(3)]

    plan = plan_rebalance([*nodes, *pods])

    assert sorted(move.target for move in plan.moves) == ["b", "c"]
    assert plan.after == pytest.approx(0)
    assert plan.moves[0].gain > 0


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("p", node_name="a", cpu="2"), id="without an owner"),
        pytest.param(make_owned("p", "a", kind="DaemonSet", cpu="2"), id="a daemon"),
        pytest.param(make_owned("p", "a", kind="Node", cpu="2"), id="a static pod"),
        pytest.param(make_owned("p", "a", cpu="2", priority=2_000_000_000), id="a critical pod"),
        pytest.param(
            make_owned("p", "a", cpu="2", node_selector={"kubernetes.io/hostname": "a"}),
            id="one that fits nowhere else",
        ),
    ],
)
@pytest.mark.parametrize("objective", list(Objective))
def test_some_pods_are_not_moved(pod: Pod, objective: Objective) -> None:
    nodes = [make_node("a"), make_node("b")]

    plan = plan_rebalance([*nodes, make_owned("q", "b"), pod], objective)

    assert "default/p" not in [move.pod for move in plan.moves]


FOUR_ON_ONE: list[Any] = [
    make_node("a"),
    make_node("b"),
    *(make_owned(f"p{i}", "a", cpu="1") for i in range(4)),
]


@pytest.mark.parametrize(
    ("budget", "moves"),
    [
        pytest.param({"maxUnavailable": 0}, 0, id="none may go"),
        pytest.param({"maxUnavailable": 1}, 1, id="one may go in the whole plan"),
        pytest.param({"minAvailable": "0%"}, 2, id="all may go"),
    ],
)
def test_budgets_hold_over_the_plan(budget: dict[str, Any], moves: int) -> None:
    plan = plan_rebalance([*FOUR_ON_ONE, make_budget(**budget)])

    assert len(plan.moves) == moves
    assert not any(use.is_violated for use in plan.budgets)


def test_a_plan_has_at_most_max_moves() -> None:
    assert len(plan_rebalance(FOUR_ON_ONE, max_moves=1).moves) == 1


def test_a_cost_that_is_not_a_number_is_reported() -> None:
    with pytest.raises(InputError) as caught:
        plan_rebalance([make_priced("a", "dear"), make_owned("p", "a")], Objective.COST)

    assert str(caught.value) == (
        "node a: metadata.annotations[bayplan.dev/cost]: expected a number that is not negative; "
        'got "dear"'
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Any]:
    nodes = [
        make_node(
            f"n{i}",
            cpu=str(draw(st.integers(2, 6))),
            zone=draw(st.sampled_from("xy")),
            taints=draw(st.sampled_from([(), ("t:NoSchedule",)])),
        )
        for i in range(draw(st.integers(2, 5)))
    ]
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": LABELS},
        }
    ]
    pods = [
        make_owned(
            f"p{i}",
            draw(st.sampled_from(nodes)).name,
            cpu=str(draw(st.integers(0, 2))),
            memory=draw(st.sampled_from(["1Gi", "4Gi"])),
            spread=draw(st.sampled_from([(), spread])),
            tolerations=draw(st.sampled_from([(), ("t:NoSchedule",)])),
        )
        for i in range(draw(st.integers(0, 9)))
    ]
    budget = [make_budget(maxUnavailable=draw(st.integers(0, 4)))] if draw(st.booleans()) else []
    return [*nodes, *pods, *budget]


def accepts(objects: list[Any], waiting: Pod) -> set[str]:
    """The nodes that accept the pod, according to a fresh scheduler."""
    simulation = Simulation([*objects, waiting])
    simulation.begin()
    table = simulation.scheduler.cache.table
    rows = table.numbers(Inquiry(simulation.scheduler, waiting).rows)
    return {table.names[row] for row in rows}


def home_refuses(objects: list[Any], pod: Pod) -> bool:
    others = [obj for obj in objects if obj is not pod]
    return pod.node_name not in accepts(others, pod.replace(node_name="", uid="new"))


def value(objects: list[Any], objective: Objective) -> float:
    """The objective, recomputed node by node."""
    nodes = [obj for obj in objects if obj.kind == "Node"]
    pods = [obj for obj in objects if obj.kind == "Pod"]
    if objective is Objective.CONSTRAINTS:
        return sum(home_refuses(objects, pod) for pod in pods)
    if objective is not Objective.SPREAD:
        in_use = {pod.node_name for pod in pods}
        prices = {
            n.name: n.allocatable["cpu"] / 1000 + n.allocatable["memory"] / 2**30 / 4 for n in nodes
        }
        return sum(1 if objective is Objective.PACK else prices[name] for name in in_use)
    squares = []
    for name in ("cpu", "memory"):
        used: Counter[str] = Counter()
        for pod in pods:
            used[pod.node_name] += pod.requests.get(name, 0)
        mean = sum(used.values()) / sum(node.allocatable[name] for node in nodes)
        squares += [(used[n.name] / n.allocatable[name] - mean) ** 2 for n in nodes]
    return sqrt(sum(squares) / len(squares))


class Refusing(FilterPlugin):
    """Refuses every node, and counts the nodes that it judged for a pod at home."""

    name = "Refusing"
    judged = 0

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        Refusing.judged += pod.name != "probe"
        return unschedulable("not today")


def count_judged(nodes: int) -> int:
    """The nodes that are judged for pods at home, with a misplaced pod on each node and no move."""
    Refusing.judged = 0
    objects: list[Any] = []
    for i in range(nodes):
        objects += [make_node(f"n{i}"), make_pod(f"p{i}", node_name=f"n{i}")]
    plan = plan_rebalance(objects, Objective.CONSTRAINTS, Settings(plugins=(Refusing,)))

    assert (plan.before, plan.moves) == (nodes, [])
    return Refusing.judged


def test_a_misplaced_pod_is_judged_on_its_own_node_only() -> None:
    assert count_judged(16) == 8 * count_judged(2)


@pytest.mark.parametrize("objective", list(Objective))
@given(objects=clusters())
@settings(max_examples=25)
def test_a_plan_can_be_executed_with_the_gain_it_states(
    objective: Objective, objects: list[Any]
) -> None:
    plan = plan_rebalance(objects, objective, max_moves=6)

    assert plan.before == pytest.approx(value(objects, objective))
    for move in plan.moves:
        (pod,) = [obj for obj in objects if obj.kind == "Pod" and obj.key == move.pod]
        others = [obj for obj in objects if obj is not pod]
        assert pod.node_name == move.source
        assert move.target in accepts(others, pod.replace(node_name="", uid="new"))
        assert move.before == pytest.approx(value(objects, objective))
        objects = [*others, pod.with_node(move.target)]
        assert move.after == pytest.approx(value(objects, objective))
        assert move.gain >= 0
    if objective in (Objective.SPREAD, Objective.CONSTRAINTS):
        assert all(move.gain > 0 for move in plan.moves)
    assert len(plan.moves) == len({move.pod for move in plan.moves}) <= 6
    assert not any(use.is_violated for use in plan.budgets)


@pytest.mark.parametrize("objective", [Objective.SPREAD, Objective.PACK])
@given(objects=clusters())
@settings(max_examples=25)
def test_by_eviction_the_scheduler_places_every_pod_on_its_target(
    objective: Objective, objects: list[Any]
) -> None:
    plan = plan_rebalance(objects, objective, max_moves=6, by_eviction=True)

    for move in plan.moves:
        (pod,) = [obj for obj in objects if obj.kind == "Pod" and obj.key == move.pod]
        others = [obj for obj in objects if obj is not pod]
        evicted = pod.replace(node_name="", uid="new")
        for seed in range(3):
            waiting = [obj for obj in others if obj.kind != "Pod" or obj.node_name]
            placed = Simulation([*waiting, evicted], seed=seed).run().placed
            assert [result.attempt.node_name for result in placed] == [move.target]
        objects = [*others, pod.with_node(move.target)]


def test_by_eviction_omits_moves_the_scheduler_would_undo() -> None:
    nodes = [make_node("a"), make_node("b")]
    pods = [make_owned("p", "a", cpu="1"), make_owned("q", "b", cpu="1")]

    assert plan_rebalance([*nodes, *pods], Objective.PACK).moves
    assert not plan_rebalance([*nodes, *pods], Objective.PACK, by_eviction=True).moves


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 8))
def test_the_most_promising_come_first_however_many_are_ordered_at_once(
    values: list[int], few: int
) -> None:
    bounds = np.array(values, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(even_use, "FEW", few)
        found = list(even_use._descending(bounds))

    assert found == sorted(range(len(values)), key=lambda place: (-values[place], place))
