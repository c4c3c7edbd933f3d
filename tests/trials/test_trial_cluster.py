"""The shadow: a trial on it leaves no trace, and pods that will move are where they go until they are evicted."""

import pytest

from bayplan.api.pod import Pod, PodStatus
from bayplan.autoscaling import Autoscaler, autoscaled
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_pod
from bayplan.trials.trial_cluster import StillCluster, TrialCluster, _FeedOfOthers
from tests.autoscaling.scaled import make_pool, make_type, make_workload

Pods = dict[str, list[str]]


@pytest.fixture
def simulation() -> Simulation:
    """Two nodes with two pods each."""
    pool = make_pool(make_type("small", 4, 0.1), consolidate_after_s=None)
    simulation = autoscaled(Settings(seed=0), [make_workload("web", 4, "1900m")], [pool])
    simulation.run(until_s=600)
    return simulation


@pytest.fixture
def shadow(simulation: Simulation) -> TrialCluster:
    scaler = simulation._controller
    assert isinstance(scaler, Autoscaler)
    return scaler.shadow


def pods_of(shadow: TrialCluster) -> Pods:
    """The names of pods by node, in their order."""
    return {
        name: [pod.name for pod in shadow.pods_on(name).values()]
        for name in sorted(shadow.table.row_of)
        if shadow.pods_on(name)
    }


def test_a_trial_within_another_ends_with_what_the_other_has(shadow: TrialCluster) -> None:
    before = pods_of(shadow)
    (first, here), (second, there) = before.items()
    outer, inner = shadow.pods_on(first).values()

    with shadow.trial():
        moved = shadow.lift(outer)
        with shadow.trial():
            shadow.lift(inner)
            shadow.place(moved, second)
            assert pods_of(shadow) == {second: [*there, outer.name]}
        assert pods_of(shadow) == {first: [inner.name], second: there}

    assert pods_of(shadow) == {first: here, second: there}


def test_a_pod_that_will_move_is_where_it_goes_until_it_is_evicted(
    simulation: Simulation, shadow: TrialCluster
) -> None:
    (first, here), (second, there) = pods_of(shadow).items()
    pod, other = shadow.pods_on(first).values()

    shadow.move(pod, second)
    assert pods_of(shadow) == {first: [other.name], second: [*there, pod.name]}

    stored = simulation.cluster.get("Pod", pod.namespace, pod.name)
    assert stored is not None
    labelled = simulation.cluster.update(stored.replace(labels={"app": "other"}))
    assert pods_of(shadow) == {first: [other.name], second: [*there, pod.name]}

    simulation.cluster.delete(labelled, grace_s=30)
    ending = simulation.cluster.get("Pod", pod.namespace, pod.name)
    assert ending is not None
    assert ending.is_terminating
    assert pods_of(shadow) == {first: [other.name], second: there}
    assert here == [pod.name, other.name]


class ToldScheduler:
    """Notes the pods in the events of a scheduler."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_add(self, pod: Pod) -> None:
        self.told.append(f"add {pod.name}")

    def on_update(self, old: Pod, new: Pod) -> None:
        self.told.append(f"update {new.name}")

    def on_delete(self, pod: Pod) -> None:
        self.told.append(f"delete {pod.name}")


WAITING = make_pod("p")
NOMINATED = WAITING.with_status(PodStatus(nominated_node_name="a"))
GROUPED = WAITING.replace(labels={"scheduling.x-k8s.io/pod-group": "gang"})
PLACED = WAITING.with_node("a")


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        pytest.param([WAITING, WAITING], [], id="of one that waits it is told nothing"),
        pytest.param(
            [WAITING, PLACED, PLACED],
            ["add p", "update p", "delete p"],
            id="one that waited comes when it gets a node",
        ),
        pytest.param(
            [NOMINATED, WAITING], ["add p", "delete p"], id="a nominated one counts while it is"
        ),
        pytest.param([GROUPED], ["add p", "delete p"], id="one of a group counts for its group"),
    ],
)
def test_the_scheduler_is_told_of_pods_that_count_for_others(
    pods: list[Pod], told: list[str]
) -> None:
    scheduler, cluster = ToldScheduler(), StillCluster()
    cluster.watch(_FeedOfOthers(scheduler))  # type: ignore[arg-type]  # a fake

    for pod in pods:
        cluster.put_in(pod)
        assert cluster.get("Pod", pod.namespace, pod.name) is pod
    cluster.take_out(pods[-1])

    assert scheduler.told == told
