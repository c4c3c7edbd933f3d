"""Crossing: every item reaches the other loop, once and in order, with few wake-ups."""

import asyncio
import threading
from collections import deque
from collections.abc import Iterator

import pytest

from bayplan.drivers.core_thread import Crossing, PatientCrossing

TIMEOUT_S = 20.0


class OtherLoop:
    """A loop on its own thread, and the items that crossed to it."""

    def __init__(self, expected: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.taken: list[int] = []
        self.turns = 0
        self.done = threading.Event()
        self._expected = expected
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def take(self, items: deque[int]) -> None:
        assert threading.current_thread() is self._thread
        self.turns += 1
        while items:
            self.taken.append(items.popleft())
        if len(self.taken) >= self._expected:
            self.done.set()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_S)
        self.loop.close()


@pytest.fixture
def other() -> Iterator[OtherLoop]:
    other = OtherLoop(2000)
    yield other
    if not other.loop.is_closed():
        other.stop()


def test_everything_crosses_once_and_in_order(other: OtherLoop) -> None:
    crossing: Crossing[int] = Crossing(other.loop, other.take)

    for number in range(2000):
        crossing.put(number)

    assert other.done.wait(TIMEOUT_S)
    assert other.taken == list(range(2000))


@pytest.mark.parametrize("patience_s", [0.0, 0.001])
def test_items_of_one_iteration_cross_together(other: OtherLoop, patience_s: float) -> None:
    async def put_all() -> None:
        source = asyncio.get_running_loop()
        crossing = PatientCrossing(source, other.loop, other.take, patience_s)
        for number in range(2000):
            crossing.put(number)
        while not other.done.is_set():
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(put_all(), TIMEOUT_S))

    assert other.taken == list(range(2000))
    assert other.turns == 1


def test_patient_crossing_takes_from_any_thread(other: OtherLoop) -> None:
    source = asyncio.new_event_loop()  # that does not run
    crossing = PatientCrossing(source, other.loop, other.take)

    for number in range(2000):
        crossing.put(number)

    assert other.done.wait(TIMEOUT_S)
    assert other.taken == list(range(2000))
    source.close()


def test_items_for_a_closed_loop_are_dropped(other: OtherLoop) -> None:
    crossing: Crossing[int] = Crossing(other.loop, other.take)
    other.stop()

    crossing.put(1)

    assert len(crossing) == 1
