"""Discovery: the kinds that an API server serves. Older ones lack some, and some are opt-in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from ..api.custom import CustomResource, custom_kind
from ..errors import ApiError, NotFoundError
from .connection import Connection
from .watched_kinds import Resource

log = logging.getLogger(__name__)
RETRY_S = 1.0


async def find_served(
    connection: Connection, resources: Iterable[Resource], tries: int = 1
) -> list[Resource]:
    """Those of `resources` that the server serves, in order, each in the newest version that it has.

    Raises ApiError when discovery fails `tries` times.
    """
    wanted = [resource.versions for resource in resources]
    paths = list(dict.fromkeys(one.group_path for versions in wanted for one in versions))
    for left in range(tries - 1, -1, -1):
        try:
            served = await asyncio.gather(*(_served(connection, path) for path in paths))
            break
        except ApiError as error:
            if not left or error.code in (401, 403):
                raise
            log.warning("discovery: %s; next try in %.0f s", error, RETRY_S)
            await connection.pause(RETRY_S)
    groups = dict(zip(paths, served, strict=True))
    found = (
        next((one for one in versions if one.plural in groups[one.group_path]), None)
        for versions in wanted
    )
    return [resource for resource in found if resource is not None]


async def find_custom(connection: Connection, declared: CustomResource) -> CustomResource | None:
    """The resource with the kind and the scope that the server has for it; None if it is not served."""
    served = await _served(connection, custom_path(declared).group_path)
    found = served.get(declared.plural)
    if found is None:
        return None
    kind, is_namespaced = str(found.get("kind")), bool(found.get("namespaced"))
    return CustomResource(declared.name, kind, is_namespaced)


def custom_path(resource: CustomResource) -> Resource:
    """The custom resource in the API."""
    return Resource(custom_kind(resource), resource.plural)


async def _served(connection: Connection, group_path: str) -> dict[str, dict[str, Any]]:
    """Resources that an API group serves, by plural."""
    try:
        found = await connection.get(group_path)
    except NotFoundError:
        return {}
    resources: list[dict[str, Any]] = found.get("resources") or []
    return {str(resource.get("name")): resource for resource in resources}
