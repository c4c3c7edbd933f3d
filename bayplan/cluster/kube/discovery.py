"""Discovery: the kinds that an API server serves. Older ones lack some, and some are opt-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import NotFoundError
from .connection import Connection
from .resources import Resource


async def find_served(connection: Connection, resources: Iterable[Resource]) -> list[Resource]:
    """Those of `resources` that the server serves, in order. Raises ApiError when discovery fails."""
    groups: dict[str, set[str]] = {}
    served = []
    for resource in resources:
        if resource.group_path not in groups:
            groups[resource.group_path] = await _plurals(connection, resource.group_path)
        if resource.plural in groups[resource.group_path]:
            served.append(resource)
    return served


async def _plurals(connection: Connection, group_path: str) -> set[str]:
    try:
        found = await connection.get(group_path)
    except NotFoundError:
        return set()
    resources: list[dict[str, Any]] = found.get("resources") or []
    return {str(resource.get("name")) for resource in resources}
