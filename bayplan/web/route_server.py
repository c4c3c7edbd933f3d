"""Route server: HTTP or HTTPS on one port, for given routes."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ..errors import InputError
from .access import Access, LocalAccess
from .tls import ServerCertificate

SHUTDOWN_S = 5.0
"""Grace period of running requests at shutdown; kube-scheduler's."""

log = logging.getLogger(__name__)


class WebServer:
    """Serves `routes` to requests that `access` allows.

    All routes share the access control, so another page or endpoint is added by adding its routes.
    """

    def __init__(
        self,
        routes: Iterable[web.AbstractRouteDef],
        *,
        host: str = "127.0.0.1",
        access: Access | None = None,
        certificate: ServerCertificate | None = None,
        reuses_port: bool = False,
        reuses_address: bool | None = None,
        grace_s: float = SHUTDOWN_S,
    ) -> None:
        if access is None:
            assert is_loopback(host), "a server beyond the loopback needs access control"
            access = LocalAccess()
        self._host = host
        self._certificate = certificate
        self._reuses_port = reuses_port
        self._reuses_address = reuses_address
        self._grace_s = grace_s
        self._app = web.Application(middlewares=[_guarded(access, certificate)])
        self._app.add_routes(routes)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The address of the server, once started."""
        scheme = "http" if self._certificate is None else "https"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self.port}"

    async def start(self, port: int = 0) -> None:
        """Start serving, on a free port for 0; raises InputError on failure."""
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=self._grace_s)
        await self._runner.setup()
        context = self._certificate.context if self._certificate is not None else None
        site = web.TCPSite(
            self._runner,
            self._host,
            port,
            ssl_context=context,
            reuse_port=self._reuses_port or None,
            reuse_address=self._reuses_address,
        )
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            # asyncio wraps the system's message. An unknown host name has a negative number; an address that this
            # machine does not have has no number at all, since Python 3.13.
            number = errno.EADDRNOTAVAIL if error.errno is None else error.errno
            problem = os.strerror(number) if number > 0 else error.strerror or str(error)
            where = f"[{self._host}]" if ":" in self._host else self._host
            raise InputError(
                f"{where}:{port}: expected an address and a port that are free; got {problem}"
            ) from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop accepting requests; running ones may finish."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guarded(access: Access, certificate: ServerCertificate | None) -> Middleware:
    """Middleware: access control, then the route; an internal error gives a 500 and a log line."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if certificate is not None:
            certificate.refresh()
        try:
            response: web.StreamResponse = await access.refusal(request) or await handler(request)
        except web.HTTPException as error:
            if error.status != 404:
                raise
            response = web.Response(status=404, text="404 page not found\n")
        except Exception:  # a fault of one request must not end the server
            log.exception("unable to answer %s %s", request.method, request.path)
            response = web.Response(status=500, text="internal server error\n")
        if not response.prepared:
            response.headers.setdefault("Cache-Control", "no-cache, private")
            response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response

    return guarded
