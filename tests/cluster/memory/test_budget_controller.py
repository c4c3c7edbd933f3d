"""The budget controller of the simulator: statuses follow pods, budgets and workloads."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.workloads import ReplicaSet
from bayplan.clock import ManualClock
from bayplan.cluster.memory.budget_controller import DisruptionController
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned, stored

LABELS = {"app": "web"}


def make_budget(name: str = "web", **fields: Any) -> Any:
    spec = {"selector": {"matchLabels": LABELS}, **fields.pop("spec", fields)}
    return make_object("PodDisruptionBudget", name, namespace="default", spec=spec)


def make_web(name: str, node: str = "a", **fields: Any) -> Pod:
    return owned(make_pod(name, labels=LABELS, node_name=node, **fields), "web-1")


def make_set(replicas: int, **metadata: Any) -> Any:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}}
    return make_object("ReplicaSet", "web-1", namespace="default", metadata=metadata, spec=spec)


class BudgetRig:
    """A cluster with its budget controller."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = MemoryCluster()
        for obj in objects:
            self.cluster.add(obj)
        self.controller = DisruptionController(self.cluster, ManualClock())
        self.controller.begin()

    def status(self, name: str = "web") -> tuple[int, int, int, int]:
        """Healthy pods, desired ones, expected ones, allowed disruptions."""
        self.controller.run()
        found = self.cluster.get("PodDisruptionBudget", "default", name)
        assert found is not None
        status = found.status
        return (
            status.current_healthy,
            status.desired_healthy,
            status.expected_pods,
            status.disruptions_allowed,
        )


WEBS = [make_web("web-a"), make_web("web-b"), make_web("web-c"), make_web("web-d", "")]


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"minAvailable": 2}, (3, 2, 4, 1), id="a number: pods are counted"),
        pytest.param(
            {"minAvailable": "50%"}, (3, 3, 5, 0), id="a share of the replicas, rounded up"
        ),
        pytest.param({"maxUnavailable": 3}, (3, 2, 5, 1), id="a number below the replicas"),
        pytest.param({"maxUnavailable": "41%"}, (3, 2, 5, 1), id="a share below, rounded up"),
        pytest.param({"maxUnavailable": 9}, (3, 0, 5, 3), id="never less than none"),
        pytest.param({}, (3, 0, 0, 0), id="a budget without a number allows none"),
    ],
)
def test_the_status_of_a_budget(spec: Any, status: tuple[int, int, int, int]) -> None:
    assert BudgetRig(make_set(5), make_budget(spec=spec), *WEBS).status() == status


def test_the_replicas_of_a_deployment_count_once_for_all_its_replica_sets() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1"}
    deployment = make_object("Deployment", "web", namespace="default", spec={"replicas": 4})
    replicas = make_set(3, ownerReferences=[{**owner, "controller": True}])

    rig = BudgetRig(deployment, replicas, make_budget(maxUnavailable=1), *WEBS)

    assert rig.status() == (3, 3, 4, 0)


def test_pods_of_an_absent_controller_are_what_it_wants() -> None:
    assert BudgetRig(make_budget(maxUnavailable=1), *WEBS).status() == (3, 3, 4, 0)


def test_daemons_have_no_scale_and_may_not_go() -> None:
    daemon = make_object("DaemonSet", "web", namespace="default", spec={})
    pod = owned(make_web("web-a"), "web", "DaemonSet")

    assert BudgetRig(daemon, make_budget(maxUnavailable=1), pod).status()[3] == 0


def test_the_status_follows_what_happens() -> None:
    rig = BudgetRig(make_set(3), make_budget(maxUnavailable=1), *WEBS[:2])
    assert rig.status() == (2, 2, 3, 0)

    rig.cluster.add(make_web("web-e"))
    assert rig.status() == (3, 2, 3, 1)
    rig.cluster.delete(stored(rig.cluster, Pod, "web-a"))
    assert rig.controller.is_urgent
    assert rig.status() == (2, 2, 3, 0)
    rig.cluster.update(stored(rig.cluster, Pod, "web-e").replace(labels={}))
    assert rig.status() == (1, 2, 3, 0)
    old = stored(rig.cluster, ReplicaSet, "web-1")
    rig.cluster.update(make_set(1).__class__(metadata=old.metadata, spec=make_set(1).spec))
    assert rig.status() == (1, 0, 1, 1)
    rig.cluster.add(make_budget("other", minAvailable=1))
    assert rig.status("other") == (1, 1, 1, 0)


def test_an_eviction_is_refused_as_the_api_server_does_it() -> None:
    rig = BudgetRig(make_set(3), make_budget(minAvailable=2), *WEBS[:3])
    first, second = WEBS[:2]

    assert rig.controller.eviction_refusal(first) == ""
    rig.cluster.delete(first)
    refusal = rig.controller.eviction_refusal(second)

    assert refusal == "The disruption budget web needs 2 healthy pods and has 2 currently"


def test_a_pod_of_two_budgets_cannot_be_evicted() -> None:
    rig = BudgetRig(make_budget(minAvailable=0), make_budget("two", minAvailable=0), WEBS[0])

    assert rig.controller.eviction_refusal(WEBS[0]).startswith("This pod has more than one")


def test_preemption_goes_by_the_live_status() -> None:
    """The victim is on the node whose budget allows it, though neither budget came with a status."""
    objects = [
        make_node("a", cpu="2"),
        make_node("b", cpu="2"),
        make_budget(minAvailable=1),
        make_web("web-a", "a", cpu="2", priority=0),
        make_pod("other", labels={"app": "other"}, cpu="2", priority=0, node_name="b"),
        make_object(
            "PodDisruptionBudget",
            "other",
            namespace="default",
            spec={"minAvailable": 0, "selector": {"matchLabels": {"app": "other"}}},
        ),
        make_pod("high", cpu="2", priority=10),
    ]

    report = Simulation(objects).run()

    assert [victim.name for victim, _ in report.preempted] == ["other"]
