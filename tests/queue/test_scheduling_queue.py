from collections.abc import Callable

import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, Status, unresolvable
from bayplan.framework.events import (
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE,
    NODE_ADD,
    NODE_DELETE,
    POD,
    UNSCHEDULABLE_POD,
    ActionType,
    ClusterEvent,
    Hint,
)
from bayplan.queue import QueuedPodInfo, QueueSettings, SchedulingQueue
from bayplan.testing.builders import make_pod

ALLOCATABLE = ClusterEvent(NODE, ActionType.UpdateNodeAllocatable)
GATES_GONE = ClusterEvent(POD, ActionType.UpdatePodSchedulingGatesEliminated)


class Bench:
    """A queue with three rejecting plugins: Fit registers new nodes, Choosy has a hint for pods,
    Gates gates."""

    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.gated: list[str] = []
        self.answer = Hint.SKIP
        self.queue = SchedulingQueue(
            self.clock,
            lambda info: (-info.pod.priority, info.timestamp),
            self._gate,
            hints={
                "default-scheduler": [
                    (ClusterEvent(NODE, ActionType.Add), "Fit", None),
                    (ClusterEvent(POD, ActionType.All), "Choosy", self._choose),
                    (GATES_GONE, "SchedulingGates", None),
                ]
            },
            settings=settings,
        )

    def _choose(self, pod: Pod, old: object, new: object) -> Hint:
        self.asked.append(pod.name)
        return self.answer

    def _gate(self, pod: Pod) -> Status:
        self.gated.append(pod.name)
        gated = unresolvable("waiting for scheduling gates: []").by("SchedulingGates")
        return gated if pod.spec.scheduling_gates else SUCCESS

    def add(self, *names: str) -> None:
        for name in names:
            self.queue.add(make_pod(name, uid=name))
            self.clock.advance(0.001)

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop()
        assert info is not None, "a pod was expected to be ready"
        return info

    def fail(self, *rejectors: str, pending: tuple[str, ...] = ()) -> QueuedPodInfo:
        """Pop the next pod and requeue it."""
        info = self.pop()
        self.give_back(info, *rejectors, pending=pending)
        return info

    def give_back(
        self, info: QueuedPodInfo, *rejectors: str, pending: tuple[str, ...] = ()
    ) -> str | None:
        info.set_rejectors(rejectors, pending)
        return self.queue.add_unschedulable_if_not_present(info)

    def on(self, event: ClusterEvent, new: object = None) -> int:
        return self.queue.move_all_to_active_or_backoff(event, None, new)

    def where(self, name: str) -> str:
        """The part of the queue that has a pod."""
        queue, key = self.queue, f"default/{name}"
        places = {
            "active": key in queue.active.heap,
            "backoff": key in queue.backoff.rejected,
            "error backoff": key in queue.backoff.errors,
            "unschedulable": key in queue.unschedulable,
            "in flight": name in queue.in_flight,
        }
        return ", ".join(place for place, is_here in places.items() if is_here)


def gated_pod(name: str = "p") -> Pod:
    return make_pod(name, uid=name, gates=["wait"])


def test_pop_gives_the_highest_priority_first_then_the_longest_waiting() -> None:
    bench = Bench()
    for name, priority in (("low", 1), ("first", 2), ("second", 2)):
        bench.queue.add(make_pod(name, priority=priority))
        bench.clock.advance(1)

    popped = [bench.pop() for _ in range(3)]

    assert [info.pod.name for info in popped] == ["first", "second", "low"]
    assert [info.attempts for info in popped] == [1, 1, 1]
    assert bench.queue.pop() is None
    assert bench.queue.scheduling_cycle == 3


@pytest.mark.parametrize(
    ("rejectors", "pending", "expected"),
    [
        pytest.param(["Fit"], [], "unschedulable", id="rejected"),
        pytest.param([], ["Fit"], "unschedulable", id="pending"),
        pytest.param([], [], "error backoff", id="an error"),
    ],
)
def test_a_failed_pod_goes_back(rejectors: list[str], pending: list[str], expected: str) -> None:
    bench = Bench()
    bench.add("p")
    info = bench.fail(*rejectors, pending=tuple(pending))

    assert bench.where("p") == expected
    assert (info.unschedulable_count, info.consecutive_errors_count) == (
        (0, 1) if expected == "error backoff" else (1, 0)
    )


@pytest.mark.parametrize(
    ("event", "pending", "waited_s", "expected"),
    [
        pytest.param(NODE_ADD, (), 0, "backoff", id="an event that a rejector registered"),
        pytest.param(NODE_ADD, (), 2, "active", id="its backoff is over by then"),
        pytest.param(NODE_ADD, ("Fit",), 0, "active", id="a pending plugin does without backoff"),
        pytest.param(NODE_DELETE, (), 0, "unschedulable", id="an event that no plugin registered"),
        pytest.param(FORCE_ACTIVATE, (), 0, "backoff", id="a wildcard"),
    ],
)
def test_an_event_moves_an_unschedulable_pod(
    event: ClusterEvent, pending: tuple[str, ...], waited_s: float, expected: str
) -> None:
    bench = Bench()
    bench.add("p")
    bench.fail("Fit", pending=pending)
    bench.clock.advance(waited_s)

    moved = bench.on(event)

    assert bench.where("p") == expected
    assert moved == (expected != "unschedulable")


@pytest.mark.parametrize(
    ("event", "rejectors", "expected"),
    [
        pytest.param(NODE_ADD, ["Fit"], "backoff", id="one it was rejected for"),
        pytest.param(NODE_ADD, ["Choosy"], "unschedulable", id="not one of its rejectors"),
        pytest.param(NODE_DELETE, ["Fit"], "unschedulable", id="an event without registrations"),
        pytest.param(NODE_ADD, [], "error backoff", id="a pod after an error is always retried"),
    ],
)
def test_an_event_while_in_flight_counts_when_the_pod_comes_back(
    event: ClusterEvent, rejectors: list[str], expected: str
) -> None:
    bench = Bench()
    bench.add("p")
    info = bench.pop()
    bench.on(event)
    bench.give_back(info, *rejectors)

    assert bench.where("p") == expected
    assert bench.queue.in_flight.event_count == 0


def test_an_event_before_the_pop_does_not_count() -> None:
    bench = Bench()
    bench.add("other", "p")
    bench.pop()
    bench.on(NODE_ADD)
    info = bench.pop()
    bench.give_back(info, "Fit")

    assert bench.where("p") == "unschedulable"
    assert bench.queue.in_flight.event_count == 1


def test_pods_whose_rejectors_did_not_register_are_not_visited() -> None:
    bench = Bench()
    bench.add("p", "q")
    bench.fail("Fit")
    bench.fail("Choosy")

    bench.on(ASSIGNED_POD_DELETE)
    bench.on(ALLOCATABLE)

    assert bench.asked == ["q"]


def test_only_pods_that_pass_the_check_are_moved() -> None:
    bench = Bench()
    bench.add("p", "q")
    bench.fail("Fit")
    bench.fail("Fit")
    check: Callable[[Pod], bool] = lambda pod: pod.name == "q"  # noqa: E731
    bench.queue.move_all_to_active_or_backoff(NODE_ADD, None, None, check)

    assert (bench.where("p"), bench.where("q")) == ("unschedulable", "backoff")


def test_a_rejected_pod_is_popped_out_of_backoff_when_nothing_is_active() -> None:
    bench = Bench()
    bench.add("p", "q")
    bench.fail("Fit")
    bench.on(NODE_ADD)

    assert [bench.pop().pod.name for _ in range(2)] == ["q", "p"]
    assert bench.queue.counters.incoming["active", "PopFromBackoffQ"] == 1


def test_after_an_error_backoff_is_waited_for() -> None:
    bench = Bench()
    bench.clock.advance(0.7)
    bench.add("p")
    bench.fail()

    assert bench.queue.pop() is None
    for waited_s, moved in ((0.3, 0), (0.998, 0), (0.001, 1)):  # the whole second in which it ends
        bench.clock.advance(waited_s)
        assert bench.queue.flush_backoff_completed() == moved
    assert bench.where("p") == "active"


def test_without_backoff_a_failed_pod_is_active_at_once() -> None:
    bench = Bench(QueueSettings(pod_max_backoff_s=0))
    bench.add("p")
    bench.fail()

    assert bench.where("p") == "active"


@pytest.mark.parametrize(
    ("waited_s", "moved"),
    [
        pytest.param(300, 0, id="just as long as allowed"),
        pytest.param(300.000001, 1, id="longer"),
    ],
)
def test_pods_that_exceed_the_limit_are_requeued(waited_s: float, moved: int) -> None:
    bench = Bench()
    bench.clock.advance(0.123)
    bench.add("p")
    info = bench.fail("Unregistered")
    bench.clock.advance(waited_s)

    assert bench.queue.flush_unschedulable_leftover() == moved
    assert info.was_flushed_from_unschedulable is bool(moved)


def test_the_flush_runs_pre_enqueue_again_and_restarts_the_limit_of_a_gated_pod() -> None:
    bench = Bench()
    bench.queue.add(gated_pod())
    bench.clock.advance(301)

    assert bench.queue.flush_unschedulable_leftover() == 0
    assert bench.where("p") == "unschedulable"
    (info,) = bench.queue.gated()
    assert not info.was_flushed_from_unschedulable
    assert info.waiting_since == bench.clock.now().timestamp()


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    bench = Bench()
    bench.queue.add(gated_pod())

    assert bench.queue.pop() is None
    assert [info.gating_plugin for info in bench.queue.gated()] == ["SchedulingGates"]
    assert bench.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}

    bench.queue.update(gated_pod(), make_pod("p", uid="p", gates=["wait"], labels={"a": "b"}))
    assert bench.where("p") == "unschedulable"
    bench.queue.update(gated_pod(), make_pod("p", uid="p"))
    assert bench.where("p") == "active"
    info = bench.pop()
    assert not info.is_gated
    assert info.unschedulable_plugins == {"SchedulingGates"}


def test_events_of_other_plugins_do_not_move_a_gated_pod() -> None:
    bench = Bench()
    bench.add("p")
    info = bench.pop()
    bench.on(NODE_ADD)
    info.pod = gated_pod()
    bench.give_back(info, "Fit")
    assert info.unschedulable_plugins == {"Fit", "SchedulingGates"}
    bench.gated.clear()

    assert bench.on(NODE_ADD) == 0
    assert bench.gated == []
    assert bench.on(FORCE_ACTIVATE) == 0
    assert bench.gated == ["p"]


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


def test_next_timer_follows_the_ticks_of_the_two_flushes() -> None:
    bench = Bench()
    bench.clock.advance(0.7)
    bench.add("p", "q")
    assert bench.queue.next_timer() is None

    bench.fail()
    assert bench.queue.next_timer() == pytest.approx(2)
    bench.clock.advance(1.5)
    assert bench.queue.flush_due() == 1

    bench.fail("Unregistered")
    bench.fail("Unregistered")
    due = bench.queue.next_timer()
    assert due == pytest.approx(330)  # later than 300 s from now, and a multiple of 30 s
    bench.clock.advance(329 - bench.clock.monotonic())
    assert bench.queue.flush_due() == 0
    bench.clock.advance(1)
    assert bench.queue.flush_due() == 2
    assert bench.queue.next_timer() is None


def test_counters_are_labelled_by_event() -> None:
    bench = Bench()
    bench.add("p")
    bench.fail("Fit")
    assert dict(bench.queue.counters.rejected_by) == {("Fit", "default-scheduler"): 1}
    bench.on(NODE_ADD)
    bench.pop()

    assert dict(bench.queue.counters.incoming) == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
    }
    assert dict(bench.queue.counters.rejected_by) == {("Fit", "default-scheduler"): 0}


def test_a_later_event_can_make_it_more_urgent_for_a_pending_plugin() -> None:
    bench = Bench()
    bench.answer = Hint.QUEUE
    bench.add("p")
    info = bench.pop()
    bench.on(NODE_ADD)
    bench.on(ASSIGNED_POD_DELETE)

    assert bench.give_back(info, "Fit", pending=("Choosy",)) == "active"


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
