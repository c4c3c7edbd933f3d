"""Workers verify fleets in parallel with the search, and change no result."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.planning import fleet_check
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.planning.workers import FleetTask, WorkerPool, count_workers

from .test_plan import POOL, SEEDED, make_deployment

pytestmark = pytest.mark.skipif(count_workers() == 0, reason="no process can be forked here")


def task_of(size: int, seed: int = 0) -> FleetTask:
    return FleetTask(Fleet({NodeGroupKey(0, ""): size}), seed)


def work(task: FleetTask) -> tuple[int, int]:
    """The size of a fleet, and the process of the answer."""
    size = task.fleet.size()
    if size == 13:
        raise ValueError("a plugin fails")
    if size == 14:
        os.kill(os.getpid(), signal.SIGKILL)
    return size + 100 * task.further_seed, os.getpid()


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(work, 2)
    yield made
    made.end()


def test_all_fleets_but_the_first_are_answered_by_workers(pool: WorkerPool) -> None:
    fleets = [task_of(size) for size in (3, 4, 5)]

    pool.announce(list(fleets))
    answers = [pool.take(fleet) for fleet in fleets]

    assert answers[0] is None, "it is left to the process that asks"
    assert [size for size, _ in answers[1:]] == [4, 5]
    assert os.getpid() not in {process for _, process in answers[1:]}


def test_seeds_of_one_fleet_are_tasks_of_their_own(pool: WorkerPool) -> None:
    pool.announce([task_of(3, seed=5), task_of(3, seed=6), task_of(3, seed=7)])

    assert [pool.take(task_of(3, seed=seed))[0] for seed in (6, 7)] == [603, 703]
    assert pool.take(task_of(3)) is None


def test_a_task_that_is_announced_again_is_not_begun_twice(tmp_path: Path) -> None:
    log = tmp_path / "begun"

    def note(task: FleetTask) -> int:
        with log.open("a") as file:
            print(task.further_seed, file=file)
        return task.further_seed

    pool = WorkerPool(note, 2)
    for first in (5, 6, 7):
        pool.announce([task_of(3, seed) for seed in range(first, first + 3)])
        pool.take(task_of(3, first))
    pool.take(task_of(3, 8))
    pool.take(task_of(3, 9))
    pool.end()

    begun = log.read_text().split()
    assert len(begun) == len(set(begun))


@pytest.mark.parametrize(
    ("own_s", "is_waited_for"),
    [
        pytest.param(0.0, True, id="this process does nothing meanwhile"),
        pytest.param(0.4, False, id="this process works longer than the worker"),
    ],
)
def test_time_of_workers_counts_only_where_this_process_waits_for_it(
    own_s: float, is_waited_for: bool
) -> None:
    waited: list[float] = []
    pool = WorkerPool(lambda task: spend(0.1), 1, waited.append)

    pool.announce([task_of(3), task_of(4)])
    spend(own_s)
    pool.take(task_of(4))
    pool.end()

    assert (sum(waited) > 0.05) is is_waited_for


def spend(cpu_s: float) -> float:
    """Use processor time."""
    until_s = time.process_time() + cpu_s
    while time.process_time() < until_s:
        pass
    return cpu_s


def test_a_fleet_that_was_not_announced_is_left_to_the_process_that_asks(pool: WorkerPool) -> None:
    pool.announce([task_of(3), task_of(4)])

    assert pool.take(task_of(5)) is None


@pytest.mark.parametrize(
    "size",
    [pytest.param(13, id="it raises an error"), pytest.param(14, id="its process is killed")],
)
def test_a_worker_that_fails_leaves_its_fleet_to_the_process_that_asks(
    pool: WorkerPool, size: int
) -> None:
    pool.announce([task_of(3), task_of(size)])

    assert pool.take(task_of(size)) is None
    pool.announce([task_of(3), task_of(4)])
    answer = pool.take(task_of(4))
    assert answer is not None
    assert answer[0] == 4


def test_a_worker_that_is_killed_while_it_is_idle_gets_no_more_work(pool: WorkerPool) -> None:
    pool.announce([task_of(3), task_of(4)])
    _, process = pool.take(task_of(4))
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)

    pool.announce([task_of(5), task_of(6), task_of(7)])

    answers = [pool.take(task_of(size)) for size in (6, 7)]
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
