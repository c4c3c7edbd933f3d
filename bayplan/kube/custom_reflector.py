"""CustomReflector: follow a custom resource that the server may not have, or may lose.

Its CustomResourceDefinition can be created after the scheduler started, and deleted while it runs; the role that allows
to read it can be missing. Plugins then find no object, and the scheduler continues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..api.custom import CustomResource
from ..errors import ApiError, NotFoundError
from .connection import Connection
from .discovery import custom_path, find_custom
from .reflector import NOT_FOUND, Batch, Reflector
from .retry_backoff import Backoff

log = logging.getLogger(__name__)

LIMIT_S = 30.0
"""The longest step between tries."""
UNAUTHORIZED, FORBIDDEN = 401, 403
NOT_SERVED = "the server does not have this resource"


class CustomReflector:
    """Follows the objects of one custom resource; `deliver` receives changes.

    `settled` is called after the first list, and when the server does not have the resource or refuses it: nothing
    waits for it then.
    """

    def __init__(
        self,
        declared: CustomResource,
        connection: Connection,
        deliver: Callable[[Batch], None],
        settled: Callable[[], None],
        backoff: Backoff | None = None,
    ) -> None:
        self._declared = declared
        self.resource = custom_path(declared)
        self.is_synced = False
        """Whether nothing waits for it."""
        self.problem = ""
        """Reason why the last attempt failed."""
        self._connection = connection
        self._deliver = deliver
        self._settled = settled
        self._backoff = backoff or Backoff(limit_s=LIMIT_S)
        self._logged = ""
        self._reflector: Reflector | None = None

    async def run(self) -> None:
        """Follow until cancelled; a problem is logged once, until it changes or is solved."""
        while True:
            try:
                await self._follow(await self._discover())
            except ApiError as error:
                self._failed(error)
            await self._connection.pause(self._backoff.next_s())

    async def _discover(self) -> CustomResource:
        """The resource as the server has it; NotFoundError if it does not."""
        found = await find_custom(self._connection, self._declared)
        if found is None:
            raise NotFoundError(NOT_SERVED)
        if found != self._declared and self.resource != custom_path(found):
            log.error(
                "%s: a plugin declares %s; the server has %s, which is used",
                self._declared.name,
                self._declared.description,
                found.description,
            )
        self.resource = custom_path(found)
        return found

    async def _follow(self, found: CustomResource) -> None:
        """List and watch. Raises ApiError when the server refuses that, or no longer has the resource."""
        reflector = Reflector(
            custom_path(found), self._connection, self._deliver, self._listed, may_vanish=True
        )
        self._reflector = reflector
        try:
            await reflector.run()
        except ApiError:
            reflector.forget()
            raise

    @property
    def unreadable(self) -> int:
        """Number of objects with a field that could not be read."""
        return 0 if self._reflector is None else self._reflector.unreadable

    def _failed(self, error: ApiError) -> None:
        self.problem = str(error)
        is_refused = error.code in (UNAUTHORIZED, FORBIDDEN)
        if self.problem != self._logged:
            self._logged = self.problem
            advice = "; is there a role with get, list and watch?" if is_refused else ""
            log.warning(
                "%s: %s%s; plugins that read it find no object until it can be read",
                self._declared.name,
                error,
                advice,
            )
        if is_refused or error.code == NOT_FOUND:
            self._settle()

    def _listed(self) -> None:
        if self._logged:
            log.info("%s: can be read now", self._declared.name)
        self.problem = self._logged = ""
        self._backoff.reset()
        self._settle()

    def _settle(self) -> None:
        if not self.is_synced:
            self.is_synced = True
            self._settled()
