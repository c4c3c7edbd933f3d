"""Snapshot: all objects of a live cluster that bear on placement, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...api.kinds import KINDS
from ...errors import ApiError
from ..live import OnKind
from .connection import Connection
from .discovery import find_served
from .reflector import Batch, ExpiredError, Reflector
from .resources import RESOURCES, Resource

FORBIDDEN = 403
TRIES = 5
"""How often a list is begun anew when the rest of it has expired at the server."""

KINDS_READ: tuple[Resource, ...] = (
    # Not for the scheduler, but for those that make pods ready for it where a snapshot is opened.
    Resource(KINDS["PriorityClass"], "priorityclasses"),
    Resource(KINDS["ResourceClaimTemplate"], "resourceclaimtemplates"),
    *RESOURCES.values(),
)
"""In this order: pods last, so that what they refer to is there."""


@dataclass(frozen=True)
class InNamespace(Resource):
    """The objects of one namespace alone."""

    namespace: str = ""

    @property
    def path(self) -> str:
        """Where they are."""
        return self.path_of(self.namespace, "")


async def read_snapshot(
    connection: Connection, namespace: str = "", on_kind: OnKind | None = None
) -> list[Any]:
    """All objects, in the order of the server within each kind; kinds that are not served are left out.

    With a `namespace` only what is in it, and what is in none. Raises ApiError, with one line per kind that may not be
    read, or when the server fails.
    """
    objects: list[Any] = []
    refused: list[str] = []
    served = await find_served(connection, KINDS_READ)
    for number, resource in enumerate(within(served, namespace)):
        if on_kind is not None:
            on_kind(number, len(served))
        try:
            objects += await read_kind(connection, resource)
        except ApiError as error:
            if error.code != FORBIDDEN:
                raise
            refused.append(f"expected to be allowed to list {name_of(resource)}; got: {error}")
    if refused:
        raise ApiError("\n".join(refused), FORBIDDEN)
    return objects


def within(resources: Sequence[Resource], namespace: str) -> list[Resource]:
    """The resources, those that have namespaces for `namespace` alone unless it is empty."""
    if not namespace:
        return list(resources)
    return [
        InNamespace(resource.kind, resource.plural, resource.field_selector, namespace)
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
            await Reflector(resource, connection, found.extend).read_all()
            break
        except ExpiredError:
            if not left:
                raise
    return [change.obj for change in found]


def name_of(resource: Resource) -> str:
    """As RBAC names it: `pods`, `replicasets.apps`."""
    group = resource.kind.group
    return f"{resource.plural}.{group}" if group else resource.plural
