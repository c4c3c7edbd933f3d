"""Reviews: authentication and authorization reviews by the API server."""

from __future__ import annotations

from typing import Any

from .connection import Connection

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
