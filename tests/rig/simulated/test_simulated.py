"""The simulated API server answers as a real one, in virtual time, and injects the faults of its data."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.errors import ApiError, ConflictError
from bayplan.kube.connection import Connection, UnreachableError
from bayplan.kube.credentials import Credentials, Identity, Place
from tests.rig.faults import Faults
from tests.rig.simulated import (
    NetworkLoop,
    SimulatedApi,
    SimulatedServer,
    VersionedStore,
)

PODS, POD = "/api/v1/pods", "/api/v1/namespaces/default/pods/p"
NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
Tree = dict[str, Any]
Work = Callable[[SimulatedServer, Connection], Awaitable[Any]]


def run(work: Work, faults: Faults | None = None) -> Any:
    """Result of work on a server with one pod, and the virtual time that it took."""

    async def go() -> Any:
        async def identify() -> Identity:
            return Identity()

        store = VersionedStore()
        api = SimulatedApi(store, loop.call_later)
        server = SimulatedServer(loop, api, faults or Faults(), random.Random(1))
        loop.serve("127.0.0.1", 6443, server.accept)
        store.add("pods", pod("p"))
        place = Place("http://127.0.0.1:6443")
        connection = Connection(Credentials(place, Identity(), identify, "a test"))
        try:
            return await work(server, connection)
        finally:
            await connection.close()

    loop = NetworkLoop(ManualClock(), random.Random(2))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(go())


def pod(name: str) -> Tree:
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"containers": []},
        "status": {"phase": "Pending"},
    }


def binding(uid: str, node_name: str) -> Tree:
    return {"metadata": {"uid": uid}, "target": {"name": node_name}}


async def lines_of(connection: Connection, version: int) -> list[str]:
    """Events of a watch until it ends."""
    query: dict[str, str | int] = {
        "watch": "true",
        "resourceVersion": version,
        "fieldSelector": NOT_FINISHED,
    }
    found = b""
    async with connection.stream(PODS, query, 100) as body:
        async for piece in body.iter_any():
            found += piece
    return [line.partition(b",")[0].decode() for line in found.splitlines()]


def test_a_pod_is_bound_once() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> Any:
        await connection.send("POST", f"{POD}/binding", binding("uid-1", "a"))
        with pytest.raises(ConflictError):
            await connection.send("POST", f"{POD}/binding", binding("uid-1", "b"))
        return await connection.get(POD)

    assert run(work)["spec"]["nodeName"] == "a"


def test_another_pod_of_the_name_is_not_bound() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> None:
        with pytest.raises(ConflictError):
            await connection.send("POST", f"{POD}/binding", binding("uid-0", "a"))

    run(work)


def test_a_list_has_pages_of_one_state() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> Any:
        for number in range(12):
            server.store.add("pods", pod(f"q-{number}"))
        first = await connection.get(PODS, {"limit": 1000})
        server.store.delete("pods", "default", "q-9")
        rest = await connection.get(PODS, {"continue": first["metadata"]["continue"]})
        return [item["metadata"]["name"] for item in (*first["items"], *rest["items"])]

    names = run(work)

    assert len(names) == len(set(names)) == 13
    assert "q-9" in names


def test_a_watch_has_the_changes_since_its_version() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> Any:
        store, version = server.store, server.store.version
        store.add("pods", pod("q"))
        finished = {**(store.get("pods", "default", "p") or {}), "status": {"phase": "Failed"}}
        store.update("pods", finished)
        store.delete("pods", "default", "q")
        return await lines_of(connection, version)

    lines = run(work)

    changes = [line for line in lines if "BOOKMARK" not in line]
    assert changes == ['{"type":"ADDED"', '{"type":"DELETED"', '{"type":"DELETED"']


@pytest.mark.parametrize("what", ["watch", "rest of a list"])
def test_old_versions_expire(what: str) -> None:
    async def work(server: SimulatedServer, connection: Connection) -> int:
        version = server.store.version
        for number in range(12):
            server.store.add("pods", pod(f"q-{number}"))
        first = await connection.get(PODS, {"limit": 1000})
        server.store.add("pods", pod("last"))
        server.store.compact()
        token = first["metadata"]["continue"]
        old: Awaitable[Any] = (
            lines_of(connection, version)
            if what == "watch"
            else connection.get(PODS, {"continue": token})
        )
        with pytest.raises(ApiError) as refused:
            await old
        return refused.value.code

    assert run(work) == 410


@pytest.mark.parametrize(
    ("faults", "arrives"),
    [
        pytest.param(Faults(refused=1, statuses=(503,)), False, id="refused"),
        pytest.param(Faults(cut=1), False, id="cut"),
        pytest.param(Faults(lost=1), True, id="lost"),
        pytest.param(Faults(torn=1), True, id="torn"),
    ],
)
def test_a_request_meets_its_fault_until_the_end(faults: Faults, arrives: bool) -> None:
    async def work(server: SimulatedServer, connection: Connection) -> bool:
        with pytest.raises(ApiError) as refused:
            await connection.send("POST", f"{POD}/binding", binding("uid-1", "a"))
        assert isinstance(refused.value, UnreachableError) or refused.value.code == 503
        server.end_faults()
        return "nodeName" in (await connection.get(POD))["spec"]

    assert run(work, faults) is arrives


def test_time_is_virtual_and_a_delay_ends_with_the_faults() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> float:
        server.later(20, server.end_faults)
        await connection.get(POD)
        return server.loop.time()

    assert 20 < run(work, Faults(delayed=1, delay_s=10_000, seed=3)) < 21


def test_a_server_that_is_away_comes_back() -> None:
    async def work(server: SimulatedServer, connection: Connection) -> Any:
        await connection.get(POD)
        server.go_away(30)
        with pytest.raises(UnreachableError):
            await connection.get(POD)
        await asyncio.sleep(30)
        return await connection.get(POD)

    assert run(work)["metadata"]["name"] == "p"
