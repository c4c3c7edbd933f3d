"""Page server: the live page on its own port, for commands without a server."""

from __future__ import annotations

import os
import ssl
from secrets import token_urlsafe

from aiohttp import web
from aiohttp.typedefs import Handler

from ..errors import InputError
from .access import LocalAccess
from .live import PageSource, page_routes, token_check

LOOPBACK = "127.0.0.1"


@web.middleware
async def local_hosts_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests under a name of another machine."""
    return await LocalAccess().refusal(request) or await handler(request)


class PageServer:
    """Serves the page of `source`; its address has a secret in the fragment, which browsers do not
    send."""

    def __init__(self, source: PageSource) -> None:
        self._token = token_urlsafe(24)
        self._app = web.Application(middlewares=[local_hosts_only])
        self._app.add_routes(page_routes(source, token_check(self._token)))
        self._runner: web.AppRunner | None = None
        self.url = ""
        """The address to open, once started."""

    async def start(self, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        """Start serving on the loopback, on a free port if none is given; raises InputError on
        failure."""
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            problem = os.strerror(error.errno) if error.errno else str(error)
            raise InputError(f"--page-port {port}: expected a free port; got {problem}") from None
        scheme = "http" if context is None else "https"
        port = self._runner.addresses[0][1]
        self.url = f"{scheme}://{LOOPBACK}:{port}/#token={self._token}"

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
