"""Requeueing is not polling: an event that cannot help moves no pod, one that can moves only the
pods it can help."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.scenarios import Scenario

GPU = "example.com/gpu"
MANY = 10_000
SSD = {"disk": "ssd"}


class Crowd(Scenario):
    """A node with all GPUs in use, nodes without, and many pods pending for a GPU; some for another
    reason."""

    def __init__(self, count: int, others: int) -> None:
        super().__init__(
            make_node("gpus", extended={GPU: 2}),
            make_node("plain"),
            make_pod("trains", node_name="gpus", requests={GPU: 2}, cpu="1"),
            make_pod("beside", node_name="gpus", cpu="1"),
            make_pod("web", node_name="plain", cpu="1", labels={"app": "web"}),
        )
        for number in range(count):
            self.add(make_pod(f"gpu-{number}", requests={GPU: 1}))
        for number in range(others):
            self.add(make_pod(f"ssd-{number}", node_selector=SSD))
        self.run()
        self.count = count + others
        assert self.pending() == {"active": 0, "backoff": 0, "unschedulable": self.count}

    def pending(self) -> dict[str, int]:
        pending = self.scheduler.queue.pending()
        assert pending.pop("gated") == 0
        return pending

    def moved(self, event: Callable[[], Any]) -> dict[str, int]:
        """The number of pods, by the first part of their name, that the event requeues."""
        pops = self.scheduler.queue.active.scheduling_cycle
        event()
        queue = self.scheduler.queue
        assert queue.active.scheduling_cycle == pops, "no pod is tried by the event itself"
        ready = [*queue.active.heap, *queue.backoff.rejected, *queue.backoff.errors]
        names = [info.pod.name.split("-")[0] for info in ready]
        return {name: names.count(name) for name in set(names)}


NO_HELP: dict[str, Callable[[Crowd], Any]] = {
    "a pod without a GPU goes": lambda crowd: crowd.cluster.delete(crowd.pod("web")),
    "a pod without a GPU goes from the node with GPUs": lambda crowd: crowd.cluster.delete(
        crowd.pod("beside")
    ),
    "a pod on a node changes": lambda crowd: crowd.change("web", labels={"app": "shop"}),
    "a pod on a node asks for less": lambda crowd: crowd.change(
        "web", spec=make_pod(cpu="500m").spec
    ),
    "a pod comes": lambda crowd: crowd.add(make_pod("new", node_name="plain")),
    "a node without a GPU comes": lambda crowd: crowd.add(make_node("another")),
    "a node is annotated": lambda crowd: crowd.cluster.update(
        make_node("gpus", extended={GPU: 2}, annotations={"seen": "now"})
    ),
    "a node has more cpu": lambda crowd: crowd.cluster.update(make_node("plain", cpu="64")),
    "a node goes": lambda crowd: crowd.cluster.delete(make_node("plain")),
    "a service comes": lambda crowd: crowd.add(make_object("Service", "s", namespace="default")),
    "a volume comes": lambda crowd: crowd.add(make_object("PersistentVolume", "v")),
}


def test_ten_thousand_pods_are_moved_only_by_helpful_events() -> None:
    crowd = Crowd(MANY, 100)
    in_order = [name for name in NO_HELP if name != "a node goes"]

    for name in in_order:
        if name == "a pod on a node changes":
            crowd.add(make_pod("web", node_name="plain", cpu="1"))  # the first pod was deleted
        assert crowd.moved(lambda name=name: NO_HELP[name](crowd)) == {}, name  # type: ignore[misc]  # a lambda with a default
        assert crowd.pending()["unschedulable"] == crowd.count

    assert crowd.moved(lambda: crowd.add(make_node("fast", labels=SSD))) == {"ssd": 100}
    everyone = {"ssd": 100, "gpu": MANY}
    assert crowd.moved(lambda: crowd.cluster.delete(crowd.pod("trains"))) == everyone
    assert crowd.pending()["unschedulable"] == 0


@pytest.mark.parametrize("event", NO_HELP.values(), ids=NO_HELP)
def test_unhelpful_events_move_no_pod(event: Callable[[Crowd], Any]) -> None:
    crowd = Crowd(20, 5)

    assert crowd.moved(lambda: event(crowd)) == {}


HELP: dict[str, tuple[Callable[[Crowd], Any], dict[str, int]]] = {
    "a pod with a GPU goes": (
        lambda crowd: crowd.cluster.delete(crowd.pod("trains")),
        {"gpu": 20},
    ),
    "a pod with a GPU asks for less": (
        lambda crowd: crowd.change("trains", spec=make_pod(requests={GPU: 1}).spec),
        {"gpu": 20},
    ),
    "a node with a GPU comes": (
        lambda crowd: crowd.add(make_node("more", extended={GPU: 1})),
        {"gpu": 20},
    ),
    "a node has more GPUs": (
        lambda crowd: crowd.cluster.update(make_node("gpus", extended={GPU: 3})),
        {"gpu": 20},
    ),
    "a node gets the label": (
        lambda crowd: crowd.cluster.update(make_node("plain", labels=SSD)),
        {"ssd": 5},
    ),
    "a waiting pod no longer wants a GPU": (
        lambda crowd: crowd.change("gpu-7", spec=make_pod().spec),
        {"gpu": 1},
    ),
}


@pytest.mark.parametrize(("event", "expected"), HELP.values(), ids=HELP)
def test_helpful_events_move_the_pods_they_can_help(
    event: Callable[[Crowd], Any], expected: dict[str, int]
) -> None:
    crowd = Crowd(20, 5)

    assert crowd.moved(lambda: event(crowd)) == expected


def test_moved_pods_are_tried_and_the_rest_stays() -> None:
    crowd = Crowd(20, 5)

    crowd.cluster.delete(crowd.pod("trains"))
    attempts = crowd.settle()

    bound = [pod.name for pod in crowd.cluster.list("Pod") if pod.node_name]
    assert sum(name.startswith("gpu-") for name in bound) == 2
    assert crowd.pending() == {"active": 0, "backoff": 0, "unschedulable": 23}
    assert len(attempts) == 20


def test_time_alone_moves_no_pod_before_five_minutes() -> None:
    crowd = Crowd(20, 5)

    assert crowd.advance(299) == []
    assert len(crowd.advance(40)) == 25, "then all are tried once, in case an event was missed"


def test_a_pod_that_can_preempt_is_retried_after_any_deletion() -> None:
    """The missing resources may be those of a pod of lower priority, because the rest is free now."""
    scenario = Scenario(
        make_node("gpus", cpu="2", extended={GPU: 1}),
        make_pod("trains", node_name="gpus", requests={GPU: 1}, cpu="1", priority=1),
        make_pod("important", node_name="gpus", cpu="1", priority=9),
    )
    scenario.add(make_pod("p", requests={GPU: 1}, cpu="2", priority=5))
    scenario.run()
    assert scenario.part_of("p") == "unschedulable"

    scenario.cluster.delete(scenario.pod("important"))
    scenario.settle()

    assert scenario.part_of("p") == "bound"
    assert scenario.cluster.get("Pod", "default", "trains") is None
