"""Input bytes: the bytes of files from elsewhere, unpacked if gzipped, within a limit.

A gzip file of some kilobytes can unpack to gigabytes. By default, a file may unpack to 32 MiB or a hundred times its
size, whichever is more: dumps, recordings and traces of real clusters unpack to 60 times their size at most. The
option `--max-input-size`, the variable BAYPLAN_MAX_INPUT_SIZE or an argument sets the limit for all bytes of one
file.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, AnyStr, TypeAlias

from ..api.text.quantity import format_quantity, parse_value
from ..errors import InputError

Buffer: TypeAlias = bytes | mmap.mmap
"""Bytes that can be searched and sliced, in memory or on disk."""

OPTION = "--max-input-size"
VARIABLE = "BAYPLAN_MAX_INPUT_SIZE"
GZIP_MAGIC = b"\x1f\x8b"
GZIP = 31
"""zlib parameter: with the header and trailer of a gzip file."""
FREE = 32 << 20
"""Size to which every gzip file may unpack."""
RATIO = 100
"""Limit on the ratio of a large file to its packed size."""
UNSIZED = 8 << 30
"""The most that is read of standard input, a pipe or a device, whose size is unknown."""
MAX_LINE = 64 << 20
CHUNK = 1 << 18

_LIMIT: ContextVar[int | None] = ContextVar("input limit", default=None)


class DamagedFileError(InputError):
    """A gzip file is damaged."""


class CutOffError(InputError):
    """A gzip file ends before its end."""


def input_limit() -> int | None:
    """Limit on the bytes of one file, if it is set.

    Raises InputError if the variable is not a size.
    """
    limit = _LIMIT.get()
    if limit is None and os.environ.get(VARIABLE):
        return parse_limit(os.environ[VARIABLE], VARIABLE)
    return limit


@contextmanager
def limited_input(limit: int | str | None, name: str = OPTION) -> Iterator[None]:
    """Inside the block, at most this number of bytes of each file is read; None leaves the limit as it is.

    Raises InputError, with the name of the option or argument, for anything but a size.
    """
    if limit is None:
        yield
        return
    token = _LIMIT.set(parse_limit(limit, name))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def parse_limit(value: int | str, name: str) -> int:
    """The number of bytes in a size such as 512Mi; raises InputError, with the name of its option, for another text."""
    try:
        limit = parse_value(value)
    except (ValueError, TypeError):
        limit = 0
    if isinstance(value, bool) or limit <= 0:
        raise InputError(f"{name}: expected a size, such as 512Mi or 8Gi; got {value!r}")
    return limit


class InputStream(io.RawIOBase):
    """The bytes of a file, unpacked if it is gzipped. Raises InputError when they are more than the limit.

    Raises DamagedFileError or CutOffError, after all bytes before it, where a gzip file is damaged or ends.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        super().__init__()
        self._stream = stream
        self._name = name
        self._size = _size_of(stream)
        self._rest = stream.read(CHUNK)
        self._is_packed = self._rest[:2] == GZIP_MAGIC
        self._taken = len(self._rest)
        self._unpacker: Any = zlib.decompressobj(GZIP) if self._is_packed else None
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer as far as there are bytes; returns how many, 0 at the end."""
        view = memoryview(buffer).cast("B")
        data = self._unpack(len(view)) if self._is_packed else self._plain(len(view))
        view[: len(data)] = data
        self._done += len(data)
        self._check()
        return len(data)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, piece by piece."""
        while chunk := self.read(CHUNK):
            yield chunk

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
        super().close()

    def _plain(self, size: int) -> bytes:
        if not self._rest:
            self._rest = self._stream.read(max(size, CHUNK))
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _unpack(self, size: int) -> bytes:
        """At most `size` unpacked bytes, whatever the ratio of compression; b"" at the end."""
        while True:
            if self._unpacker.eof:
                self._rest = self._unpacker.unused_data.lstrip(b"\0") or self._more()
                if not self._rest:
                    return b""
                self._unpacker = zlib.decompressobj(GZIP)  # gzip files can be joined
            packed = self._unpacker.unconsumed_tail or self._rest or self._more()
            self._rest = b""
            try:
                data: bytes = self._unpacker.decompress(packed, size)
            except zlib.error as error:
                fault = str(error).rpartition(": ")[2]
                raise DamagedFileError(
                    f"{self._name}: expected a whole gzip file; got {fault}"
                ) from None
            if data:
                return data
            if not packed and not self._unpacker.eof:
                raise CutOffError(
                    f"{self._name}: expected a whole gzip file; got one that is cut off"
                )

    def _more(self) -> bytes:
        more = self._stream.read(CHUNK)
        self._taken += len(more)
        return more

    def _check(self) -> None:
        """Raise InputError if there were too many bytes."""
        limit = input_limit()
        size = self._taken if self._size is None else self._size
        if limit is not None:
            allowed = limit
        elif self._is_packed:
            allowed = max(FREE, _whole_mebibytes(RATIO * size))
        elif self._size is None:
            allowed = UNSIZED
        else:
            return
        if self._done > allowed:
            raise too_large(self._name, allowed, self._is_packed)


def too_large(name: str, allowed: int, is_packed: bool) -> InputError:
    """The error about a file with more bytes than the limit."""
    unpacked = " when it is unpacked" if is_packed else ""
    limit = format_quantity(allowed, "memory")
    advice = f"{OPTION} (or {VARIABLE}) sets another limit"
    return InputError(f"{name}: expected at most {limit}{unpacked}; got more. {advice}")


def open_input(file: str | Path) -> InputStream:
    """Open a file, or standard input (`-`); raises OSError if that fails.

    Standard input is read once: raises InputError for a second option that names it.
    """
    if str(file) == "-":
        if sys.stdin is None or sys.stdin.buffer.closed:
            raise InputError("stdin: expected one file or option that reads it; got a second one")
        return InputStream(sys.stdin.buffer, "stdin")
    return InputStream(open(file, "rb"), str(file))


def bounded_lines(stream: IO[AnyStr], fault: Callable[[int, str], InputError]) -> Iterator[AnyStr]:
    """The lines of a stream; raises `fault` with the number of a line that is too long."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            problem = f"expected a line of at most {MAX_LINE >> 20} MiB; got a longer one"
            raise fault(number, problem)
        yield line


def _whole_mebibytes(size: int) -> int:
    return -(-size >> 20) << 20


def _size_of(stream: IO[bytes]) -> int | None:
    """The size of a regular file; None for anything else."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, AttributeError):  # bytes in memory
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
