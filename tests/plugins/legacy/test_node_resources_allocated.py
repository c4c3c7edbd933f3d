"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio, as v1.20 scored."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.config.plugin_args import (
    AllocatedArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    UtilizationShapePoint,
)
from bayplan.errors import InputError
from bayplan.framework import CycleState
from bayplan.plugins.legacy.node_resources_allocated import (
    AllocationScorer,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

GPU = "example.com/gpu"
RISING = ((0, 0), (100, 10))
FALLING = ((0, 10), (100, 0))
PEAK = ((0, 0), (70, 10), (100, 5))


def resources(**weights: int) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(GPU if name == "gpu" else name, w) for name, w in weights.items())


def ratio(shape: Any, **weights: int) -> RequestedToCapacityRatioArgs:
    points = tuple(UtilizationShapePoint(*point) for point in shape)
    return RequestedToCapacityRatioArgs(points, resources(**weights or {"cpu": 1, "memory": 1}))


class Least(AllocatedArgs, frozen=True):
    """Arguments of NodeResourcesLeastAllocated."""


class Most(AllocatedArgs, frozen=True):
    """Arguments of NodeResourcesMostAllocated."""


def least(**weights: int) -> Least:
    return Least(resources(**weights))


def most(**weights: int) -> Most:
    return Most(resources(**weights))


PLUGINS: dict[type, type[AllocationScorer]] = {
    Least: NodeResourcesLeastAllocated,
    Most: NodeResourcesMostAllocated,
    RequestedToCapacityRatioArgs: RequestedToCapacityRatio,
}


def scores(args: Any, pod: Pod, table: NodeTable) -> list[int]:
    plugin = PLUGINS[type(args)].from_args(args, make_handle(table))
    points: list[int] = plugin.score_rows(CycleState(), pod, table, ALL).tolist()
    return points


HALF_FULL = make_table(
    make_node("n", cpu="4", memory="8192Mi"),
    pods=[make_pod("there", cpu="2500m", memory="3000Mi", node_name="n")],
)
POD = make_pod(cpu="500m", memory="2000Mi")


@pytest.mark.parametrize(
    ("args", "score"),
    [
        pytest.param(least(cpu=1, memory=1), 31, id="least: (25+38)/2"),
        pytest.param(least(cpu=3, memory=1), 28, id="least: (75+38)/4"),
        pytest.param(most(cpu=1, memory=1), 68, id="most: (75+61)/2"),
        pytest.param(most(cpu=3, memory=1), 71, id="most: (225+61)/4"),
        pytest.param(ratio(RISING), 69, id="ratio: 75 and, rounded up, 62: half up from 68.5"),
        pytest.param(ratio(FALLING), 32, id="falling: (25+38)/2, half up from 31.5"),
        pytest.param(ratio(PEAK), 90, id="peak: 92 and 88"),
        pytest.param(ratio(RISING, cpu=0, memory=0), 69, id="ratio: weight 0 becomes 1"),
        pytest.param(least(cpu=1, memory=1, gpu=1), 21, id="least: what a node lacks scores 0"),
        pytest.param(most(cpu=1, memory=1, gpu=2), 34, id="most: what a node lacks scores 0"),
        pytest.param(
            ratio(RISING, cpu=1, memory=1, gpu=1), 79, id="ratio: what a node lacks is used up"
        ),
        pytest.param(
            ratio(FALLING, cpu=1, gpu=1), 25, id="ratio: what scores nothing does not count"
        ),
        pytest.param(ratio(((0, 0), (100, 0))), 0, id="ratio: nothing counts at all"),
        pytest.param(least(pods=1), 0, id="the number of pods is no resource"),
    ],
)
def test_score_of_a_node_with_pods(args: Any, score: int) -> None:
    assert scores(args, POD, HALF_FULL) == [score]


def test_a_pod_without_requests_counts_for_a_little() -> None:
    empty = make_table(make_node("n", cpu="4", memory="8192Mi"))

    assert scores(least(cpu=1, memory=1), make_pod(), empty) == [97]
    assert scores(most(cpu=1, memory=1), make_pod(), empty) == [2]


def test_more_than_there_is_counts_as_full() -> None:
    table = make_table(make_node("n", cpu="1", memory="1Gi"))
    pod = make_pod(cpu="2", memory="512Mi")

    assert scores(least(cpu=1, memory=1), pod, table) == [25]
    assert scores(most(cpu=1, memory=1), pod, table) == [75]
    assert scores(ratio(RISING), pod, table) == [75]


def test_an_extended_resource_counts_without_being_asked_for() -> None:
    table = make_table(make_node("n", extended={GPU: 4}))

    assert scores(least(gpu=1), make_pod(), table) == [100]
    assert scores(least(gpu=1), make_pod(requests={GPU: 3}), table) == [25]


def test_overhead_of_cpu_is_read_in_whole_cores() -> None:
    table = make_table(make_node("n", cpu="1"))
    pod = make_pod(cpu="500m", spec={"overhead": {"cpu": "400m"}})

    assert scores(least(cpu=1), pod, table) == [49]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda: NodeResourcesLeastAllocated({}), "resources not found", id="none"),
        pytest.param(lambda: RequestedToCapacityRatio({"cpu": 1}, ()), "shape", id="no shape"),
    ],
)
def test_arguments_that_cannot_work(make: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make()


@pytest.mark.parametrize(
    "args", [least(cpu=1, memory=2), most(cpu=3, gpu=1), ratio(PEAK, cpu=1, gpu=2)]
)
def test_conformance(args: Any) -> None:
    table = make_table(
        make_node("a"),
        make_node("b", cpu=None, extended={GPU: 2}),
        pods=[make_pod("there", cpu="1", node_name="a")],
    )
    pods = [make_pod(), make_pod("big", cpu="3", memory="20Gi", requests={GPU: 1})]
    check_conformance(PLUGINS[type(args)], pods, table, args)


@pytest.mark.parametrize("plugin", [NodeResourcesLeastAllocated, NodeResourcesMostAllocated])
def test_without_arguments_cpu_and_memory_count(plugin: type[AllocationScorer]) -> None:
    check_conformance(plugin, [POD], HALF_FULL)
