"""Connection: requests to the API server as bytes, and its refusals as our errors.

Retries follow k8s.io/client-go/rest/with_retry.go: a request is repeated when the server answers with Retry-After,
and when the response to a GET broke off. Other failures are left to the caller.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from .. import __version__
from ..api.meta import Wire
from ..errors import ApiError, ConflictError, InputError, NotFoundError
from .credentials import Credentials
from .http_client import Address, HttpClient, HttpConnection, Response
from .request_metrics import NO_RESPONSE, RequestMetrics

log = logging.getLogger(__name__)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

MAX_RETRIES = 10
RESET_RETRY_S = 1.0
"""Delay after a connection broke in the middle of a response."""
REQUEST_TIMEOUT_S = 60.0

Tree = dict[str, Any]


class Answer(NamedTuple):
    """A response: its status code, the bytes, and the Retry-After delay."""

    code: int
    body: bytes
    retry_after_s: float | None = None


class UnreachableError(ApiError):
    """The request got no response, or an incomplete one."""


class ServerStatus(Wire, frozen=True):
    """A Status object: why the server refused."""

    message: str = ""
    reason: str = ""
    code: int = 0


_STATUS = msgspec.json.Decoder(ServerStatus)


class Connection:
    """A session with an API server, used on the event loop on which it was made."""

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str = f"bayplan/{__version__}",
        metrics: RequestMetrics | None = None,
    ) -> None:
        self.credentials = credentials
        self.metrics = metrics or RequestMetrics()
        self.requests = self.metrics.of(credentials.server)
        """Counts the requests to this server."""
        if metrics is None:
            self.metrics.plugin_calls.source = lambda: credentials.plugin_calls
            self.metrics.certificate_ttl.source = lambda: {(): credentials.certificate_ttl_s}
        self._client = HttpClient()
        # Compression would take the server longer than the transfer in a cluster's network.
        self._headers = {"User-Agent": user_agent, "Accept": JSON, "Accept-Encoding": "identity"}
        self._refreshing: asyncio.Task[None] | None = None
        self.is_away = False
        """The server did not respond to the last request."""
        self._back = asyncio.Event()

    @property
    def server(self) -> str:
        """The address of the server."""
        return self.credentials.server

    async def pause(self, seconds: float) -> None:
        """Wait, but only until an unreachable server responds to any request again."""
        if not self.is_away:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._back.wait()

    async def close(self) -> None:
        """Close the session; running requests fail."""
        await self._client.close()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Mapping[str, str | int] | None = None,
        content_type: str = JSON,
        timeout_s: float = REQUEST_TIMEOUT_S,
        retries: int = MAX_RETRIES,
    ) -> bytes:
        """Send a request and return the body of the response.

        Raises NotFoundError, ConflictError or ApiError when the server refuses, UnreachableError
        when it does not respond.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        attempts = 0

        async def send() -> Answer:
            nonlocal attempts
            code, attempts = NO_RESPONSE, attempts + 1
            self.requests.sent(method, len(body or b""))
            try:
                answer = await self._send(method, target, body, content_type, timeout_s)
                code = answer.code
                return answer
            finally:
                self.requests.answered(method, code, is_retry=attempts > 1)

        answer = await self._timed(method, retried(send, retries, is_get=method == "GET"))
        if answer.code == 401:
            await self._refresh(was_refused=True)
            attempts = 0
            answer = await self._timed(method, send())
        if answer.code >= 400:
            raise self._refusal(answer, f"{method} {path}")
        return answer.body

    async def _timed(self, method: str, sending: Awaitable[Answer]) -> Answer:
        received, started = None, perf_counter()
        try:
            answer = await sending
            received = len(answer.body)
            return answer
        finally:
            self.requests.ended(method, perf_counter() - started, received)

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Tree:
        """GET `path`, decoded."""
        return decode_tree(await self.request("GET", path, query=query))

    async def send(self, method: str, path: str, tree: Any = None) -> Tree:
        """Send `tree` (POST, PUT, DELETE) and return the response, decoded."""
        body = None if tree is None else msgspec.json.encode(tree)
        return decode_tree(await self.request(method, path, body))

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AsyncIterator[HttpConnection]:
        """The body of the response to a GET as a stream; raises UnreachableError after `silence_s`
        without data."""
        is_answered = False
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S) as opening:
                async with self._open("GET", f"{path}?{urlencode(query)}", None) as (head, body):
                    is_answered = True
                    self.requests.answered("GET", head.code)
                    if head.code >= 400:
                        answer = Answer(head.code, await body.read(), head.retry_after_s)
                        if answer.code == 401:
                            await self._refresh(was_refused=True)
                        raise self._refusal(answer, f"GET {path}")
                    opening.reschedule(None)
                    body.silence_s = silence_s
                    yield body
        except (OSError, TimeoutError) as error:
            if not is_answered:
                self.requests.answered("GET", NO_RESPONSE)
            raise self._unreachable(error) from None

    def stream_ahead(self, path: str, query: Mapping[str, str | int]) -> None:
        """Send the request of a later `stream` now; the response is received meanwhile."""
        target = f"{path}?{urlencode(query)}"
        self._client.send_ahead(self._address(), target, self._request_headers())

    def _address(self) -> Address:
        known = self.credentials
        return Address(known.server, known.ssl_context, known.server_name, known.proxy)

    def _request_headers(self, content_type: str | None = None) -> dict[str, str]:
        headers = self._headers
        if content_type is not None:
            headers = {**headers, "Content-Type": content_type}
        if self.credentials.authorization is not None:
            headers = {**headers, "Authorization": self.credentials.authorization}
        return headers

    async def _send(
        self, method: str, target: str, body: bytes | None, content_type: str, timeout_s: float
    ) -> Answer:
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._open(method, target, body, content_type) as (head, content),
            ):
                return Answer(head.code, await content.read(), head.retry_after_s)
        except (OSError, TimeoutError) as error:
            raise self._unreachable(error) from None

    @asynccontextmanager
    async def _open(
        self, method: str, target: str, body: bytes | None, content_type: str = JSON
    ) -> AsyncIterator[Response]:
        if self.credentials.is_stale:
            await self._refresh()
        headers = self._request_headers(None if body is None else content_type)
        async with self._client.send(self._address(), method, target, headers, body) as response:
            if self.is_away:
                self.is_away = False
                self._back.set()
            yield response

    async def _refresh(self, was_refused: bool = False) -> None:
        """Renew the token; concurrent callers share one renewal."""
        if self._refreshing is None:
            work = self.credentials.refresh(was_refused)
            self._refreshing = asyncio.ensure_future(work)
            self._refreshing.add_done_callback(self._refreshed)
        with suppress(InputError):  # already logged; the old token may still be valid
            await asyncio.shield(self._refreshing)

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled() and task.exception() is not None:
            log.warning("cannot renew the credentials: %s", task.exception())

    def _refusal(self, answer: Answer, what: str) -> ApiError:
        if answer.code == 401:
            source = self.credentials.source
            text = f"{self.server}: expected valid credentials; it rejected those of {source}"
            return ApiError(text, 401)
        return refusal(answer, what)

    def _unreachable(self, error: Exception) -> UnreachableError:
        if not self.is_away:
            self.is_away = True
            self._back.clear()
        if isinstance(error, TimeoutError):
            problem = "no answer in time"
        elif isinstance(error, ssl.SSLCertVerificationError):
            problem = str(error)
        elif isinstance(error, ssl.SSLError):
            problem = error.reason or str(error)
        elif isinstance(error, OSError) and error.strerror:
            problem = error.strerror
        else:
            problem = str(error) or type(error).__name__
        return UnreachableError(f"{self.server}: cannot reach the API server: {problem}")


async def retried(
    send: Callable[[], Awaitable[Answer]], retries: int = MAX_RETRIES, *, is_get: bool = False
) -> Answer:
    """Send, and repeat as long as the server requests it; a GET also when the connection broke."""
    for left in range(retries, -1, -1):
        try:
            answer = await send()
        except UnreachableError as error:
            if not is_get or not left or not _is_reset(error):
                raise
            await asyncio.sleep(RESET_RETRY_S)
            continue
        if not left or not (answer.code == 429 or answer.code >= 500):
            break
        if answer.retry_after_s is None:
            break
        await asyncio.sleep(answer.retry_after_s)
    return answer


def refusal(answer: Answer, what: str) -> ApiError:
    """The server's reason for a refusal; `what` was requested is used if it gives none."""
    try:
        status = _STATUS.decode(answer.body)
    except msgspec.MsgspecError:
        status = ServerStatus()
    message = status.message or f"{what}: the server answered with status {answer.code}"
    if answer.code == 404:
        return NotFoundError(message)
    if answer.code == 409:
        return ConflictError(message)
    return ApiError(message, answer.code)


def decode_tree(body: bytes) -> Tree:
    """An object from the bytes of a response; raises ApiError when it is invalid."""
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ApiError(f"expected JSON from the API server; got {error}") from None
    if not isinstance(tree, dict):
        raise ApiError(f"expected an object from the API server; got {type(tree).__name__}")
    return tree


def _is_reset(error: UnreachableError) -> bool:
    """Whether the connection broke although the server was reachable: a new one may work."""
    return isinstance(error.__context__, ConnectionResetError)
