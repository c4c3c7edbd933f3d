"""Sources: files, folders and standard input with manifests, compressed or not."""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import msgspec

from ..errors import InputError
from ..yaml_tree import YamlError, iter_trees
from .bay_format import is_bay
from .foreign_documents import folder_fault
from .input_bytes import GZIP_MAGIC, Buffer, input_limit, open_input, too_large
from .object_check import ObjectCheck

STDIN = "-"
_URL = re.compile(r"https?:/")
SUFFIXES = (".yaml", ".yml", ".json", ".bay")
_MAP_FROM = 1 << 20
_PROBE = 8192
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTENT = re.compile(
    rb"^(?!\xef\xbb\xbf?\s*$|---(?:\s|$)|\.\.\.(?:\s|$))[ \t]*[^\s#]", re.MULTILINE
)


class Source(msgspec.Struct, frozen=True):
    """One text of manifests: its display name, its bytes, and its size on disk."""

    name: str
    data: Buffer
    size: int
    check: ObjectCheck = msgspec.field(default_factory=ObjectCheck)
    """Judges its objects, and remembers which contents are valid."""

    def release(self, end: int) -> None:
        """Mark the bytes before `end` as done, so that they need not stay in memory."""
        if isinstance(self.data, mmap.mmap) and hasattr(self.data, "madvise"):
            whole_pages = end // mmap.PAGESIZE * mmap.PAGESIZE
            if whole_pages:
                self.data.madvise(mmap.MADV_DONTNEED, 0, whole_pages)


_IS_RECURSIVE: ContextVar[bool] = ContextVar("is_recursive", default=False)


@contextmanager
def searching_below(is_recursive: bool) -> Iterator[None]:
    """Read folders recursively within the block, as with kubectl's -R."""
    token = _IS_RECURSIVE.set(is_recursive)
    try:
        yield
    finally:
        _IS_RECURSIVE.reset(token)


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


def open_source(file: str, takes_bay: bool = False) -> Source:
    """Read a file, or standard input; raises InputError if that fails, or for binary data that is no `.bay` file.

    Unless it `takes_bay`, such a file is refused, too.
    """
    name = shown_name(file)
    try:
        size = os.path.getsize(file) if os.path.isfile(file) else 0
        data = _map_plain(file, name, size) if size >= _MAP_FROM else None
        if data is None:
            data = _read(file)
    except OSError as error:
        raise InputError(f"{name}: expected a readable file; got {error.strerror}") from error
    if data[:2] in _UTF16_MARKS:  # as PowerShell writes it, and kubectl reads it
        data = data[:].decode("utf-16", "replace").encode()
    if b"\0" in data[:_PROBE] and not (takes_bay and is_bay(data)):
        raise InputError(f"{name}: expected YAML or JSON; got binary data")
    return Source(name, data, size or len(data))


def is_blank(data: Buffer) -> bool:
    """Whether a text has comments and separators only."""
    return not _CONTENT.search(data)


def _expand(path: str) -> Iterator[str]:
    if path == STDIN:
        yield path
        return
    if _URL.match(path):
        address = re.sub("^(https?):/+", r"\1://", path)  # a path has one slash less
        raise InputError(
            f"{address}: expected a file or folder; got an address, which is not read: download it, or give the "
            "output of curl with -f -"
        )
    place = Path(path)
    if not place.exists():
        raise InputError(f"{path}: expected a file or folder; got nothing of that name")
    if not place.is_dir():
        yield path
        return
    fault = folder_fault(place)
    if fault:
        raise InputError(f"{path}: {fault}")
    is_recursive = _IS_RECURSIVE.get()
    below = place.rglob("*") if is_recursive else place.iterdir()
    named = (file for file in below if file.name.removesuffix(".gz").endswith(SUFFIXES))
    found = sorted(file for file in named if file.is_file())
    if not found:
        more = "" if is_recursive else "; -R reads folders below it, too"
        raise InputError(
            f"{path}: expected files named *.yaml, *.yml, *.json or *.bay; got none{more}"
        )
    yield from map(str, found)


def _map_plain(file: str, name: str, size: int) -> Buffer | None:
    """The bytes of a large file that is not packed, mapped, not read; None for a packed one."""
    with open(file, "rb") as stream:
        if stream.read(2) == GZIP_MAGIC:
            return None
        limit = input_limit()
        if limit is not None and size > limit:
            raise too_large(name, limit, is_packed=False)
        return _mapped(stream)


def _read(file: str) -> Buffer:
    """The bytes of a file or of standard input, unpacked; many go to a temporary file rather than into memory."""
    stream = open_input(file)
    with tempfile.SpooledTemporaryFile(_MAP_FROM) as unpacked:
        try:
            for chunk in stream.chunks():
                unpacked.write(chunk)
        finally:
            if file != STDIN:
                stream.close()
        is_small = unpacked.tell() < _MAP_FROM
        unpacked.seek(0)
        return unpacked.read() if is_small else _mapped(unpacked)


def _mapped(stream: IO[bytes]) -> Buffer:
    stream.flush()
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def read_documents(path: str | Path) -> Iterator[tuple[str, Any]]:
    """The documents of a file as plain data, each with its place in messages; raises InputError."""
    source = open_source(str(path))
    try:
        for number, tree in enumerate(iter_trees(bytes(source.data[:])), start=1):
            if tree is not None:
                yield f"{source.name}: document {number}", tree
    except YamlError as error:
        raise InputError(f"{source.name}: {error}") from None


def read_document(path: str | Path, expected: str) -> tuple[Any, str]:
    """The one document in a file as plain data, and the name of the file in messages; raises InputError."""
    trees, name = [tree for _, tree in read_documents(path)], shown_name(path)
    if len(trees) != 1:
        raise InputError(f"{name}: expected one {expected}; got {len(trees)}")
    return trees[0], name


def shown_name(path: str | Path) -> str:
    """The name of a file in messages."""
    return "stdin" if str(path) == STDIN else str(path)
