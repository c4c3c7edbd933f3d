"""NodeResourcesFit, Score: the three strategies."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.amounts import ShareKind, ShareRule
from bayplan.amounts.scoring import MAX_EXACT, rule_points
from bayplan.api.pod import Pod
from bayplan.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from bayplan.framework import SUCCESS, CycleState
from bayplan.framework.scores import broken_line
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_rows_agree

GPU = "example.com/gpu"
Shape = list[tuple[int, int]]
RISING: Shape = [(0, 0), (100, 10)]
FALLING: Shape = [(0, 10), (100, 0)]
PEAK: Shape = [(0, 0), (70, 10), (100, 5)]


def fit(
    kind: str = LEAST_ALLOCATED, shape: Shape | None = None, **weights: int
) -> NodeResourcesFit:
    """The plugin as a configuration makes it; `gpu` stands for the extended resource."""
    points = tuple(UtilizationShapePoint(at, score) for at, score in shape or ())
    strategy = ScoringStrategy(
        kind,
        tuple(
            ResourceSpec({"gpu": GPU, "storage": "ephemeral-storage"}.get(name, name), weight)
            for name, weight in (weights or {"cpu": 1, "memory": 1}).items()
        ),
        RequestedToCapacityRatioParam(points) if shape else None,
    )
    return NodeResourcesFit.from_args(
        NodeResourcesFitArgs(scoring_strategy=strategy), make_handle()
    )


def scores(plugin: NodeResourcesFit, pod: Pod, table: NodeTable) -> list[int]:
    state = CycleState()
    assert plugin.pre_score(state, pod, table, ALL) == SUCCESS
    check_rows_agree(plugin, pod, table, state)
    found = plugin.score_rows(state, pod, table, ALL)
    assert plugin.normalize(found) is found  # scores are final
    points: list[int] = found.tolist()
    return points


def one_node(*pods: Pod, **node: Any) -> NodeTable:
    given = {"cpu": "4", "memory": "8192Mi", **node}
    return make_table(make_node("a", **given), pods=pods)


def test_a_resource_that_is_listed_twice_counts_with_both_weights() -> None:
    listed = tuple(
        ResourceSpec(name, weight) for name, weight in [("cpu", 2), ("memory", 1), ("cpu", 1)]
    )
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(LEAST_ALLOCATED, listed))

    plugin = NodeResourcesFit.from_args(args, make_handle())

    assert scores(plugin, ASKS, one_node(USED)) == scores(
        fit(cpu=3, memory=1), ASKS, one_node(USED)
    )


USED = make_pod("q", node_name="a", cpu="2500m", memory="3000Mi")
ASKS = make_pod("p", cpu="500m", memory="2000Mi")  # 3000m and 5000Mi with the pod on the node
EMPTY = make_pod("p")


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        pytest.param(fit(cpu=1, memory=1), 31, id="LeastAllocated"),
        pytest.param(fit(cpu=3, memory=1), 28, id="LeastAllocated, cpu counts three times"),
        pytest.param(fit(MOST_ALLOCATED, cpu=1, memory=1), 68, id="MostAllocated"),
        pytest.param(fit(MOST_ALLOCATED, cpu=3, memory=1), 71, id="MostAllocated, weighted"),
        pytest.param(fit(REQUESTED_TO_CAPACITY_RATIO, RISING), 68, id="a rising shape"),
        pytest.param(fit(REQUESTED_TO_CAPACITY_RATIO, FALLING), 32, id="a falling shape"),
        pytest.param(
            fit(REQUESTED_TO_CAPACITY_RATIO, PEAK),
            90,
            id="a shape with a peak: 92 truncated toward zero, 89.5 rounded up",
        ),
    ],
)
def test_score(plugin: NodeResourcesFit, expected: int) -> None:
    assert scores(plugin, ASKS, one_node(USED)) == [expected]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(None, 31, id="no args"),
        pytest.param(NodeResourcesFitArgs(), 31, id="args without a strategy"),
    ],
)
def test_default_is_least_allocated_of_cpu_and_memory(
    args: NodeResourcesFitArgs | None, expected: int
) -> None:
    plugin = NodeResourcesFit.from_args(args, make_handle())

    assert scores(plugin, ASKS, one_node(USED)) == [expected]
    assert scores(NodeResourcesFit(), ASKS, one_node(USED)) == [expected]


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(EMPTY, [], 97, id="a pod without requests counts for a little"),
        pytest.param(make_pod(images=["a", "b"]), [], 95, id="so does each of its containers"),
        pytest.param(
            EMPTY, [make_pod("q", node_name="a")], 95, id="so does a pod that is there already"
        ),
        pytest.param(
            make_pod(cpu="0", memory="0"), [], 100, id="a request of nothing counts for nothing"
        ),
        pytest.param(make_pod(cpu="5", memory="0"), [], 50, id="more than there is scores nothing"),
    ],
)
def test_what_counts_as_requested(pod: Pod, others: list[Pod], expected: int) -> None:
    assert scores(fit(), pod, one_node(*others)) == [expected]


def test_most_allocated_does_not_go_beyond_full() -> None:
    pod = make_pod(cpu="9", memory="4096Mi")

    assert scores(fit(MOST_ALLOCATED), pod, one_node()) == [75]


def test_ratio_does_not_go_beyond_full() -> None:
    pod = make_pod(cpu="9", memory="4096Mi")

    assert scores(fit(REQUESTED_TO_CAPACITY_RATIO, RISING), pod, one_node()) == [75]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({}, [87, 87], id="not asked for: it does not count"),
        pytest.param({GPU: 1}, [65, 87], id="asked for: it counts where the node has it"),
    ],
)
def test_extended_resource_counts_when_asked_for(
    requests: dict[str, int], expected: list[int]
) -> None:
    with_gpu = make_node("with", cpu="4", memory="8Gi", extended={GPU: 2})
    without = make_node("without", cpu="4", memory="8Gi")
    others = [make_pod("q", node_name="with", requests={GPU: 1}, cpu="0", memory="0")]
    pod = make_pod(cpu="500m", memory="1Gi", requests=requests)

    table = make_table(with_gpu, without, pods=others)

    # cpu and memory give 87 each; of the two devices none would be left: (3 * 87 + 3 * 87 + 2 * 0) / 8
    assert scores(fit(cpu=3, memory=3, gpu=2), pod, table) == expected


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        pytest.param(LEAST_ALLOCATED, None, id="LeastAllocated"),
        pytest.param(MOST_ALLOCATED, None, id="MostAllocated"),
        pytest.param(REQUESTED_TO_CAPACITY_RATIO, RISING, id="RequestedToCapacityRatio"),
    ],
)
def test_a_resource_the_node_has_not_is_left_out(kind: str, shape: Shape | None) -> None:
    pod, node = make_pod(cpu="2", memory="4Gi"), one_node(memory=None)

    assert scores(fit(kind, shape), pod, node) == [50]
    assert scores(fit(kind, shape), pod, one_node(cpu=None, memory=None)) == [0]


def test_storage_counts_with_what_is_really_requested() -> None:
    table = one_node(make_pod("q", node_name="a"), extended={"ephemeral-storage": "10Gi"})

    assert scores(fit(storage=1), EMPTY, table) == [100]
    pod = make_pod(requests={"ephemeral-storage": "4Gi"})
    assert scores(fit(storage=1), pod, table) == [60]


def test_ratio_leaves_out_resources_that_score_nothing() -> None:
    table = one_node(memory="1Ti")  # 200Mi of it is less than one percent

    assert scores(fit(REQUESTED_TO_CAPACITY_RATIO, RISING), make_pod(cpu="3"), table) == [75]
    assert scores(fit(MOST_ALLOCATED), make_pod(cpu="3"), table) == [37]


def test_ratio_rounds_the_mean_where_the_others_truncate() -> None:
    pod = make_pod(cpu="2", memory="4178Mi")  # 50 and 51 percent

    assert scores(fit(REQUESTED_TO_CAPACITY_RATIO, RISING), pod, one_node()) == [51]
    assert scores(fit(MOST_ALLOCATED), pod, one_node()) == [50]


def test_weight_0_counts_as_1() -> None:
    assert scores(fit(cpu=0, memory=1), ASKS, one_node(USED)) == [31]


@pytest.mark.parametrize(
    ("shape", "at", "heights"),
    [
        pytest.param([(0, 0), (100, 100)], [0, 33, 100], [0, 33, 100], id="rising"),
        pytest.param([(20, 10), (80, 40)], [0, 20, 50, 80, 100], [10, 10, 25, 40, 40], id="flat"),
        pytest.param([(0, 100), (30, 0)], [1, 10, 29], [97, 67, 4], id="falling: toward zero"),
        pytest.param([(50, 70)], [0, 50, 100], [70, 70, 70], id="one point"),
        pytest.param([(0, 0), (50, 100), (100, 0)], [25, 50, 75], [50, 100, 50], id="a peak"),
    ],
)
def test_broken_line(shape: Shape, at: list[int], heights: list[int]) -> None:
    assert broken_line(shape, np.array(at, dtype=np.int64)).tolist() == heights


amounts = st.one_of(
    st.integers(1, 300),
    st.integers(1, MAX_EXACT - 1),
    st.integers(0, 40).map(lambda bits: MAX_EXACT - 1 - (1 << bits)),
)


@given(st.lists(st.tuples(amounts, st.data()), min_size=1, max_size=12), amounts, st.data())
@settings(max_examples=200)
def test_floats_and_integers_give_the_same_points(
    offered: list[tuple[int, st.DataObject]], asked: int, data: st.DataObject
) -> None:
    nodes, pods = [], []
    for i, (capacity, more) in enumerate(offered):
        nodes.append(make_node(f"n{i}", cpu=f"{capacity}m", memory=str(capacity)))
        used = more.draw(st.integers(0, capacity))
        pods.append(
            make_pod(f"q{i}", node_name=f"n{i}", cpu=f"{used}m", memory=str(capacity - used))
        )
    table = make_table(*nodes, pods=pods)
    counted = [("cpu", asked, data.draw(st.integers(1, 100))), ("memory", asked // 2, 1)]

    for kind in (ShareKind.LEAST, ShareKind.MOST):
        found = rule_points(table, ALL, ShareRule(kind, tuple(counted)))
        assert found.tolist() == exact_points(kind, counted, table)


def exact_points(
    kind: ShareKind, counted: list[tuple[str, int, int]], table: NodeTable
) -> list[int]:
    """The points in Python's integers, for nodes that have all resources."""
    found = []
    for row in range(len(table)):
        total = weights = 0
        for resource, asked, weight in counted:
            capacity = int(table.allocatable[resource][row])
            used = int(table.scoring_usage[resource][row]) + asked
            part = max(capacity - used, 0) if kind is ShareKind.LEAST else min(used, capacity)
            total, weights = total + part * 100 // capacity * weight, weights + weight
        found.append(total // weights)
    return found


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param("0", id="a node without memory"),
        pytest.param(str(MAX_EXACT), id="a node with more than floats can tell apart"),
    ],
)
def test_integers_step_in_where_floats_will_not_do(memory: str) -> None:
    table = make_table(
        make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="4", memory=memory)
    )

    assert scores(fit(), ASKS, table)[0] == scores(fit(), ASKS, one_node())[0]
