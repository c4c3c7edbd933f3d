"""Results: the use of nodes, which comes from the table, is the sum over the pods of the cluster."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.framework import CycleState, PermitPlugin, Status, wait
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_pod


class HoldsSome(PermitPlugin):
    """Lets the pods of one priority wait for long."""

    name = "HoldsSome"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return (wait(), 900.0) if pod.priority == 1 else (Status(), 0.0)


PODS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b", "gone"]),
        st.sampled_from(["100m", "2", "3"]),
        st.sampled_from([0, 1, 9]),
        st.sampled_from(["", "Succeeded", "Running"]),
    ),
    max_size=12,
)


def used(simulation: Simulation, pods: list[Pod]) -> dict[str, tuple[dict[str, int], int]]:
    """By node: the use of its pods, and their number."""
    sums: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for pod in pods:
        if pod.node_name and not pod.is_finished:
            sums.setdefault(pod.node_name, Counter()).update(pod.usage)
            counts[pod.node_name] += 1
    return {name: (dict(sums[name]), counts[name]) for name in sums}


@settings(max_examples=25, deadline=None)
@given(PODS)
def test_use_is_the_sum_over_pods(drawn: list[Any]) -> None:
    pods = [
        make_pod(f"p{i}", cpu=cpu, priority=priority, node_name=node, status={"phase": phase})
        for i, (node, cpu, priority, phase) in enumerate(drawn)
    ]
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="5")]
    simulation = Simulation([*nodes, *pods], plugins=[HoldsSome], seed=1)
    before = used(simulation, list(simulation.cluster.list("Pod")))

    report = simulation.run(until_s=60)

    after = used(simulation, list(simulation.cluster.list("Pod")))
    assert report.running == sum(count for name, (_, count) in before.items() if name != "gone")
    for use in report.nodes:
        nothing: tuple[dict[str, int], int] = ({}, 0)
        assert (use.before, use.pods_before) == before.get(use.node.name, nothing)
        assert (use.after, use.pods_after) == after.get(use.node.name, nothing)
