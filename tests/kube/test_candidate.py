"""Coordinated leader election in virtual time: the lease is given, not taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.errors import ApiError, NotFoundError
from bayplan.kube.leader import CandidateSpec, CoordinatedElector, LeaseCandidate
from tests.rig.api_server import START
from tests.rig.virtual_time import run_virtual

Tree = dict[str, Any]
NOW = "2026-01-01T00:00:00.000000Z"


class GivenLock:
    """A lease that a controller gives to candidates."""

    name = "kube-scheduler"

    def __init__(self) -> None:
        self.spec: Tree | None = None
        self.updates = 0

    def give(self, holder: str, **more: Any) -> None:
        self.spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 5,
            "acquireTime": NOW,
            "renewTime": NOW,
            "leaseTransitions": 3,
            "strategy": "OldestEmulationVersion",
            **more,
        }

    async def get(self) -> Tree:
        if self.spec is None:
            raise NotFoundError("no lease")
        return {"metadata": {"resourceVersion": str(self.updates)}, "spec": dict(self.spec)}

    async def create(self, spec: Tree) -> Tree:
        raise AssertionError("a candidate does not create the lease")

    async def update(self, lease: Tree) -> Tree:
        self.updates += 1
        self.spec = dict(lease["spec"])
        return await self.get()

    async def record_event(self, lease: Tree, note: str) -> None:
        pass


def test_a_candidate_leads_when_it_is_given_the_lease_and_until_its_term_ends() -> None:
    clock, lock = ManualClock(START), GivenLock()

    async def work() -> None:
        elector = CoordinatedElector(lock, "own", clock, jitter=lambda: 0.0)
        acquiring = asyncio.ensure_future(elector.acquire())
        await asyncio.sleep(5)
        lock.give("other")
        await asyncio.sleep(30)  # it expires, and is not taken
        assert not acquiring.done()
        lock.give("own")
        await acquiring
        assert elector.is_leading
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(20)
        assert elector.is_leading
        assert lock.spec is not None
        assert (lock.spec["leaseTransitions"], lock.spec["acquireTime"]) == (3, NOW)
        assert lock.spec["strategy"] == "OldestEmulationVersion"
        lock.spec["preferredHolder"] = "other"
        async with asyncio.timeout(60):
            await holding
        assert not elector.is_leading

    run_virtual(clock, work())

    assert lock.updates > 5


def test_a_lease_that_passed_to_another_ends_the_leadership_at_once() -> None:
    clock, lock = ManualClock(START), GivenLock()
    lock.give("own")

    async def work() -> None:
        elector = CoordinatedElector(lock, "own", clock, jitter=lambda: 0.0)
        await elector.acquire()
        lock.give("other")
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(0)
        assert not elector.is_leading
        async with asyncio.timeout(60):
            await holding

    run_virtual(clock, work())


class CandidateServer:
    """An API server with one LeaseCandidate, whose watch gets `ping`."""

    def __init__(self) -> None:
        self.candidate: Tree | None = None
        self.writes: list[str] = []
        self.watching: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_away = False

    async def get(self, path: str) -> Tree:
        if self.is_away:
            raise ApiError("away")
        if self.candidate is None:
            raise NotFoundError("no candidate")
        return self.candidate

    async def send(self, method: str, path: str, tree: Any = None) -> Tree:
        self.writes.append(f"{method} {path}")
        version = str(len(self.writes))
        self.candidate = {**tree, "metadata": {**tree["metadata"], "resourceVersion": version}}
        return self.candidate

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AsyncIterator[Any]:
        assert query["fieldSelector"] == "metadata.name=own"
        yield self

    async def iter_any(self) -> AsyncIterator[bytes]:
        while chunk := await self.watching.get():
            yield chunk

    def tell(self, kind: str, **times: str) -> None:
        line = json.dumps({"type": kind, "object": {"spec": times}}).encode() + b"\n"
        self.watching.put_nowait(line[:20])  # events may arrive in pieces
        self.watching.put_nowait(line[20:])


OWN = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates"
SPEC = CandidateSpec("kube-system", "kube-scheduler", "own", "1.36.0", "1.35.0")


def written(*events: tuple[str, dict[str, str]], is_away: bool = False) -> CandidateServer:
    """Run a candidate while the server sends events."""
    clock, server = ManualClock(START), CandidateServer()

    async def work() -> None:
        server.is_away = is_away
        running = asyncio.ensure_future(LeaseCandidate(server, SPEC, clock).run())
        await asyncio.sleep(10)
        server.is_away = False
        await asyncio.sleep(10)
        for kind, times in events:
            server.tell(kind, **times)
            await asyncio.sleep(1)
        running.cancel()

    run_virtual(clock, work())
    return server


def test_a_candidate_announces_itself() -> None:
    server = written()

    assert server.writes == [f"POST {OWN}"]
    assert server.candidate is not None
    assert server.candidate["spec"] == {
        "leaseName": "kube-scheduler",
        "binaryVersion": "1.36.0",
        "emulationVersion": "1.35.0",
        "strategy": "OldestEmulationVersion",
        "renewTime": NOW,
    }


LATER = "2026-01-01T00:00:09.000000Z"


@pytest.mark.parametrize(
    ("event", "renewals"),
    [
        pytest.param(("MODIFIED", {"pingTime": LATER, "renewTime": NOW}), 1, id="a ping"),
        pytest.param(("MODIFIED", {"pingTime": NOW, "renewTime": LATER}), 0, id="its answer"),
        pytest.param(("MODIFIED", {"renewTime": NOW}), 0, id="no ping"),
        pytest.param(("DELETED", {"renewTime": NOW}), 1, id="the candidate was deleted"),
        pytest.param(("ERROR", {}), 1, id="the version has expired"),
    ],
)
def test_a_candidate_renews_when_it_is_asked_to(
    event: tuple[str, dict[str, str]], renewals: int
) -> None:
    server = written(event)

    assert server.writes[1:] == [f"PUT {OWN}/own"] * renewals


def test_a_candidate_tries_again_when_the_server_is_away() -> None:
    assert written(is_away=True).writes == [f"POST {OWN}"]
