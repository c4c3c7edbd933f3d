"""Fragmentation: of a typical pod, and expected over a mix of tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.policies.task_mix import GpuTaskMix, Task
from bayplan.sim.measures import NodeAmounts, RequestMix, fragmentation, stranded_share, unusable
from bayplan.sim.measures.fragmentation import MAX_TASKS, typical_request
from bayplan.sim.outcomes import NodeUse
from bayplan.testing.builders import make_node, make_pod

GPU = "bayplan.dev/gpu-milli"


def amounts(*gpus: int, cpu: int = 8000) -> NodeAmounts:
    """Nodes with this free amount of GPUs each."""
    zeros = np.zeros(len(gpus), dtype=np.int64)
    offered = {"cpu": zeros + cpu, GPU: np.array(gpus, dtype=np.int64), "pods": zeros + 10}
    return NodeAmounts(offered, dict.fromkeys(offered, zeros), zeros == 0)


@pytest.mark.parametrize(
    ("requests", "parts", "lost"),
    [
        pytest.param({"cpu": 1000}, [1000, 500], 1500, id="a task without GPUs can use none"),
        pytest.param({GPU: 500}, [1000, 500], 0, id="each GPU has room for the share"),
        pytest.param({GPU: 600}, [1000, 500], 500, id="one GPU is too small for the share"),
        pytest.param({GPU: 600}, [500, 500], 1000, id="the sum is enough, but no GPU"),
        pytest.param({GPU: 1000}, [1000, 900], 900, id="a whole GPU leaves the used one"),
        pytest.param({GPU: 2000}, [1000, 900], 1900, id="two whole GPUs, and one is free"),
        pytest.param({GPU: 2000}, [1000, 1000], 0, id="two whole GPUs are free"),
        pytest.param({GPU: 100, "cpu": 9000}, [1000, 0], 1000, id="too little cpu"),
    ],
)
def test_parts_too_small_for_a_task_are_lost(
    requests: dict[str, int], parts: list[int], lost: int
) -> None:
    mix = RequestMix.of_requests([requests])

    found = unusable(amounts(sum(parts)), mix, GPU, np.array([parts]))

    assert found.tolist() == [lost]


@pytest.mark.parametrize(
    ("requests", "lost"),
    [
        pytest.param({GPU: 600}, [0, 0, 500], id="free amounts are one pool per node"),
        pytest.param({GPU: 1500}, [0, 1000, 500], id="more than a node has"),
        pytest.param({"cpu": 1}, [2000, 1000, 500], id="not asked for"),
    ],
)
def test_without_parts_a_node_is_one_pool(requests: dict[str, int], lost: list[int]) -> None:
    found = unusable(amounts(2000, 1000, 500), RequestMix.of_requests([requests]), GPU)

    assert found.tolist() == lost


def test_tasks_count_by_their_frequency() -> None:
    mix = RequestMix.of_requests([{GPU: 600}, {GPU: 600}, {GPU: 600}, {"cpu": 1000}])
    nodes, parts = amounts(1500, 1000), np.array([[1000, 500], [500, 500]])

    assert unusable(nodes, mix, GPU, parts).tolist() == [0.75 * 500 + 0.25 * 1500, 1000]
    assert fragmentation(nodes, mix, GPU, parts) == (375 + 375 + 1000) / 2500
    assert fragmentation(amounts(0, 0), mix, GPU) == 0


requests_of_tasks = st.builds(
    lambda cpu, milli: {"cpu": cpu, **({GPU: milli} if milli else {})},
    st.integers(1, 9).map(lambda cores: 1000 * cores),
    st.integers(0, 1000) | st.sampled_from([2000, 3000]),
)


@given(
    tasks=st.lists(requests_of_tasks, min_size=1, max_size=5),
    parts=st.lists(st.integers(0, 1000) | st.just(1000), min_size=1, max_size=4),
)
def test_the_measure_and_the_tables_of_the_policy_have_one_definition(
    tasks: list[dict[str, int]], parts: list[int]
) -> None:
    mix = GpuTaskMix(Task(task["cpu"], task.get(GPU, 0)) for task in tasks)

    found = unusable(amounts(sum(parts)), RequestMix.of_requests(tasks), GPU, np.array([parts]))

    by_tables = mix.unusable(mix.keys(np.array([8000])), np.array([parts]))
    assert found[0] == pytest.approx(by_tables[0] / mix.weight)


def test_cordoned_nodes_have_nothing_free() -> None:
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4", unschedulable=True)]
    found = NodeAmounts.of_uses(map(NodeUse, nodes))

    assert found.free("cpu").tolist() == [4000, 0]
    assert unusable(found, RequestMix.of_requests([{"cpu": 5000}]), "cpu").tolist() == [4000, 0]


def test_a_full_node_by_pods_is_lost() -> None:
    full = NodeAmounts.of_uses([NodeUse(make_node("a", cpu="4", pods=1), pods_after=1)])

    found = unusable(full, RequestMix.of_requests([{"cpu": 100}]), "cpu")

    assert found.tolist() == full.free("cpu").tolist()


def test_a_mix_keeps_the_most_frequent_kinds() -> None:
    kinds = [{"cpu": i + 1} for i in range(2 * MAX_TASKS)]

    mix = RequestMix.of_requests([*kinds, kinds[-1]])

    assert len(mix.tasks) == MAX_TASKS
    assert mix.tasks[0][0] == kinds[-1]
    assert sum(share for _, share in mix.tasks) == pytest.approx(1)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param((0, 0), 0.0, id="empty nodes"),
        pytest.param((3, 3), 1.0, id="one core free on each of two nodes, and a pod takes two"),
        pytest.param((4, 2), 0.0, id="two cores free on one node"),
        pytest.param((3, 1), 0.5, id="four cores free, one of them alone on its node"),
        pytest.param((4, 4), 0.0, id="nothing free gives no fragmentation"),
    ],
)
def test_stranded_share(used: tuple[int, int], expected: float) -> None:
    uses = [
        NodeUse(make_node(name, cpu="4"), after={"cpu": 1000 * cpu}, pods_after=cpu > 0)
        for name, cpu in zip("ab", used, strict=True)
    ]
    closed = NodeUse(make_node("c", unschedulable=True))

    assert stranded_share(NodeAmounts.of_uses([*uses, closed]), {"cpu": 2000}) == expected


def test_the_typical_pod_has_the_median_requests() -> None:
    pods = [make_pod("a", cpu="1", memory="1Gi"), make_pod("b", cpu="2"), make_pod("c", cpu="9")]

    assert typical_request(pods) == {"cpu": 2000}
    assert typical_request([]) == {}
