"""None"""

from collections.abc import Callable

import pytest

from bayplan.api.pod import Pod
from bayplan.framework.events import (
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    Hint,
)
from bayplan.queue.backoff import QueueSettings
from bayplan.testing.builders import make_pod
from tests.queue.queue_bench import Bench, gated_pod

ALLOCATABLE = ClusterEvent(NODE, ActionType.UpdateNodeAllocatable)


def test_pop_gives_the_highest_priority_first_then_the_longest_waiting() -> None:
    bench = Bench()
    for name, priority in (("low", 1), ("first", 2), ("second", 2)):
        bench.queue.add(make_pod(name, priority=priority))
        bench.clock.advance(1)

    popped = [bench.pop() for _ in range(3)]

    assert [info.pod.name for info in popped] == ["first", "second", "low"]
    assert [info.attempts for info in popped] == [1, 1, 1]
    assert bench.queue.pop() is None
    assert bench.queue.active.scheduling_cycle == 3


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

    assert bench.queue.flush_unschedulable_leftover(bench.clock.timestamp()) == moved
    assert info.was_flushed_from_unschedulable is bool(moved)


def test_the_flush_runs_pre_enqueue_again_and_restarts_the_limit_of_a_gated_pod() -> None:
    bench = Bench()
    bench.queue.add(gated_pod())
    bench.clock.advance(301)

    assert bench.queue.flush_unschedulable_leftover(bench.clock.timestamp()) == 0
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
