from bayplan.framework.events import NODE_ADD, NODE_DELETE
from bayplan.queue.active import InFlight
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.testing.builders import make_pod


def make_info(uid: str) -> QueuedPodInfo:
    return QueuedPodInfo(make_pod(uid, uid=uid), 0.0)


def test_an_event_with_no_pod_in_flight_is_not_kept() -> None:
    flight = InFlight()
    flight.record(NODE_ADD, None, None)

    assert flight.event_count == 0


def test_each_pod_sees_the_events_since_its_pop() -> None:
    flight = InFlight()
    flight.start(make_info("a"))
    flight.record(NODE_ADD, None, "first")
    flight.start(make_info("b"))
    flight.record(NODE_DELETE, "second", None)

    assert [new or old for _, old, new in flight.events_since("a")] == ["first", "second"]
    assert [event for event, _, _ in flight.events_since("b")] == [NODE_DELETE]


def test_done_drops_events_that_only_this_pod_needed() -> None:
    flight = InFlight()
    flight.start(make_info("a"))
    flight.record(NODE_ADD, None, None)
    flight.start(make_info("b"))
    flight.record(NODE_DELETE, None, None)
    flight.done("a")

    assert flight.event_count == 1
    assert [event for event, _, _ in flight.events_since("b")] == [NODE_DELETE]


def test_done_of_a_later_pod_keeps_the_events_of_the_first() -> None:
    flight = InFlight()
    flight.start(make_info("a"))
    flight.record(NODE_ADD, None, None)
    flight.start(make_info("b"))
    flight.record(NODE_DELETE, None, None)
    flight.done("b")
    flight.done("b")

    assert len(list(flight.events_since("a"))) == 2
    flight.done("a")
    assert (len(flight), flight.event_count) == (0, 0)
