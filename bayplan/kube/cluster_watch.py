"""Cluster watch: watch all kinds of a cluster that affect placement; read-only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ApiError
from .cluster_reader import FORBIDDEN, KINDS_READ, name_of
from .connection import Connection
from .discovery import find_served
from .reflector import Batch, Reflector
from .watched_kinds import Resource


class ClusterFollower:
    """Passes existing objects, then changes, to `deliver`; `synced` is set after the existing
    objects."""

    def __init__(self, connection: Connection, deliver: Callable[[Batch], None]) -> None:
        self._connection = connection
        self._deliver = deliver
        self._waiting_for: set[str] = set()
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled. Raises ApiError, a line per kind without permission, when that is
        refused."""
        served = await find_served(self._connection, KINDS_READ)
        self._waiting_for = {resource.plural for resource in served}
        tasks = [asyncio.ensure_future(self._follow(resource)) for resource in served]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            # A user without permission for one kind often lacks others: report all at once.
            await asyncio.wait(tasks, timeout=1.0)
            self._raise(served, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, resource: Resource) -> None:
        def synced() -> None:
            self._waiting_for.discard(resource.plural)
            if not self._waiting_for:
                self.synced.set()

        await Reflector(resource, self._connection, self._deliver, synced).run()

    def _raise(self, served: Sequence[Resource], tasks: Sequence[asyncio.Future[Any]]) -> None:
        refused = []
        for resource, task in zip(served, tasks, strict=True):
            error = task.exception() if task.done() and not task.cancelled() else None
            if isinstance(error, ApiError) and error.code == FORBIDDEN:
                refused.append(f"expected to be allowed to watch {name_of(resource)}; got: {error}")
            elif error is not None:
                raise error
        if refused:
            raise ApiError("\n".join(refused), FORBIDDEN)
