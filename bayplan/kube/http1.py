"""HTTP/1.1: the bytes of requests and of responses, without I/O.

`ResponseReader` takes bytes as they arrive and gives the body in pieces: lists have tens of
megabytes, and a watch never ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HEAD_END = b"\r\n\r\n"
LINE_END = b"\r\n"
NO_BODY = (204, 304)
FRAMING = re.compile(
    rb"\r\n(?:content-length:[ \t]*([^\r\n]+)"
    rb"|(transfer-encoding:[ \t]*chunked|connection:[ \t]*close)[ \t]*(?=\r\n|\Z))",
    re.IGNORECASE,
)
"""The headers that say where a response ends, and whether the connection does."""


class Head:
    """The status and the headers of a response."""

    __slots__ = ("_text", "code", "is_chunked", "is_last", "length")

    def __init__(self, text: bytes) -> None:
        code = text[9:12]
        if not text.startswith(b"HTTP/1.") or not code.isdigit():
            raise ValueError(f"expected HTTP/1.1; got {text[:40]!r}")
        self.code = int(code)
        self._text = text
        self.is_chunked = False
        self.is_last = False
        """Whether the server closes the connection after this response."""
        length = b""
        for size, option in FRAMING.findall(text):
            if size:
                length = length or size
            elif option[:1] in b"tT":
                self.is_chunked = True
            else:
                self.is_last = True
        self.length: int | None = None
        """The size of the body; None if the head does not have it."""
        if self.code in NO_BODY:
            self.length = 0
        elif length and not self.is_chunked:
            self.length = int(length)

    def get(self, name: bytes) -> bytes:
        """A header by its name in lower case; empty if it is absent."""
        start = b"\r\n%b:" % name
        at = self._text.lower().find(start)
        if at < 0:
            return b""
        begin = at + len(start)
        end = self._text.find(LINE_END, begin)
        return self._text[begin : end if end >= 0 else None].strip()

    @property
    def retry_after_s(self) -> float | None:
        """The delay that the server requests before the request is repeated."""
        value = self.get(b"retry-after")
        return float(value) if value.isdigit() else None


def read_whole(data: bytes, at: int) -> tuple[Head, int, int] | None:
    """The response that begins at `at`, as its head, and begin and end of its body.

    None if it is not all there, or has no length; raises ValueError when it is not HTTP.
    """
    head_end = data.find(HEAD_END, at)
    if head_end < 0:
        return None
    head, begin = Head(data[at:head_end]), head_end + len(HEAD_END)
    length = head.length if head.code >= 200 else None
    if length is None or begin + length > len(data):
        return None
    return head, begin, begin + length


class ResponseReader:
    """Reads one response; raises ValueError when it is not HTTP."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.pieces: list[bytes] = []
        """Pieces of the body that have arrived and were not yet taken."""
        self.is_complete = False
        self._rest = b""
        """The incomplete head, or the incomplete size of a chunk."""
        self._left = 0
        """Number of bytes to come, of the body or of the current chunk."""
        self._is_chunked = False
        self._is_open_ended = False
        self._gap = 0
        """Number of bytes to skip before the size of the next chunk."""
        self._is_in_trailer = False

    def take(self) -> bytes:
        """The part of the body that arrived since the last call."""
        taken = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces.clear()
        return taken

    def feed(self, data: bytes) -> bytes:
        """Read more bytes; return those after the end of the response."""
        if self.head is None:
            data = self._read_head(self._rest + data)
        if self.head is None or not data or self.is_complete:
            return data
        if self._is_chunked:
            return self._read_chunks(data)
        if self._is_open_ended:
            self.pieces.append(data)
            return b""
        left = self._left
        self.pieces.append(data[:left])
        self._left = max(left - len(data), 0)
        self.is_complete = not self._left
        return data[left:]

    def end(self) -> None:
        """The server has closed the connection; raises ValueError if that breaks off the response."""
        if not self._is_open_ended and not self.is_complete:
            raise ValueError("the server closed the connection before the end of its response")
        self.is_complete = True

    def _read_head(self, data: bytes) -> bytes:
        """Read the head if it has arrived; return the bytes after it."""
        while True:
            end = data.find(HEAD_END)
            if end < 0:
                self._rest = data
                return b""
            head = Head(data[:end])
            data = data[end + len(HEAD_END) :]
            if head.code >= 200:
                break
        self.head, self._rest = head, b""
        length = head.length
        self.is_complete = length == 0
        self._left = length or 0
        self._is_chunked = length is None and head.is_chunked
        self._is_open_ended = length is None and not self._is_chunked
        return data

    def _read_chunks(self, data: bytes) -> bytes:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, end, pieces = 0, len(data), self.pieces
        while not self._is_in_trailer:
            if self._left:
                stop = at + self._left
                pieces.append(data[at:stop])
                if stop > end:
                    self._left = stop - end
                    return b""
                self._left, self._gap, at = 0, 2, stop
            line_end = data.find(LINE_END, at + self._gap)
            if line_end < 0:
                self._rest = data[at:]
                return b""
            self._left = int(data[at + self._gap : line_end].partition(b";")[0], 16)
            at, self._gap = line_end + 2, 0
            self._is_in_trailer = not self._left
        return self._skip_trailer(data, at)

    def _skip_trailer(self, data: bytes, at: int) -> bytes:
        """Skip the lines after the last chunk, up to an empty one; return the bytes after them."""
        while not self.is_complete:
            line_end = data.find(LINE_END, at)
            if line_end < 0:
                self._rest = data[at:]
                return b""
            self.is_complete = line_end == at
            at = line_end + 2
        return data[at:]


def make_request(
    method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
