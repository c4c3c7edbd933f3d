"""Patience: a busy loop handles the same events in fewer iterations."""

import asyncio
import threading

from bayplan.kube.retry_backoff import PatientSelector


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
