"""Relocation: what was found about room does not outlive a change of the cluster."""

from bayplan.planning.autoscaling import Autoscaler, autoscaled
from bayplan.planning.autoscaling.relocation import Relocation
from bayplan.sim.settings import Settings
from tests.planning.autoscaling.scaled import make_pool, make_type, make_workload


def test_room_that_pods_leave_is_seen_after_a_question_about_an_empty_node() -> None:
    pool = make_pool(make_type("small", 2, 0.1))
    workloads = [make_workload("web", 2), make_workload("db", 2)]
    simulation = autoscaled(Settings(seed=0), workloads, [pool])
    simulation.run(until_s=600)
    scaler = simulation._controller
    assert isinstance(scaler, Autoscaler)
    relocation = Relocation(scaler.choices, scaler.shadow, scaler.nodes)
    first, second = scaler.nodes
    assert relocation.find([first], (), may_replace=False) is None

    for pod in list(second.pods.values()):
        simulation.cluster.delete(pod)
    assert not second.pods
    assert relocation.find([second], (), may_replace=False) is not None

    assert relocation.find([first], (), may_replace=False) is not None
