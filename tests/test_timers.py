"""Timers: when actions run, and in which order."""

import pytest

from bayplan.clock import ManualClock, Timers


class Bell:
    """Timers on a manual clock; `rung` lists those that ran, with their times."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.rung: list[tuple[str, float]] = []

    def ring(self, name: str) -> None:
        self.rung.append((name, self.clock.monotonic()))

    def advance(self, seconds: float) -> int:
        self.clock.advance(seconds)
        return self.timers.fire_due()


def test_timers_fire_in_order_of_time_then_of_setting() -> None:
    bell = Bell()
    for name, when in [("c", 3), ("a", 1), ("b", 2), ("a too", 1)]:
        bell.timers.at(when, lambda name=name: bell.ring(name))  # type: ignore[misc]  # a lambda with a default

    assert bell.timers.next() == 1
    assert bell.advance(2) == 3
    assert [name for name, _ in bell.rung] == ["a", "a too", "b"]
    assert bell.timers.next() == 3
    assert bell.advance(1) == 1
    assert bell.timers.next() is None
    assert bell.advance(100) == 0


def test_after_counts_from_now() -> None:
    bell = Bell()
    bell.clock.advance(10)

    bell.timers.after(5, lambda: bell.ring("x"))

    assert bell.timers.next() == 15
    bell.advance(4.9)
    assert bell.rung == []
    bell.advance(0.1)
    assert bell.rung == [("x", 15)]


def test_a_timer_in_the_past_is_due_at_once() -> None:
    bell = Bell()
    bell.clock.advance(10)

    bell.timers.at(3, lambda: bell.ring("x"))

    assert bell.advance(0) == 1


def test_a_cancelled_timer_does_not_fire() -> None:
    bell = Bell()
    first = bell.timers.at(1, lambda: bell.ring("first"))
    bell.timers.at(2, lambda: bell.ring("second"))

    first.cancel()

    assert first.is_cancelled
    assert bell.timers.next() == 2
    assert bell.advance(5) == 1
    assert [name for name, _ in bell.rung] == ["second"]


def test_a_timer_can_cancel_a_later_one_of_the_same_moment() -> None:
    bell = Bell()
    bell.timers.at(1, lambda: later.cancel())
    later = bell.timers.at(1, lambda: bell.ring("later"))

    assert bell.advance(1) == 1
    assert bell.rung == []


def test_a_timer_fires_once() -> None:
    bell = Bell()
    timer = bell.timers.at(1, lambda: bell.ring("x"))
    bell.advance(1)

    timer.fire()
    timer.cancel()

    assert bell.rung == [("x", 1)]


def test_timers_set_while_firing_fire_too_when_they_are_due() -> None:
    bell = Bell()

    def chain() -> None:
        bell.ring("chain")
        bell.timers.after(0, lambda: bell.ring("at once"))
        bell.timers.after(1, lambda: bell.ring("later"))

    bell.timers.at(1, chain)
    bell.timers.at(1, lambda: bell.ring("beside"))

    assert bell.advance(1) == 3
    assert [name for name, _ in bell.rung] == ["chain", "beside", "at once"]
    assert bell.timers.next() == 2


def test_a_timer_that_raises_leaves_the_others_in_place() -> None:
    bell = Bell()

    def fail() -> None:
        raise ValueError("boom")

    bell.timers.at(1, fail)
    bell.timers.at(1, lambda: bell.ring("x"))

    with pytest.raises(ValueError, match="boom"):
        bell.advance(1)
    assert bell.timers.fire_due() == 1


@pytest.mark.parametrize("seconds", [1 / 3, 2 / 3, 0.1 + 0.2, 1e-7, 12345.000_000_4])
def test_jumping_to_the_next_timer_reaches_it(seconds: float) -> None:
    bell = Bell()
    bell.clock.advance(0.1)
    bell.timers.after(seconds, lambda: bell.ring("x"))

    due = bell.timers.next()
    assert due is not None
    bell.advance(max(due - bell.clock.monotonic(), 0))

    assert len(bell.rung) == 1


def test_the_first_timer_of_a_time_fires_before_those_that_were_set_earlier() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[str] = []
    timers.at(5.0, lambda: fired.append("a"))
    timers.first_at(5.0, lambda: fired.append("first"))
    timers.at(4.0, lambda: fired.append("earlier"))

    clock.advance(5)
    timers.fire_due()

    assert fired == ["earlier", "first", "a"]
