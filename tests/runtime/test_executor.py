"""The executor: plain work at once, asyncio work in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest

from bayplan.clock import ManualClock, Timers
from bayplan.framework import SUCCESS, Code, CycleState, PreBindPlugin, Status, unschedulable
from bayplan.runtime.commit_plugins import Committing
from bayplan.runtime.executor import InlineExecutor
from bayplan.testing.builders import make_pod

Work = Callable[[], Status | Awaitable[Status]]


class Shop:
    """An executor on a manual clock; `done` has the results of the work, and their times."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.executor = InlineExecutor(self.clock, self.timers)
        self.done: list[tuple[Status, float]] = []

    def run(self, work: Work) -> None:
        self.executor.run(work, lambda status: self.done.append((status, self.clock.monotonic())))

    def advance(self, seconds: float) -> None:
        """Jump from timer to timer, as a simulation does."""
        until = self.clock.monotonic() + seconds
        while (due := self.timers.next()) is not None and due <= until:
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            self.timers.fire_due()
        self.clock.advance(max(until - self.clock.monotonic(), 0))


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.executor.close()


async def answer_after(seconds: float, status: Status = SUCCESS) -> Status:
    await asyncio.sleep(seconds)
    return status


def test_plain_work_is_done_at_once(shop: Shop) -> None:
    shop.run(lambda: unschedulable("no"))

    assert shop.done == [(unschedulable("no"), 0)]
    assert shop.timers.next() is None


def test_plain_work_that_raises_is_an_error(shop: Shop) -> None:
    def work() -> Status:
        raise ValueError("boom")

    shop.run(work)

    ((status, _),) = shop.done
    assert (status.code, status.message) == (Code.Error, "boom")


def test_what_finished_raises_is_not_taken_for_the_work(shop: Shop) -> None:
    """An error in our own handling must not reach it once more."""
    told: list[Status] = []

    def finished(status: Status) -> None:
        told.append(status)
        raise AssertionError("broken")

    with pytest.raises(AssertionError, match="broken"):
        shop.executor.run(lambda: SUCCESS, finished)
    assert told == [SUCCESS]


def test_asyncio_work_that_does_not_wait_is_done_at_once(shop: Shop) -> None:
    async def work() -> Status:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return SUCCESS

    shop.run(work)

    assert shop.done == [(SUCCESS, 0)]


def test_sleep_takes_virtual_time(shop: Shop) -> None:
    shop.run(lambda: answer_after(30, unschedulable("late")))

    assert shop.done == []
    assert shop.timers.next() == 30
    shop.advance(29.9)
    assert shop.done == []
    shop.advance(10_000)
    assert shop.done == [(unschedulable("late"), 30)]
    assert shop.timers.next() is None


@pytest.mark.parametrize("seconds", [1 / 3, 1e-7, 0.1 + 0.2])
def test_odd_durations_end(shop: Shop, seconds: float) -> None:
    shop.clock.advance(0.7)

    shop.run(lambda: answer_after(seconds))
    shop.advance(1)

    assert [status for status, _ in shop.done] == [SUCCESS]


def test_works_run_beside_each_other(shop: Shop) -> None:
    for seconds in (3, 1, 2):
        shop.run(partial(answer_after, seconds, unschedulable(str(seconds))))

    shop.advance(5)

    assert [(status.message, when) for status, when in shop.done] == [("1", 1), ("2", 2), ("3", 3)]


def test_gather_waits_for_the_slowest(shop: Shop) -> None:
    async def work() -> Status:
        await asyncio.gather(answer_after(1), answer_after(5), answer_after(3))
        return SUCCESS

    shop.run(work)
    shop.advance(10)

    assert shop.done == [(SUCCESS, 5)]


def test_wait_for_gives_up_in_virtual_time(shop: Shop) -> None:
    async def work() -> Status:
        return await asyncio.wait_for(answer_after(60), timeout=2)

    shop.run(work)
    shop.advance(10)

    ((status, when),) = shop.done
    assert (status.code, when) == (Code.Error, 2)


def test_asyncio_work_that_raises_is_an_error(shop: Shop) -> None:
    async def work() -> Status:
        await asyncio.sleep(1)
        raise ValueError("boom")

    shop.run(work)
    shop.advance(1)

    ((status, when),) = shop.done
    assert (status.code, status.message, when) == (Code.Error, "boom", 1)


def test_work_begun_when_another_ends_is_run_too(shop: Shop) -> None:
    """As when the last pod of a gang allows the others."""

    def again(status: Status) -> None:
        shop.run(lambda: answer_after(1))
        shop.run(lambda: SUCCESS)

    shop.executor.run(lambda: answer_after(1), again)
    shop.advance(10)

    assert shop.done == [(SUCCESS, 1), (SUCCESS, 2)]


def test_close_stops_what_is_under_way(shop: Shop) -> None:
    stopped: list[str] = []

    async def work() -> Status:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise
        return SUCCESS

    shop.run(work)
    shop.executor.close()
    shop.advance(100)

    assert stopped == ["stopped"]
    assert shop.done == []


def test_close_without_work(shop: Shop) -> None:
    shop.executor.close()


# PreBind plugins on the executor


class Step(PreBindPlugin):
    """Answers after some seconds, or at once; notes when it began and how it ended."""

    def __init__(
        self, shop: Shop, seconds: float | None, status: Status = SUCCESS, parallel: bool = True
    ) -> None:
        self.shop = shop
        self.seconds = seconds
        self.status = status
        self.allow_parallel = parallel  # type: ignore[misc]
        self.began: float | None = None
        self.ended: float | None = None
        self.was_cancelled = False

    def pre_bind(
        self, state: CycleState, pod: object, node_name: str
    ) -> Status | Awaitable[Status]:
        self.began = self.shop.clock.monotonic()
        if self.seconds is not None:
            return self.later(self.seconds)
        self.ended = self.began
        return self.status

    async def later(self, seconds: float) -> Status:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        self.ended = self.shop.clock.monotonic()
        return self.status


def pre_bind(shop: Shop, *steps: Step, skipped: tuple[Step, ...] = ()) -> None:
    for number, step in enumerate(steps):
        step.name = f"S{number}"  # type: ignore[misc]
    committing = Committing((), (), steps, (), ())
    names = {step.name for step in skipped}
    shop.run(lambda: committing.run_pre_bind(CycleState(), make_pod(), "node", names))


def test_neighbours_run_together_and_others_alone(shop: Shop) -> None:
    steps = [
        Step(shop, 2),
        Step(shop, 3),
        Step(shop, 4, parallel=False),
        Step(shop, 1),
        Step(shop, None),
    ]

    pre_bind(shop, *steps)
    shop.advance(100)

    assert [(step.began, step.ended) for step in steps] == [(0, 2), (0, 3), (3, 7), (7, 8), (7, 7)]
    assert shop.done == [(SUCCESS, 8)]


def test_a_skipped_neighbour_does_not_part_but_a_skipped_loner_does(shop: Shop) -> None:
    together = [Step(shop, 2), Step(shop, 2), Step(shop, 2)]
    pre_bind(shop, *together, skipped=(together[1],))
    shop.advance(100)
    assert [step.began for step in together] == [0, None, 0]

    apart = [Step(shop, 2), Step(shop, 2, parallel=False), Step(shop, 2)]
    pre_bind(shop, *apart, skipped=(apart[1],))
    shop.advance(100)
    assert [step.began for step in apart] == [100, None, 102]


def test_the_first_failure_cancels_the_neighbours_and_ends_the_rest(shop: Shop) -> None:
    steps = [
        Step(shop, 9),
        Step(shop, 2, unschedulable("no")),
        Step(shop, 1),
        Step(shop, 1, parallel=False),
    ]

    pre_bind(shop, *steps)
    shop.advance(100)

    assert shop.done == [(unschedulable("no").by("S1"), 2)]
    assert [step.was_cancelled for step in steps] == [True, False, False, False]
    assert (steps[2].ended, steps[3].began) == (1, None)


def test_a_plain_failure_leaves_nothing_behind_of_its_neighbours(shop: Shop) -> None:
    steps = [Step(shop, 5), Step(shop, None, unschedulable("no")), Step(shop, 5)]

    pre_bind(shop, *steps)

    assert shop.done == [(unschedulable("no").by("S1"), 0)]
    assert steps[2].began is None
    assert shop.timers.next() is None
