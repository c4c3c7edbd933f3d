"""NodeResourcesAlignment: points by hand, and a fleet that holds more pods by it."""

from typing import Any

import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.config.load import parse_config
from bayplan.errors import InputError
from bayplan.framework import CycleState
from bayplan.policies import NodeResourcesAlignment
from bayplan.sim import Simulation
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

GPU = "example.com/gpu"
BY_MIX = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: NodeResourcesAlignment, weight: 10}]
"""


def big_node(name: str, **more: Any) -> Node:
    return make_node(name, cpu="16", memory="64Gi", **more)


def user(node: str, cpu: str, memory: str) -> Pod:
    return make_pod(f"on-{node}", cpu=cpu, memory=memory, node_name=node)


HALF_CPU = (big_node("half-cpu"), user("half-cpu", "8", "48Gi"))
"""Half of the cores and a quarter of the memory are free."""
HALF_MEMORY = (big_node("half-memory"), user("half-memory", "12", "32Gi"))


def points(pod: Pod, *nodes: tuple[Node, Pod | None], resources: Any = None) -> list[int]:
    pods = [pod for _, pod in nodes if pod is not None]
    table = make_table(*[node for node, _ in nodes], pods=pods)
    args = None if resources is None else {"resources": resources}
    plugin = NodeResourcesAlignment.from_args(args, make_handle(table))
    return list(plugin.score_rows(CycleState(), pod, table, ALL).tolist())


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            make_pod("p", cpu="1", memory="2Gi"),
            [100, 66],
            id="twice the share of cpu as of memory",
        ),
        pytest.param(
            make_pod("p", cpu="1", memory="8Gi"), [66, 100], id="half the share of cpu as of memory"
        ),
        pytest.param(make_pod("p", cpu="1", memory="4Gi"), [83, 83], id="equal shares"),
        pytest.param(make_pod("p", cpu="1"), [66, 33], id="only cpu"),
        pytest.param(make_pod("p"), [0, 0], id="nothing"),
    ],
)
def test_points_are_what_the_mixes_have_in_common(pod: Pod, expected: list[int]) -> None:
    assert points(pod, HALF_CPU, HALF_MEMORY) == expected


def test_a_node_without_a_resource_is_judged_by_the_others() -> None:
    with_gpu = (big_node("gpu", extended={GPU: 4}), None)
    pod = make_pod("p", cpu="1", memory="2Gi")

    found = points(pod, HALF_CPU, with_gpu, resources=["cpu", "memory", GPU])

    assert found == [100, 66]  # a third of the free resources of the second node are GPUs


def test_a_node_with_nothing_free_gets_no_points() -> None:
    full = (big_node("full"), user("full", "16", "64Gi"))

    assert points(make_pod("p", cpu="1", memory="2Gi"), full) == [0]


def test_conformance() -> None:
    used = (HALF_CPU, HALF_MEMORY)
    table = make_table(*[node for node, _ in used], pods=[pod for _, pod in used])
    asked = [make_pod(f"p{i}", cpu=str(i), memory="3Gi") for i in range(4)]

    check_conformance(NodeResourcesAlignment, asked, table)


@pytest.mark.parametrize("resources", [[], ["cpu"], ["cpu", "cpu"]], ids=str)
def test_a_mix_has_two_resources_or_more(resources: list[str]) -> None:
    table = make_table(big_node("n"))

    with pytest.raises(InputError, match="resources: expected two names or more; got"):
        NodeResourcesAlignment.from_args({"resources": resources}, make_handle(table))


def test_nodes_of_two_ratios_hold_pods_that_the_default_scheduler_leaves_pending() -> None:
    nodes = [
        make_node("compute", cpu="16", memory="32Gi"),
        make_node("memory", cpu="16", memory="128Gi"),
    ]
    lean = [make_pod(f"lean-{i}", cpu="1", memory="2Gi") for i in range(16)]
    large = [make_pod(f"large-{i}", cpu="1", memory="8Gi") for i in range(16)]

    def pending(config: str | None) -> int:
        simulation = Simulation([*nodes, *lean, *large], parse_config(config), seed=0)
        simulation.proceed()
        return sum(not pod.node_name for pod in simulation.cluster.list("Pod"))

    assert pending(BY_MIX) == 0
    assert pending(None) > 3
