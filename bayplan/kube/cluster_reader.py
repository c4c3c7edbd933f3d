"""Cluster reader: read all objects of a live cluster that affect placement, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ..api.custom import readable_resources
from ..api.wire.sourced import is_keeping_sources
from ..errors import ApiError
from .connection import Connection
from .discovery import custom_path, find_custom, find_served
from .reflector import Batch, ExpiredError, Reflector
from .watched_kinds import RESOURCES, Resource, resource_of

OnKind = Callable[[int, int], None]
"""Progress callback: kinds read and kinds in total."""

FORBIDDEN = 403
TRIES = 5
"""Number of restarts of a list whose continuation expired on the server."""

KINDS_READ: tuple[Resource, ...] = (
    # Not read by the scheduler, but by admission and the controllers that create pods where a snapshot is opened.
    *map(resource_of, ("LimitRange", "ResourceQuota", "PriorityClass", "RuntimeClass")),
    resource_of("ResourceClaimTemplate"),
    *RESOURCES.values(),
)
"""Order: pods last, after the objects they refer to."""

WORKLOADS: tuple[Resource, ...] = (
    # Not followed: a recording has the pods that their controllers made.
    *map(resource_of, ("Deployment", "DaemonSet", "Job", "CronJob")),
    *map(resource_of, ("HorizontalPodAutoscaler", "Workload")),
)
"""Read once, for questions about workloads and for the controllers where a snapshot is opened."""


class InNamespace(Resource, frozen=True):
    """The objects of one namespace only."""

    namespace: str = ""

    @property
    def path(self) -> str:
        """The path of the objects."""
        return self.path_of(self.namespace, "")


async def read_snapshot(
    connection: Connection, namespace: str = "", on_kind: OnKind | None = None
) -> list[Any]:
    """All objects, in the server's order within each kind; kinds that are not served are left out.

    Custom resources are read within `reading_custom`.

    With a `namespace`, only its objects and cluster-scoped ones. Raises ApiError, with one line per
    kind without permission, or when the server fails.
    """
    objects: list[Any] = []
    refused: list[str] = []
    served = await find_served(connection, (*WORKLOADS, *KINDS_READ))
    for declared in readable_resources():
        custom = await find_custom(connection, declared)
        served += [] if custom is None else [custom_path(custom)]
    for number, resource in enumerate(within(served, namespace)):
        if on_kind is not None:
            on_kind(number, len(served))
        try:
            objects += await read_kind(connection, resource)
        except ApiError as error:
            if error.code != FORBIDDEN:
                raise
            refused.append(f"expected to be allowed to list {resource.name}; got: {error}")
    if refused:
        raise ApiError("\n".join(refused), FORBIDDEN)
    return objects


def _number(version: str) -> int:
    """A resource version as a number; 0 for other texts."""
    return int(version) if version.isdecimal() else 0


def within(resources: Sequence[Resource], namespace: str) -> list[Resource]:
    """The resources; namespaced ones restricted to `namespace` unless it is empty."""
    if not namespace:
        return list(resources)
    return [
        InNamespace(resource.kind, resource.plural, resource.field_selector, namespace=namespace)
        if resource.kind.is_namespaced
        else resource
        for resource in resources
    ]


async def read_kind(connection: Connection, resource: Resource) -> list[Any]:
    """All objects of a kind, page by page."""
    found: Batch = []
    for left in range(TRIES - 1, -1, -1):
        found = []
        try:
            keep = is_keeping_sources()
            await Reflector(resource, connection, found.extend, keep_sources=keep).read_all()
            break
        except ExpiredError:
            if not left:
                raise
    return [change.obj for change in found]


class ClusterFollower:
    """Passes existing objects, then changes, to `deliver`; `synced` is set after the existing
    objects."""

    def __init__(
        self,
        connection: Connection,
        deliver: Callable[[Batch], None],
        kinds: Sequence[Resource] = KINDS_READ,
        tries: int = 1,
    ) -> None:
        self._connection = connection
        self._deliver = deliver
        self._kinds = kinds
        self._tries = tries
        self._waiting_for: set[str] = set()
        self._reflectors: dict[str, Reflector] = {}
        self._runs: dict[str, asyncio.Future[None]] = {}
        self.synced = asyncio.Event()

    @property
    def interrupted(self) -> list[str]:
        """The kinds whose changes do not arrive now."""
        return [
            plural
            for plural, one in self._reflectors.items()
            if one.problem
            and not one.is_current  # without a problem the first watch is being opened
        ]

    def is_behind(self, listed: Batch) -> bool:
        """Whether an object was listed that is not known, or known in an older version."""
        return any(self._is_newer(event.obj) for event in listed)

    def _is_newer(self, obj: Any) -> bool:
        resource = RESOURCES[obj.kind]
        known = self._reflectors[resource.plural].version_of(obj.namespace, obj.name)
        return known is None or _number(known) < _number(obj.resource_version)

    def restart(self, kinds: Sequence[str]) -> None:
        """Open the watches of these kinds again, where they stopped."""
        for kind in kinds:
            run = self._runs.get(RESOURCES[kind].plural)
            if run is not None:
                run.cancel()

    async def run(self) -> None:
        """Follow until cancelled. Raises ApiError, a line per kind without permission, when that is
        refused."""
        served = await find_served(self._connection, self._kinds, self._tries)
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

        reflector = Reflector(resource, self._connection, self._deliver, synced)
        self._reflectors[resource.plural] = reflector
        while True:
            run = asyncio.ensure_future(reflector.run())
            self._runs[resource.plural] = run
            try:
                await asyncio.wait({run})
            finally:
                run.cancel()
            if not run.cancelled():
                run.result()
            reflector.is_current, reflector.problem = False, "opened again"

    def _raise(self, served: Sequence[Resource], tasks: Sequence[asyncio.Future[Any]]) -> None:
        refused = []
        for resource, task in zip(served, tasks, strict=True):
            error = task.exception() if task.done() and not task.cancelled() else None
            if isinstance(error, ApiError) and error.code == FORBIDDEN:
                refused.append(f"expected to be allowed to watch {resource.name}; got: {error}")
            elif error is not None:
                raise error
        if refused:
            raise ApiError("\n".join(refused), FORBIDDEN)
