"""Reviews: authentication and authorization reviews by the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ..errors import ApiError
from .connection import Connection
from .watched_kinds import Resource

# Permissions of the user of a connection, from the API server's own reviews.

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
READING = ("list", "watch")
TRIES = 5
RETRY_S = 0.5
AT_ONCE = 8
"""Reviews that are under way at the same time."""


async def missing_permissions(connection: Connection, resources: Iterable[Resource]) -> list[str]:
    """`watch pods`: the verbs and resources that the user lacks; empty also if the server does not answer such
    questions.
    """
    wanted = [(verb, resource) for resource in resources for verb in READING]
    slots = asyncio.Semaphore(AT_ONCE)

    async def is_allowed(verb: str, resource: Resource) -> bool:
        async with slots:
            return await _is_allowed(connection, verb, resource)

    try:
        allowed = await asyncio.gather(*(is_allowed(*one) for one in wanted))
    except ApiError as error:
        if error.code in (403, 404, 405):
            return []  # the lists show it
        raise
    refused = (one for one, may in zip(wanted, allowed, strict=True) if not may)
    return [f"{verb} {resource.name}" for verb, resource in refused]


async def _is_allowed(connection: Connection, verb: str, resource: Resource) -> bool:
    attributes: dict[str, Any] = {
        "group": resource.kind.group,
        "resource": resource.plural,
        "verb": verb,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    for left in range(TRIES - 1, -1, -1):
        try:
            answer = await connection.send("POST", REVIEWS, review)
            break
        except ApiError as error:
            if not left or (error.code and error.code < 429):
                raise
            await connection.pause(RETRY_S)
    return bool((answer.get("status") or {}).get("allowed"))


Tree = dict[str, Any]


class ApiReviews:
    """Sends TokenReviews and SubjectAccessReviews, which return with their status. Raises ApiError."""

    def __init__(self, connection: Connection, for_access: Connection | None = None) -> None:
        self._connection = connection
        self._for_access = for_access or connection

    async def review_token(self, review: Tree) -> Tree:
        """Create a TokenReview."""
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        return await self._connection.send("POST", path, review)

    async def review_access(self, review: Tree) -> Tree:
        """Create a SubjectAccessReview."""
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return await self._for_access.send("POST", path, review)
