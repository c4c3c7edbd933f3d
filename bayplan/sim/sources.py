"""Sources: files, folders and standard input with manifests, compressed or not."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

import msgspec

from ..errors import InputError

Buffer: TypeAlias = bytes | mmap.mmap
"""Bytes that can be searched and sliced, in memory or on disk."""

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
GZIP_MAGIC = b"\x1f\x8b"
MAX_UNPACKED = 8 << 30
_MAP_FROM = 1 << 20
_PROBE = 8192
_CHUNK = 1 << 20


class Source(msgspec.Struct, frozen=True):
    """One text of manifests: its display name, its bytes, and its size on disk."""

    name: str
    data: Buffer
    size: int

    def release(self, end: int) -> None:
        """Mark the bytes before `end` as done, so that they need not stay in memory."""
        if isinstance(self.data, mmap.mmap) and hasattr(self.data, "madvise"):
            whole_pages = end // mmap.PAGESIZE * mmap.PAGESIZE
            if whole_pages:
                self.data.madvise(mmap.MADV_DONTNEED, 0, whole_pages)


def find_files(paths: Iterable[str | Path]) -> list[str]:
    """The files behind `paths` in reading order; folders give their manifests, sorted.

    `-` stands for standard input. Raises InputError for a missing path.
    """
    files: list[str] = []
    for path in map(str, paths):
        try:
            files += _expand(path)
        except OSError as error:
            raise InputError(f"{path}: expected a readable path; got {error.strerror}") from error
    return files


def total_size(files: Iterable[str]) -> int:
    """The total size of all files in bytes; standard input counts as zero."""
    return sum(os.path.getsize(file) for file in files if file != STDIN)


def open_source(file: str) -> Source:
    """Read a file, or standard input; raises InputError if that fails or it is no text."""
    name = "stdin" if file == STDIN else file
    try:
        data = _read(file)
        size = len(data)
        if data[:2] == GZIP_MAGIC:
            data = _unpack(data, name)
    except OSError as error:
        raise InputError(f"{name}: expected a readable file; got {error.strerror}") from error
    if b"\0" in data[:_PROBE]:
        raise InputError(f"{name}: expected YAML or JSON; got binary data")
    return Source(name, data, size)


def _expand(path: str) -> Iterator[str]:
    if path == STDIN:
        yield path
        return
    place = Path(path)
    if not place.exists():
        raise InputError(f"{path}: expected a file or folder; got nothing of that name")
    if not place.is_dir():
        yield path
        return
    found = sorted(file for file in place.iterdir() if _is_manifest(file))
    if not found:
        raise InputError(f"{path}: expected files named *.yaml, *.yml or *.json; got none")
    yield from map(str, found)


def _is_manifest(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(SUFFIXES) and file.is_file()


def _read(file: str) -> Buffer:
    if file == STDIN:
        return sys.stdin.buffer.read()
    with open(file, "rb") as stream:
        return _map_or_read(stream, os.path.getsize(file) if os.path.isfile(file) else 0)


def _map_or_read(stream: IO[bytes], size: int) -> Buffer:
    """The file's bytes; those of a large file are mapped, not read."""
    if size >= _MAP_FROM:
        stream.flush()
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return stream.read()


def _unpack(data: Buffer, name: str) -> Buffer:
    """Decompress gzip data; large data goes to a temporary file rather than into memory."""
    packed = gzip.GzipFile(fileobj=io.BytesIO(data[:]))
    with tempfile.TemporaryFile() as unpacked:
        try:
            while chunk := packed.read(_CHUNK):
                unpacked.write(chunk)
                if unpacked.tell() > MAX_UNPACKED:
                    raise InputError(f"{name}: expected at most {MAX_UNPACKED >> 30} GiB unpacked")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fault = str(error).rpartition(": ")[2]
            raise InputError(f"{name}: expected a whole gzip file; got {fault}") from None
        size = unpacked.tell()
        unpacked.seek(0)
        return _map_or_read(unpacked, size)
