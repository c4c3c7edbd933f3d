"""Workers verify fleets beside the search, and change no result."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.planning import fleet_check
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.planning.workers import WorkerPool, count_workers

from .test_plan import POOL, SEEDED, make_deployment

pytestmark = pytest.mark.skipif(count_workers() == 0, reason="no process can be forked here")


def fleet_of(size: int) -> Fleet:
    return Fleet({NodeGroupKey(0, ""): size})


def work(fleet: Fleet) -> tuple[int, int]:
    """The size of a fleet, and the process of the answer."""
    if fleet.size() == 13:
        raise ValueError("a plugin fails")
    if fleet.size() == 14:
        os.kill(os.getpid(), signal.SIGKILL)
    return fleet.size(), os.getpid()


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(work, 2)
    yield made
    made.end()


def test_all_fleets_but_the_first_are_answered_by_workers(pool: WorkerPool) -> None:
    fleets = [fleet_of(size) for size in (3, 4, 5)]

    pool.announce(list(fleets))
    answers = [pool.take(fleet) for fleet in fleets]

    assert answers[0] is None, "it is left to the process that asks"
    assert [size for size, _ in answers[1:]] == [4, 5]
    assert os.getpid() not in {process for _, process in answers[1:]}


def test_a_fleet_that_was_not_announced_is_left_to_the_process_that_asks(pool: WorkerPool) -> None:
    pool.announce([fleet_of(3), fleet_of(4)])

    assert pool.take(fleet_of(5)) is None


@pytest.mark.parametrize(
    "size",
    [pytest.param(13, id="it raises an error"), pytest.param(14, id="its process is killed")],
)
def test_a_worker_that_fails_leaves_its_fleet_to_the_process_that_asks(
    pool: WorkerPool, size: int
) -> None:
    pool.announce([fleet_of(3), fleet_of(size)])

    assert pool.take(fleet_of(size)) is None
    pool.announce([fleet_of(3), fleet_of(4)])
    answer = pool.take(fleet_of(4))
    assert answer is not None
    assert answer[0] == 4


def test_a_worker_that_is_killed_while_it_is_idle_gets_no_more_work(pool: WorkerPool) -> None:
    pool.announce([fleet_of(3), fleet_of(4)])
    _, process = pool.take(fleet_of(4))
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)

    pool.announce([fleet_of(5), fleet_of(6), fleet_of(7)])

    answers = [pool.take(fleet_of(size)) for size in (6, 7)]
    assert [answer and answer[0] for answer in answers] == [6, None]


def test_a_plan_is_the_same_with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [make_deployment(f"a{i}", 4 + i, f"{700 + 310 * i}m") for i in range(4)]
    monkeypatch.setattr(fleet_check, "LONG_S", -1.0)
    found: list[Any] = []
    for count in (0, 2):
        monkeypatch.setattr(fleet_check, "count_workers", lambda count=count: count)
        plan = plan_nodes(objects, [POOL], SEEDED, PlanRequest(time_limit_s=60))
        found.append((plan.price, plan.bound, plan.groups, plan.placements))

    assert found[0] == found[1]
