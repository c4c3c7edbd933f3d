"""Leader election in virtual time: there are never two leaders."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.apiserver.server import make_kubeconfig
from bayplan.clock import ManualClock
from bayplan.errors import ApiError, ConflictError, NotFoundError
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.kube.leader import ElectionTimes, LeaderElector, LeaseLock, make_identity
from tests.rig.api_server import START, api_server
from tests.rig.virtual_time import run_virtual

Tree = dict[str, Any]


class Shared:
    """The server's side of a lease: one object with a version, and its events."""

    def __init__(self) -> None:
        self.lease: Tree | None = None
        self.events: list[str] = []
        self.calls: list[str] = []

    def lose(self) -> None:
        """The lease is deleted."""
        self.lease = None


class FakeLock:
    """A connection to the lease that can be cut, or slowed down."""

    name = "kube-scheduler"

    def __init__(self, shared: Shared, delay: Callable[[], float] = lambda: 0.0) -> None:
        self._shared = shared
        self._delay = delay
        self.is_cut = False
        self.hangs = False

    async def get(self) -> Tree:
        await self._travel("get")
        if self._shared.lease is None:
            raise NotFoundError("no lease")
        return await self._answer()

    async def create(self, spec: Tree) -> Tree:
        await self._travel("create")
        if self._shared.lease is not None:
            raise ConflictError("exists")
        self._shared.lease = {"metadata": {"resourceVersion": "1"}, "spec": spec}
        return await self._answer()

    async def update(self, lease: Tree) -> Tree:
        await self._travel("update")
        there = self._shared.lease
        if there is None:
            raise NotFoundError("no lease")
        if lease["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]:
            raise ConflictError("changed")
        version = str(int(there["metadata"]["resourceVersion"]) + 1)
        self._shared.lease = {"metadata": {"resourceVersion": version}, "spec": lease["spec"]}
        return await self._answer()

    async def record_event(self, lease: Tree, note: str) -> None:
        await self._travel("event")
        self._shared.events.append(note)

    async def _answer(self) -> Tree:
        answer = deepcopy(self._shared.lease)
        assert answer is not None
        await asyncio.sleep(self._delay())
        return answer

    async def _travel(self, call: str) -> None:
        self._shared.calls.append(call)
        await asyncio.sleep(self._delay())
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_cut:
            raise ApiError("connection refused")


def elector(clock: ManualClock, lock: FakeLock, name: str) -> LeaderElector:
    return LeaderElector(lock, name, clock, jitter=lambda: 0.0)


def leads(one: LeaderElector) -> bool:
    return one.is_leading


def test_the_first_creates_the_lease() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one = elector(clock, FakeLock(shared), "one")
        assert not leads(one)
        await one.acquire()
        assert leads(one)
        await asyncio.sleep(1)

    run_virtual(clock, work())

    assert shared.lease is not None
    assert shared.lease["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert shared.events == ["one became leader"]


def test_the_leader_renews_every_two_seconds_without_reading() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one = elector(clock, FakeLock(shared), "one")
        await one.acquire()
        await asyncio.sleep(0)
        shared.calls.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(9):
                await one.hold()
        assert leads(one)

    run_virtual(clock, work())

    assert shared.calls == ["update"] * 5
    assert shared.lease is not None
    assert shared.lease["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert shared.lease["spec"]["renewTime"] == "2026-01-01T00:00:08.000000Z"


def test_another_takes_over_when_the_lease_was_not_seen_to_change_for_its_duration() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one, two = elector(clock, FakeLock(shared), "one"), elector(clock, FakeLock(shared), "two")
        await one.acquire()
        clock.advance(14)  # the time in the lease does not matter, only when we first saw it
        await two.acquire()
        assert clock.monotonic() == 14 + 16  # read every two seconds; expired after fifteen
        assert (two.is_leading, one.is_leading) == (True, False)
        assert two.leader == "two"

    run_virtual(clock, work())

    assert shared.lease is not None
    assert shared.lease["spec"]["leaseTransitions"] == 1
    assert shared.lease["spec"]["acquireTime"] == "2026-01-01T00:00:30.000000Z"


def test_a_released_lease_is_taken_at_once() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one, two = elector(clock, FakeLock(shared), "one"), elector(clock, FakeLock(shared), "two")
        await one.acquire()
        assert await one.release()
        assert not leads(one)
        assert shared.lease is not None
        assert shared.lease["spec"]["holderIdentity"] == ""
        assert shared.lease["spec"]["leaseDurationSeconds"] == 1
        before = clock.monotonic()
        await two.acquire()
        assert clock.monotonic() == before
        assert not await one.release()  # no longer ours to release
        assert shared.lease["spec"]["holderIdentity"] == "two"
        await asyncio.sleep(1)

    run_virtual(clock, work())

    assert shared.events == ["one became leader", "one stopped leading", "two became leader"]


@pytest.mark.parametrize("way", [pytest.param("is_cut", id="refused"), pytest.param("hangs")])
def test_a_leader_that_cannot_renew_steps_down_before_its_lease_ends(way: str) -> None:
    clock, shared = ManualClock(START), Shared()
    lock = FakeLock(shared)

    async def work() -> None:
        one = elector(clock, lock, "one")
        await one.acquire()
        setattr(lock, way, True)
        holding = asyncio.ensure_future(one.hold())
        await asyncio.sleep(9.9)
        assert leads(one)
        await asyncio.sleep(0.2)
        assert not leads(one)
        await holding
        assert clock.monotonic() <= 15.0

    run_virtual(clock, work())


def test_a_short_outage_is_tolerated() -> None:
    clock, shared = ManualClock(START), Shared()
    lock = FakeLock(shared)

    async def work() -> None:
        one = elector(clock, lock, "one")
        await one.acquire()
        holding = asyncio.ensure_future(one.hold())
        await asyncio.sleep(1)
        lock.is_cut = True
        await asyncio.sleep(8)
        lock.is_cut = False
        await asyncio.sleep(5)
        assert leads(one)
        assert not holding.done()
        assert "leader_election_slowpath_total" in {family.name for family in one.families()}
        holding.cancel()

    run_virtual(clock, work())


def test_a_leader_whose_thread_was_stalled_may_not_write() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one = elector(clock, FakeLock(shared), "one")
        await one.acquire()
        clock.advance(15)  # no task could renew, or notice
        assert not leads(one)
        assert one.problem() is None
        clock.advance(21)
        assert one.problem() == "failed election to renew leadership on lease kube-scheduler"

    run_virtual(clock, work())


def test_a_leader_that_finds_another_in_its_place_steps_down() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one = elector(clock, FakeLock(shared), "one")
        await one.acquire()
        assert shared.lease is not None
        shared.lease["spec"] = {**shared.lease["spec"], "holderIdentity": "usurper"}
        shared.lease["metadata"]["resourceVersion"] = "77"
        holding = asyncio.ensure_future(one.hold())
        await asyncio.sleep(0.1)
        assert not leads(one)
        await holding

    run_virtual(clock, work())


def test_a_deleted_lease_is_recreated() -> None:
    clock, shared = ManualClock(START), Shared()

    async def work() -> None:
        one = elector(clock, FakeLock(shared), "one")
        await one.acquire()
        shared.lose()
        holding = asyncio.ensure_future(one.hold())
        await asyncio.sleep(1)
        assert leads(one)
        assert shared.lease is not None
        holding.cancel()

    run_virtual(clock, work())


Action = tuple[int, str, float]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from(["cut", "hang", "heal", "kill"]), st.floats(0, 20)
        ),
        max_size=12,
    ),
)
@example(0, [(0, "kill", 3.0)])
@example(0, [(1, "kill", 3.0)])
@example(0, [(2, "kill", 3.0)])
def test_never_two_lead(seed: int, actions: list[Action]) -> None:
    """For any faults of the network and of replicas, no two of them may write at the same moment."""
    clock, shared, rng = ManualClock(START), Shared(), random.Random(seed)
    locks = [FakeLock(shared, delay=lambda: rng.uniform(0, 0.5)) for _ in range(3)]
    electors = [
        LeaderElector(lock, f"replica-{i}", clock, ElectionTimes(), jitter=rng.random)
        for i, lock in enumerate(locks)
    ]
    leaders: list[str] = []

    async def replica(which: LeaderElector) -> None:
        while True:
            await which.acquire()
            await which.hold()

    async def watch() -> None:
        while True:
            leading = [one.identity for one in electors if one.is_leading]
            assert len(leading) <= 1
            leaders.extend(leading)
            await asyncio.sleep(0.25)

    async def work() -> None:
        tasks = [asyncio.ensure_future(replica(one)) for one in electors]
        watching = asyncio.ensure_future(watch())
        for number, action, pause in actions:
            await asyncio.sleep(pause)
            match action:
                case "cut":
                    locks[number].is_cut = True
                case "hang":
                    locks[number].hangs = True
                case "heal":
                    locks[number].is_cut = locks[number].hangs = False
                case "kill":
                    tasks[number].cancel()
            assert not watching.done(), watching.exception()
        for lock in locks:
            lock.is_cut = lock.hangs = False
        alive = [task for task in tasks if not task.cancelling()]
        await asyncio.sleep(30)
        leaders.clear()
        await asyncio.sleep(5)
        assert not watching.done(), watching.exception()
        # with one candidate alive, there is a leader eventually
        assert bool(leaders) is bool(alive)
        for task in [*tasks, watching]:
            task.cancel()

    run_virtual(clock, work())


def test_identities_differ() -> None:
    assert make_identity() != make_identity()
    assert "_" in make_identity()


def with_connection(
    url: str, work: Callable[[Connection], Awaitable[None]], tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(make_kubeconfig(url)))

    async def run() -> None:
        connection = Connection(await load_credentials(path))
        try:
            await work(connection)
        finally:
            await connection.close()

    asyncio.run(run())


def test_against_an_api_server(tmp_path: Path) -> None:
    with api_server() as server:

        async def work(connection: Connection) -> None:
            clock = ManualClock(START)

            def make(identity: str) -> LeaderElector:
                lock = LeaseLock(connection, "kube-system", "bayplan", clock, "bayplan-scheduler")
                return LeaderElector(lock, identity, clock)

            one, two = make("one"), make("two")
            await one.acquire()
            assert not await two._acquire_or_renew()
            assert two.leader == "one"
            clock.advance(2)
            assert await one._acquire_or_renew()
            clock.advance(14.9)
            assert not await two._acquire_or_renew()
            clock.advance(15)
            assert await two._acquire_or_renew()
            assert not await one._acquire_or_renew()
            assert await two.release()

        with_connection(server.server.url, work, tmp_path)

        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bayplan"
        spec = server.get(path).tree["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 1)
        assert spec["renewTime"] == "2026-01-01T00:00:31.900000Z"
        events = server.get("/api/v1/namespaces/kube-system/events").tree["items"]
        assert [event["message"] for event in events if event["reason"] == "LeaderElection"] == [
            "one became leader",
            "two stopped leading",
        ]
        assert events[0]["involvedObject"]["kind"] == "Lease"
