"""Updates, deletions and activation of pods in each part of the queue."""

import pytest

from bayplan.framework.events import NODE_ADD, UNSCHEDULABLE_POD, ActionType, ClusterEvent, Hint
from bayplan.testing.builders import make_pod
from tests.queue.queue_bench import Bench, gated_pod


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Hint.QUEUE, "backoff", id="its rejector finds the change worth it"),
        pytest.param(Hint.SKIP, "unschedulable", id="it does not"),
    ],
)
def test_an_update_of_an_unschedulable_pod(answer: Hint, expected: str) -> None:
    bench = Bench()
    bench.answer = answer
    bench.add("p")
    bench.fail("Choosy")
    bench.queue.update(make_pod("p", uid="p"), make_pod("p", uid="p", labels={"a": "b"}))

    assert bench.where("p") == expected
    info = bench.queue.get(make_pod("p"))
    assert info is not None
    assert info.pod.labels == {"a": "b"}


def test_an_update_while_in_flight_counts_when_the_pod_comes_back() -> None:
    bench = Bench()
    bench.answer = Hint.QUEUE
    bench.add("p")
    info = bench.pop()
    bench.queue.update(info.pod, make_pod("p", uid="p", labels={"a": "b"}))

    assert bench.where("p") == "in flight"
    assert bench.give_back(info, "Choosy") == "backoff"


def test_an_update_of_a_ready_pod_changes_its_place_in_the_order() -> None:
    bench = Bench()
    bench.add("p", "q")
    bench.queue.update(make_pod("q", uid="q"), make_pod("q", uid="q", priority=5))

    assert bench.pop().pod.name == "q"


def test_an_update_of_a_pod_in_backoff_stays_there() -> None:
    bench = Bench()
    bench.add("p")
    bench.fail("Fit")
    bench.on(NODE_ADD)
    bench.queue.update(make_pod("p", uid="p"), make_pod("p", uid="p", priority=5))

    assert bench.where("p") == "backoff"
    assert bench.pop().pod.priority == 5


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    bench = Bench()
    bench.queue.update(make_pod("p", uid="p"), make_pod("p", uid="p"))

    assert bench.where("p") == "active"


@pytest.mark.parametrize("place", ["active", "unschedulable", "backoff", "error backoff"])
def test_delete_removes_the_pod_from_any_part(place: str) -> None:
    bench = Bench()
    bench.add("p")
    if place != "active":
        bench.fail(*([] if place == "error backoff" else ["Fit"]))
    if place == "backoff":
        bench.on(NODE_ADD)
    assert bench.where("p") == place
    bench.queue.delete(make_pod("p", uid="p"))

    assert bench.where("p") == ""
    assert len(bench.queue) == 0
    assert bench.queue.next_timer() is None


@pytest.mark.parametrize(
    ("rejectors", "event"),
    [
        pytest.param(["Fit"], None, id="unschedulable"),
        pytest.param(["Fit"], NODE_ADD, id="backoff"),
        pytest.param([], None, id="error backoff"),
    ],
)
def test_activate_brings_a_pod_back_at_once(
    rejectors: list[str], event: ClusterEvent | None
) -> None:
    bench = Bench()
    bench.add("p")
    info = bench.fail(*rejectors)
    if event is not None:
        bench.on(event)
    bench.queue.activate([info.pod])

    assert bench.where("p") == "active"
    assert bench.queue.counters.incoming["active", "ForceActivate"] == 1


def test_activate_ignores_gated_and_unknown_pods() -> None:
    bench = Bench()
    bench.queue.add(gated_pod())
    bench.queue.activate([gated_pod(), make_pod("unknown")])

    assert bench.where("p") == "unschedulable"
    assert len(bench.queue) == 1


def test_activate_of_a_pod_in_flight_counts_when_it_comes_back() -> None:
    bench = Bench()
    bench.add("p", "q")
    infos = [bench.pop(), bench.pop()]
    bench.queue.activate([infos[0].pod])

    assert [bench.give_back(info, "Unregistered") for info in infos] == ["backoff", "unschedulable"]


def test_a_pod_recreated_while_the_old_one_is_in_flight_stays() -> None:
    bench = Bench()
    bench.add("p")
    old = bench.pop()
    bench.queue.delete(old.pod)
    bench.queue.add(make_pod("p", uid="new"))

    assert bench.give_back(old, "Fit") is None
    assert bench.where("p") == "active"
    assert len(bench.queue.in_flight) == 0
    assert bench.pop().pod.uid == "new"


def test_a_pod_that_is_in_flight_already_is_not_popped_again() -> None:
    bench = Bench()
    bench.add("p")
    bench.pop()
    bench.add("p", "q")

    assert bench.pop().pod.name == "q"
    assert bench.queue.pop() is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            ClusterEvent(UNSCHEDULABLE_POD, ActionType.Update), "in-status", id="a general update"
        ),
        pytest.param(
            ClusterEvent(UNSCHEDULABLE_POD, ActionType.UpdatePodLabel), "given", id="another event"
        ),
    ],
)
def test_some_events_nominate_by_status(event: ClusterEvent, expected: str) -> None:
    bench = Bench()
    bench.answer = Hint.QUEUE
    pod = make_pod("p", uid="p", nominated_node_name="in-status")
    bench.queue.add(pod)
    assert bench.queue.nominator.node_of(pod) == "in-status"
    bench.fail("Choosy")
    bench.queue.nominator.add(pod, "given")
    bench.clock.advance(10)
    bench.on(event, pod)

    assert bench.where("p") == "active"
    assert bench.queue.nominator.node_of(pod) == expected


def test_a_rejection_ends_a_row_of_errors() -> None:
    bench = Bench()
    bench.add("p")
    for _ in range(2):
        bench.fail()
        bench.queue.activate([make_pod("p")])
    info = bench.fail("Fit")

    assert (info.unschedulable_count, info.consecutive_errors_count) == (1, 0)


@pytest.mark.parametrize("place", ["active", "unschedulable", "backoff"])
def test_an_update_updates_the_nomination(place: str) -> None:
    bench = Bench()
    bench.add("p")
    if place != "active":
        bench.fail("Fit")
    if place == "backoff":
        bench.on(NODE_ADD)
    new = make_pod("p", uid="p", nominated_node_name="n")
    bench.queue.update(make_pod("p", uid="p"), new)

    assert bench.where("p") == place
    assert bench.queue.nominator.nominated() == {"n": [new]}


def test_a_gated_pod_does_not_replace_a_ready_one_of_its_name() -> None:
    bench = Bench()
    bench.add("p")
    bench.queue.add(make_pod("p", uid="new", gates=["wait"]))

    assert bench.where("p") == "active"
    assert bench.pop().pod.uid == "p"
