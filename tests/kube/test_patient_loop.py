"""Patient loop: a busy loop handles the same events in fewer iterations, and waits little while much is read."""

import asyncio
import threading

import pytest

from bayplan.kube.http_client import (
    FIRST_WAIT_S,
    MAX_WAIT_S,
    MUCH,
    Address,
    HttpClient,
    PatientLoop,
    PatientSelector,
)


class Counting(PatientSelector):
    """Counts the selector's calls."""

    looks = 0

    def select(self, timeout: float | None = None) -> list[object]:  # type: ignore[override]
        self.looks += 1
        return super().select(timeout)  # type: ignore[return-value]


def test_events_during_a_wait_are_handled_together() -> None:
    selector = Counting()
    loop = asyncio.SelectorEventLoop(selector)
    seen: list[int] = []

    async def wait_for_all() -> None:
        async with asyncio.timeout(20):
            while len(seen) < 5000:
                await asyncio.sleep(0.001)

    def put_all() -> None:
        for number in range(5000):
            loop.call_soon_threadsafe(seen.append, number)

    thread = threading.Thread(target=put_all)
    try:
        loop.call_soon(thread.start)
        loop.run_until_complete(wait_for_all())
        thread.join(20)
    finally:
        loop.close()

    assert seen == list(range(5000))
    assert selector.looks < 5000


@pytest.mark.parametrize(
    ("size", "wait_s"),
    [
        pytest.param(8 * MUCH, FIRST_WAIT_S, id="after a large piece it waits little"),
        pytest.param(16, MAX_WAIT_S, id="after a small piece it waits as long as before"),
    ],
)
def test_the_wait_follows_what_connections_give_at_a_time(size: int, wait_s: float) -> None:
    waits: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        loop.patience.wait_s = MAX_WAIT_S
        writer.write(bytes(size))

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        client = HttpClient()
        address = Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            async with asyncio.timeout(20), client.send(address, "GET", "/", {}) as (_, body):
                assert len(await body.read()) == size
            waits.append(loop.patience.wait_s)
        finally:
            await client.close()
            server.close()

    loop = PatientLoop()
    loop.patience.select = super(PatientSelector, loop.patience).select  # type: ignore[method-assign]  # no own waits
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())

    assert waits == [wait_s]
