"""Discovery: the kinds that an API server serves. Older ones lack some, and some are opt-in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ...errors import NotFoundError
from .connection import Connection
from .resources import Resource


async def find_served(connection: Connection, resources: Iterable[Resource]) -> list[Resource]:
    """Those of `resources` that the server serves, in order. Raises ApiError when discovery fails."""
    wanted = list(resources)
    paths = list(dict.fromkeys(resource.group_path for resource in wanted))
    plurals = await asyncio.gather(*(_plurals(connection, path) for path in paths))
    groups = dict(zip(paths, plurals, strict=True))
    return [resource for resource in wanted if resource.plural in groups[resource.group_path]]


async def _plurals(connection: Connection, group_path: str) -> set[str]:
    try:
        found = await connection.get(group_path)
    except NotFoundError:
        return set()
    resources: list[dict[str, Any]] = found.get("resources") or []
    return {str(resource.get("name")) for resource in resources}
