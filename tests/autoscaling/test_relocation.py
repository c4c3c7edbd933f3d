"""Relocation: whether pods of nodes fit elsewhere, together with waiting pods, and after changes of the cluster."""

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.autoscaling import Autoscaler, autoscaled
from bayplan.autoscaling.blockers import Blockers
from bayplan.autoscaling.consolidation import Consolidation
from bayplan.autoscaling.launch_options import LaunchPlan
from bayplan.autoscaling.relocation import Relocation
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_pod
from tests.autoscaling.scaled import make_pool, make_type, make_workload


def make_scaler(*workloads: Any, cpus: Sequence[int] = (2,)) -> tuple[Simulation, Autoscaler]:
    """A simulation with types of so many cores, after ten minutes."""
    types = [make_type(f"cores-{cpu}", cpu, cpu / 20) for cpu in cpus]
    pool = make_pool(*types, consolidate_after_s=None)
    simulation = autoscaled(Settings(seed=0), list(workloads), [pool])
    simulation.run(until_s=600)
    scaler = simulation._controller
    assert isinstance(scaler, Autoscaler)
    return simulation, scaler


def test_room_that_pods_leave_is_seen_after_a_question_about_an_empty_node() -> None:
    simulation, scaler = make_scaler(make_workload("web", 2), make_workload("db", 2))
    relocation = Relocation(scaler.choices, scaler.shadow, scaler.nodes)
    first, second = scaler.nodes
    assert relocation.find([first], set(), may_replace=False) is None

    for pod in list(second.pods.values()):
        simulation.cluster.delete(pod)
    assert not second.pods
    assert relocation.find([second], set(), may_replace=False) is not None

    assert relocation.find([first], set(), may_replace=False) is not None


@pytest.mark.parametrize(
    ("cpu", "is_new", "can_go"),
    [
        pytest.param("1", False, False, id="a pod that waits takes the room on the other node"),
        pytest.param("100m", False, True, id="a pod that waits leaves room on the other node"),
        pytest.param("3", True, None, id="a pod that waits needs a new node"),
    ],
)
def test_pods_that_wait_come_before_those_of_nodes_that_could_go(
    cpu: str, is_new: bool, can_go: bool | None
) -> None:
    """Two nodes of four cores have two pods each, of 900m."""
    simulation, scaler = make_scaler(make_workload("web", 5, "900m"), cpus=[4])
    first, second = sorted(scaler.nodes, key=lambda node: -len(node.pods))
    simulation.cluster.delete(next(iter(first.pods.values())))
    relocation = Relocation(scaler.choices, scaler.shadow, scaler.nodes)
    before = {node.name: dict(scaler.shadow.pods_on(node.name)) for node in (first, second)}
    waiting = [make_pod("late", cpu=cpu)]
    scaler.choices.learn(waiting)

    with relocation.beside(waiting) as taken:
        assert (taken is None) == is_new
        if taken is not None:
            (leaving,) = (node for node in (first, second) if node.name not in taken)
            found = relocation.find([leaving], set(), may_replace=False)
            assert (found is not None) == can_go

    assert relocation.find([first], set(), may_replace=False) is not None
    assert {name: scaler.shadow.pods_on(name) for name in before} == before


def test_no_node_is_launched_for_pods_that_fit_one_that_boots() -> None:
    simulation, scaler = make_scaler(make_workload("web", 10), cpus=[4, 16])
    (large,) = scaler.nodes
    for pod in list(large.pods.values())[3:]:
        simulation.cluster.delete(pod)
    relocation = Relocation(scaler.choices, scaler.shadow, scaler.nodes)
    plan = relocation.find([large], set(), may_replace=True)
    assert plan is not None
    ((option, pods),) = plan.launches
    assert (option.type.name, len(pods)) == ("cores-4", 3)

    scaler.launch(option)

    assert relocation.find([large], set(), may_replace=True) is None


@pytest.mark.parametrize(
    ("type_name", "is_tried"),
    [
        pytest.param("cores-2", True, id="by one of another type"),
        pytest.param("cores-4", False, id="not by one of their own type, which could stay instead"),
    ],
)
def test_several_nodes_are_replaced(
    type_name: str, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation, scaler = make_scaler(make_workload("web", 6), cpus=[2, 4])
    relocation = Relocation(scaler.choices, scaler.shadow, scaler.nodes)
    (option,) = (one for one in scaler.choices.all if one.type.name == type_name)
    plan = LaunchPlan(launches=[(option, [])])
    monkeypatch.setattr(relocation, "find", lambda *given, **more: plan)
    consolidation = Consolidation(
        scaler.nodes, relocation, Blockers(True, simulation.budgets), scaler.shadow.node
    )
    nodes = [node for node in scaler.nodes if node.type.name == "cores-4"]

    assert (consolidation._try([*nodes, *nodes], set()) is not None) == is_tried
