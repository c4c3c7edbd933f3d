"""HTTP requests: the bytes of a connection as requests, without I/O.

llhttp parses them, strictly as RFC 9112 has it (through the package httptools). Malformed requests that it accepts
are rejected here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserUpgrade,
    HttpRequestParser,
)

MAX_HEAD = 1 << 16
MAX_BODY = 3 << 20
MOST_PER_BYTE = 8
"""Limit on the bytes on the wire per byte of a body that is sent in chunks."""
VERSIONS = ("1.0", "1.1")
ENCODING = "transfer-encoding"


class MalformedRequestError(Exception):
    """The bytes are not a request, or it is too large. The connection cannot be used any more."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class WholeRequest:
    """A request with its whole body. Names of headers are in lower case."""

    def __init__(
        self, method: str, target: str, is_1_1: bool, headers: Sequence[tuple[str, str]]
    ) -> None:
        self.method = method
        self.target = target
        self.is_1_1 = is_1_1
        self.headers = headers
        self._values = dict(headers)
        self.body = b""
        path, query = _split(target)
        self.path = unquote(path)
        """The decoded path."""
        self.query: Mapping[str, str] = (
            dict(reversed(parse_qsl(query, keep_blank_values=True))) if query else {}
        )
        """The decoded query. Of a name that is repeated, the first value."""
        self.is_last = not is_1_1 or "close" in self.header("connection").lower()
        """Whether the client closes the connection after this request."""

    def header(self, name: str) -> str:
        """The value of a header; empty if it is missing, the last one if it is repeated."""
        return self._values.get(name, "")

    def has_header(self, name: str) -> bool:
        return name in self._values

    @property
    def host(self) -> str:
        return self.header("host")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters; empty when it is not given."""
        return self.header("content-type").partition(";")[0].strip().lower()


def _split(target: str) -> tuple[str, str]:
    """Path and query."""
    if target.startswith("/"):
        path, _, query = target.partition("#")[0].partition("?")
        return path, query
    try:
        split = urlsplit(target)
    except ValueError:
        return "", ""
    return split.path, split.query


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)
        self.complete: deque[WholeRequest] = deque()
        """The requests that have arrived whole."""
        self._headers: list[tuple[bytes, bytes]] = []
        self._target = b""
        self._body: bytes | bytearray = b""
        self._request: WholeRequest | None = None
        """The request whose head has arrived."""
        self._head_size = self._body_size = self._overhead = 0
        self._begun = self._ended = 0
        """Numbers of requests."""
        self.wants_continue = False
        """Whether the client waits for a 100 before it sends the body."""

    def feed(self, data: bytes) -> None:
        """Read bytes; raises MalformedRequestError."""
        begun, read, rest = self._begun, self._body_size, memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
                break
            except HttpParserUpgrade as upgrade:
                # No other protocol is spoken here: the bytes after the request are the next one.
                self._parser = HttpRequestParser(self)
                rest = rest[upgrade.args[0] :]
            except HttpParserCallbackError as error:
                if isinstance(error.__context__, MalformedRequestError):
                    raise error.__context__ from None
                raise
            except HttpParserError as error:
                raise MalformedRequestError(400, f"the request is no HTTP/1.1: {error}") from None
        if self._ended < self._begun == begun:
            # Within one request the parser gathers a header, and skips extensions of a chunk.
            self._overhead += len(data) - (self._body_size - read)
            if self._overhead > MAX_HEAD + MOST_PER_BYTE * self._body_size:
                raise _too_large_head()

    @property
    def is_within(self) -> bool:
        """Whether a request has begun and is not complete."""
        return self._ended < self._begun

    @property
    def pending(self) -> WholeRequest | None:
        """The request whose head has arrived, and whose body has not."""
        return self._request if self._ended < self._begun else None

    @property
    def held_bytes(self) -> int:
        """Bytes of a body that is not complete."""
        return self._body_size if self._ended < self._begun else 0

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Begin a new request."""
        self._headers, self._target, self._body, self._request = [], b"", b"", None
        self._head_size = self._body_size = self._overhead = 0
        self._begun += 1

    def on_url(self, piece: bytes) -> None:
        """A piece of the target."""
        self._target += piece
        self._head_size += len(piece)
        if self._head_size > MAX_HEAD:
            raise _too_large_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the body they have no effect."""
        self._headers.append((name, value))
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD:
            raise _too_large_head()

    def on_headers_complete(self) -> None:
        """The head is complete."""
        parser = self._parser
        version = parser.get_http_version()
        headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t"))
            for name, value in self._headers
        ]
        target = self._target.decode("latin-1")
        request = WholeRequest(parser.get_method().decode(), target, version == "1.1", headers)
        if version not in VERSIONS:
            raise MalformedRequestError(400, "the request is no HTTP/1.1")
        hosts = [name for name, _ in headers].count("host")
        if hosts != 1 and (hosts or request.is_1_1):
            raise MalformedRequestError(400, "the request names no host, or several")
        if request.header(ENCODING).lower() not in ("", "chunked"):
            raise MalformedRequestError(400, "the body has an encoding other than chunked")
        length = request.header("content-length")
        _limit(int(length) if length.isdecimal() else 0)
        if parser.should_upgrade() and (length not in ("", "0") or request.header(ENCODING)):
            # The parser ends such a request at its head: its body would be read as the next request.
            raise MalformedRequestError(400, "a request for another protocol has a body")
        self._request, self._headers = request, []
        self.wants_continue = request.header("expect").lower() == "100-continue"

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        self._body_size += len(piece)
        _limit(self._body_size)
        if not self._body:
            self._body = piece
        elif isinstance(self._body, bytearray):
            self._body += piece
        else:
            self._body = bytearray(self._body + piece)

    def on_message_complete(self) -> None:
        """The request is complete."""
        request = self._request
        assert request is not None, "a head comes first"
        request.body, self._body = bytes(self._body), b""
        self.complete.append(request)
        self._ended = self._begun
        self.wants_continue = False


def _too_large_head() -> MalformedRequestError:
    return MalformedRequestError(431, f"the head of a request has at most {MAX_HEAD} bytes")


def _limit(length: int) -> None:
    if length > MAX_BODY:
        raise MalformedRequestError(413, f"Request entity too large: limit is {MAX_BODY}")
