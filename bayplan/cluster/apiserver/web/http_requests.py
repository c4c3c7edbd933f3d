"""HTTP requests: the bytes of a connection as requests, without I/O.

Mirrors RFC 9112. What is not written as it says is rejected, never interpreted: there is one reading of every request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_HEAD = 1 << 16
MAX_BODY = 3 << 20
HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_FIRST_LINE = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) HTTP/1\.([01])")
_FIELDS = re.compile(rf"(?:\r\n{_TOKEN}:[\t\x20-\x7e\x80-\xff]*)*")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_ONCE = frozenset({"host", "content-length", "transfer-encoding"})


class MalformedRequestError(Exception):
    """The bytes are no request, or one that is too large. The connection cannot be used any more."""

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

    def header(self, name: str) -> str:
        """The value of a header, empty without it. Of one that is repeated, the last."""
        return self._values.get(name, "")

    def has_header(self, name: str) -> bool:
        return name in self._values

    @cached_property
    def path(self) -> str:
        """The decoded path."""
        return unquote(self._parts[0])

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The decoded query. Of a name that is repeated, the first value."""
        text = self._parts[1]
        return dict(reversed(parse_qsl(text, keep_blank_values=True))) if text else {}

    @cached_property
    def _parts(self) -> tuple[str, str]:
        if self.target.startswith("/"):
            path, _, query = self.target.partition("#")[0].partition("?")
            return path, query
        try:
            split = urlsplit(self.target)
        except ValueError:
            return "", ""
        return split.path, split.query

    @property
    def host(self) -> str:
        return self.header("host")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters; empty when it is not given."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def is_last(self) -> bool:
        """Whether the client uses the connection for nothing after this request."""
        return not self.is_1_1 or "close" in self.header("connection").lower()


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._head: WholeRequest | None = None
        """The request whose body has not arrived."""
        self._length = 0
        """The length of its body; -1: it comes in chunks."""
        self._chunks = b""
        self._is_in_trailer = False
        self.wants_continue = False
        """Whether the client waits for a 100 before it sends the body."""

    @property
    def buffered(self) -> int:
        """The number of bytes that were not read yet."""
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self._data += data

    def next(self) -> WholeRequest | None:
        """The next request, None while it is incomplete; raises MalformedRequestError."""
        request = self._head
        if request is None:
            request = self._read_head()
            if request is None:
                return None
        is_complete = self._read_chunks(request) if self._length < 0 else self._read_plain(request)
        if not is_complete:
            self._head = request
            return None
        self._head, self.wants_continue = None, False
        return request

    def _read_head(self) -> WholeRequest | None:
        data = self._data
        while data.startswith(LINE_END):
            del data[:2]
        end = data.find(HEAD_END)
        if end > MAX_HEAD or (end < 0 and len(data) > MAX_HEAD):
            raise MalformedRequestError(431, f"the head of a request has at most {MAX_HEAD} bytes")
        if end < 0:
            return None
        text = data[:end].decode("latin-1")
        del data[: end + 4]
        first = _FIRST_LINE.match(text)
        if first is None or _FIELDS.fullmatch(text, first.end()) is None:
            raise MalformedRequestError(400, "the request is no HTTP/1.1")
        method, target, minor = first.groups()
        headers = _split(text[first.end() + 2 :]) if len(text) > first.end() else []
        request = WholeRequest(method, target, minor == "1", headers)
        self._length = _body_length(request)
        self.wants_continue = request.header("expect").lower() == "100-continue"
        return request

    def _read_plain(self, request: WholeRequest) -> bool:
        length = self._length
        if length:
            if len(self._data) < length:
                return False
            request.body = bytes(self._data[:length])
            del self._data[:length]
        return True

    def _read_chunks(self, request: WholeRequest) -> bool:
        data = self._data
        while not self._is_in_trailer:
            end = data.find(LINE_END)
            if end < 0:
                _limit(len(data), MAX_HEAD)
                return False
            size = _CHUNK_SIZE.fullmatch(data, 0, end)
            if size is None:
                raise MalformedRequestError(400, "the size of a chunk is no number")
            length = int(size[1], 16)
            _limit(len(self._chunks) + length, MAX_BODY)
            if not length:
                del data[: end + 2]
                self._is_in_trailer = True
                break
            if len(data) < end + 2 + length + 2:
                return False
            if data[end + 2 + length : end + 4 + length] != LINE_END:
                raise MalformedRequestError(400, "a chunk does not end where its size says")
            self._chunks += data[end + 2 : end + 2 + length]
            del data[: end + 4 + length]
        return self._skip_trailer(request)

    def _skip_trailer(self, request: WholeRequest) -> bool:
        """Skip the lines after the last chunk, up to an empty one."""
        while True:
            end = self._data.find(LINE_END)
            if end < 0:
                _limit(len(self._data), MAX_HEAD)
                return False
            del self._data[: end + 2]
            if not end:
                request.body, self._chunks, self._is_in_trailer = self._chunks, b"", False
                return True


def _split(text: str) -> list[tuple[str, str]]:
    headers = []
    for line in text.split("\r\n"):
        name, _, value = line.partition(":")
        headers.append((name.lower(), value.strip(" \t")))
    return headers


def _body_length(request: WholeRequest) -> int:
    """The length of the body; -1: in chunks. Raises MalformedRequestError."""
    names = [name for name, _ in request.headers if name in _ONCE]
    if len(names) > len(set(names)):
        raise MalformedRequestError(400, "a header that occurs once at most is repeated")
    if request.is_1_1 and "host" not in names:
        raise MalformedRequestError(400, "the request names no host")
    if "transfer-encoding" in names:
        if "content-length" in names or request.header("transfer-encoding").lower() != "chunked":
            raise MalformedRequestError(400, "the length of the body is not clear")
        return -1
    text = request.header("content-length") or "0"
    if not (text.isascii() and text.isdecimal()):
        raise MalformedRequestError(400, "the length of the body is no number")
    _limit(int(text) if len(text) < 19 else MAX_BODY + 1, MAX_BODY)
    return int(text)


def _limit(length: int, limit: int) -> None:
    if length > limit:
        raise MalformedRequestError(413, f"Request entity too large: limit is {limit}")
