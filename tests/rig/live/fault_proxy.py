"""Fault proxy: stands between a scheduler and an API server, and makes some of the requests fail.

Which ones is data (`tests/rig/faults.py`). The proxy speaks plain HTTP to the scheduler, and to the API server by its
kubeconfig. `end` switches the faults off and cuts the watches that stall.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import yaml
from aiohttp import web

from bayplan.apiserver.server import make_kubeconfig

from ..faults import Faults
from .client import LiveClient

Result = TypeVar("Result")

HOST = "127.0.0.1"
START_S = 30.0
HOP_HEADERS = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers about one connection, which are not handed on."""
EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)
REFUSAL = '{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","code":{}}}'


class FaultProxy:
    """A proxy on a thread of its own. `kubeconfig` is for the scheduler; it names the proxy."""

    def __init__(self, kubeconfig: Path, folder: Path, faults: Faults) -> None:
        self.injected: Counter[str] = Counter()
        """Number of injections of each fault."""
        self._upstream = LiveClient(kubeconfig)
        self._faults = faults
        self._count = 0
        self._is_on = True
        self._stalled: asyncio.Event | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        port = self._run(self._start())
        self.kubeconfig = folder / "proxy-kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(f"http://{HOST}:{port}")))

    def end(self) -> None:
        """Switch the faults off."""
        self._run(self._end())

    def stop(self) -> None:
        """Close all connections and end the thread."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    # On the proxy's thread

    async def _start(self) -> int:
        self._stalled = asyncio.Event()
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
            connector=aiohttp.TCPConnector(limit=0),
        )
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _end(self) -> None:
        self._is_on = False
        assert self._stalled is not None
        self._stalled.set()

    async def _close(self) -> None:
        await self._end()
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        is_watch = request.query.get("watch") in ("true", "1")
        kind, dice = "", random.Random()
        if self._is_on:
            self._count += 1
            kind, dice = self._faults.of_request(self._count, is_watch)
        body = await request.read()
        if kind:
            self.injected[kind] += 1
        if kind == "refused":
            status, wait_s = self._faults.refusal(dice)
            return web.Response(
                status=status,
                text=REFUSAL.format(status),
                content_type="application/json",
                headers={"Retry-After": str(wait_s)} if wait_s else None,
            )
        if kind == "cut":
            return _cut(request)
        if kind == "delayed":
            await asyncio.sleep(dice.uniform(0, self._faults.delay_s))
        return await self._forward(request, body, kind, dice.uniform(0, self._faults.watch_s))

    async def _forward(
        self, request: web.BaseRequest, body: bytes, kind: str, watch_s: float
    ) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_HEADERS}
        if "Authorization" in self._upstream.headers:
            headers["Authorization"] = self._upstream.headers["Authorization"]
        try:
            async with self._session.request(
                request.method,
                self._upstream.url + request.raw_path,
                data=body or None,  # None for a GET, which would get a content type
                headers=headers,
                ssl=self._upstream.tls or False,
                allow_redirects=False,
            ) as answer:
                if kind == "lost":
                    await answer.read()
                    return _cut(request)
                if kind == "torn":
                    return await self._tear(request, answer)
                return await self._copy(request, answer, kind, watch_s)
        except aiohttp.ClientError:  # the API server is not there
            return _cut(request)

    async def _tear(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        """Hand on half of the response."""
        half = web.StreamResponse(status=answer.status)
        body = await answer.read()
        half.content_length = len(body)
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
        return _cut(request, half)

    async def _copy(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        kind: str,
        watch_s: float,
    ) -> web.StreamResponse:
        """Hand the response on as it comes; a watch with a fault for `watch_s` only."""
        headers = {k: v for k, v in answer.headers.items() if k.lower() not in HOP_HEADERS}
        copy = web.StreamResponse(status=answer.status, headers=headers)
        await copy.prepare(request)
        try:
            async with asyncio.timeout(watch_s if kind.startswith("watch") else None):
                async for chunk in answer.content.iter_any():
                    await copy.write(chunk)
        except TimeoutError:
            if kind == "watch_stalled":
                assert self._stalled is not None
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stalled.wait(), self._faults.stall_s)
            elif kind == "watch_expired":
                await copy.write(EXPIRED)
                await copy.write_eof()
                return copy
            return _cut(request, copy)
        await copy.write_eof()
        return copy


def _cut(request: web.BaseRequest, begun: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection of the request at once."""
    if request.transport is not None:
        request.transport.abort()
    return begun or web.Response(status=500)
