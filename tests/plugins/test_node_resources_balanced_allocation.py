"""NodeResourcesBalancedAllocation: does the pod bring the resources of a node closer to equal use?"""

from typing import Any

import numpy as np
import pytest

from bayplan.amounts.scoring import _balance
from bayplan.api.pod import Pod
from bayplan.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.framework import SKIP, SUCCESS, CycleState
from bayplan.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree

GPU = "example.com/gpu"
CPU_MEMORY_GPU = NodeResourcesBalancedAllocation(["cpu", "memory", GPU])


def score(
    pod: Pod, *others: Pod, plugin: NodeResourcesBalancedAllocation | None = None, **node: Any
) -> int:
    """The score of a node with 4 cpu and 8192Mi of memory."""
    given = {"cpu": "4", "memory": "8192Mi", **node}
    table = make_table(make_node("a", **given), pods=others)
    balanced, state = plugin or NodeResourcesBalancedAllocation(), CycleState()
    assert balanced.pre_score(state, pod, table, ALL) == SUCCESS
    check_rows_agree(balanced, pod, table, state)
    found = balanced.score_rows(state, pod, table, ALL)
    assert balanced.normalize(found) is found  # scores are final
    return int(found[0])


def here(cpu: str, memory: str, **fields: Any) -> Pod:
    return make_pod("q", node_name="a", cpu=cpu, memory=memory, **fields)


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(
            make_pod(cpu="500m", memory="2000Mi"),
            [here("2500m", "3000Mi")],
            78,
            id="closer to balance: from 87 to 93",
        ),
        pytest.param(
            make_pod(cpu="2"), [here("2", "4096Mi")], 62, id="out of balance: from 100 to 75"
        ),
        pytest.param(make_pod(cpu="1", memory="2048Mi"), [], 75, id="balanced before and after"),
        pytest.param(
            make_pod(cpu="1"),
            [make_pod("q", node_name="a")],
            68,
            id="a pod without requests counts for nothing: from 100 to 87",
        ),
        pytest.param(
            make_pod(cpu="3", memory="8192Mi"),
            [here("2", "4096Mi")],
            75,
            id="no resource is more than full",
        ),
        pytest.param(make_pod(cpu="4"), [], 50, id="the worst: all of one, nothing of the other"),
        pytest.param(
            make_pod(memory="8192Mi"), [here("4", "0")], 100, id="the best: from 50 to 100"
        ),
    ],
)
def test_score(pod: Pod, others: list[Pod], expected: int) -> None:
    assert score(pod, *others) == expected


def test_a_resource_the_node_has_not_is_left_out() -> None:
    assert score(make_pod(cpu="4"), memory=None) == 75
    assert score(make_pod(cpu="4"), cpu=None, memory=None) == 75


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        # cpu and memory unused, a device used up: shares 0, 0, 1 deviate by 0.4714, which leaves 52
        pytest.param(make_pod(requests={GPU: 2}), [], 51, id="all three count: from 100 to 52"),
        pytest.param(
            make_pod(cpu="4"),
            [here("0", "0", requests={GPU: 2})],
            50,
            id="a device the pod does not ask for does not count: from 100 to 50",
        ),
        pytest.param(
            make_pod(cpu="2", memory="4096Mi", requests={GPU: 1}), [], 75, id="all by half"
        ),
        # shares 0.25, 0.5, 1 deviate by 0.3118, which leaves 68
        pytest.param(
            make_pod(cpu="1", memory="4096Mi", requests={GPU: 2}), [], 59, id="from 100 to 68"
        ),
    ],
)
def test_three_resources(pod: Pod, others: list[Pod], expected: int) -> None:
    assert score(pod, *others, plugin=CPU_MEMORY_GPU, extended={GPU: 2}) == expected


def test_two_of_three_resources_on_the_node() -> None:
    pod = make_pod(cpu="4", requests={GPU: 1})

    assert score(pod, plugin=CPU_MEMORY_GPU) == 50


def test_resources_from_the_configuration() -> None:
    args = NodeResourcesBalancedAllocationArgs(
        resources=(ResourceSpec("cpu", 1), ResourceSpec(GPU, 1))
    )
    plugin = NodeResourcesBalancedAllocation.from_args(args, make_handle())

    assert score(make_pod(memory="1Gi", requests={GPU: 2}), plugin=plugin, extended={GPU: 2}) == 50


@pytest.mark.parametrize(
    ("pod", "plugin"),
    [
        pytest.param(make_pod(), NodeResourcesBalancedAllocation(), id="no requests at all"),
        pytest.param(
            make_pod(cpu="0", memory="0"), NodeResourcesBalancedAllocation(), id="requests of 0"
        ),
        pytest.param(
            make_pod(requests={"ephemeral-storage": "1Gi", GPU: 1}),
            NodeResourcesBalancedAllocation(),
            id="requests of other resources only",
        ),
        pytest.param(
            make_pod(cpu="1"),
            NodeResourcesBalancedAllocation(["memory"]),
            id="none of the configured resources",
        ),
    ],
)
def test_pre_score_skips(pod: Pod, plugin: NodeResourcesBalancedAllocation) -> None:
    assert plugin.pre_score(CycleState(), pod, make_table(make_node()), ALL) == SKIP


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        pytest.param([], 100, id="no resource"),
        pytest.param([0.3], 100, id="one resource is balanced"),
        pytest.param([0.2, 0.7], 75, id="half the distance of two"),
        pytest.param([0.0, 0.0, 1.0], 52, id="standard deviation of three"),
        pytest.param([0.3, 1.0, 0.3, 1.0], 64, id="0.35, but for the rounding of plain addition"),
        pytest.param([0.0, 0.1, 0.4, 0.9], 65, id="rounded the other way"),
    ],
)
def test_balance(shares: list[float], expected: int) -> None:
    capacities = [np.array([10], dtype=np.int64) for _ in shares]
    used = [np.array([round(share * 10)], dtype=np.int64) for share in shares]

    assert _balance(used, capacities, 1).tolist() == [expected]


def test_balance_of_two_where_a_node_lacks_the_third() -> None:
    columns = [np.array(values, dtype=np.int64) for values in ([1, 1], [8, 8], [0, 4])]
    capacities = [np.array(values, dtype=np.int64) for values in ([10, 10], [10, 10], [0, 10])]

    # Half the distance of 0.1 and 0.8 is a bit more than 0.35, their standard deviation a bit less.
    assert _balance(columns, capacities, 2).tolist() == [64, 71]


def test_conformance() -> None:
    pods = [
        make_pod("p"),
        make_pod("q", cpu="1"),
        make_pod("r", cpu="1"),
        make_pod("s", memory="3Gi", requests={GPU: 1}),
    ]
    table = make_table(
        make_node("a", extended={GPU: 2}),
        make_node("b", cpu=None),
        make_node("c", memory=None),
        pods=[make_pod("x", node_name="a", cpu="3500m", requests={GPU: 1})],
    )

    check_conformance(NodeResourcesBalancedAllocation, pods, table)
    args = NodeResourcesBalancedAllocationArgs(
        resources=tuple(ResourceSpec(name, 1) for name in ("cpu", "memory", GPU))
    )
    check_conformance(NodeResourcesBalancedAllocation, pods, table, args)
