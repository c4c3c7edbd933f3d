"""Bay format: the blocks of a `.bay` file, each with its length and its checksum.

docs/snapshots.md describes the format. A file begins with eight bytes that name it and four with the version of the
format. Blocks follow: four letters, the checksum and the length of the content, and the content, which is JSON. The
last block has the number of objects, so that a file that was cut off is found out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import Enum

from ..errors import InputError
from .input_bytes import Buffer

MAGIC = b"BAYPLAN\n"
FORMAT = 1
"""The version of the format that is written, and the newest that is read."""

_START = struct.Struct("<8sI")
_BLOCK = struct.Struct("<4sIQ")


class BlockKind(Enum):
    """The content of a block."""

    OBJECTS = b"OBJS"
    NODES = b"NODE"
    PODS = b"PODS"
    END = b"END."


class BayFileError(InputError):
    """A `.bay` file that cannot be read."""


def is_bay(data: Buffer) -> bool:
    """Whether a file is of this format."""
    return data[: len(MAGIC)] == MAGIC


def start_of_file() -> bytes:
    """The first bytes of a file."""
    return _START.pack(MAGIC, FORMAT)


def block(kind: BlockKind, content: bytes) -> bytes:
    """A block with its checksum and its length."""
    return _BLOCK.pack(kind.value, zlib.crc32(content), len(content)) + content


def iter_blocks(data: Buffer, name: str) -> Iterator[tuple[BlockKind, bytes, int]]:
    """Yield the kind, the content and the end of each block; raises BayFileError for a damaged or newer file."""
    if len(data) < _START.size:
        raise _cut_off(name)
    _, version = _START.unpack(data[: _START.size])
    if version > FORMAT:
        raise BayFileError(
            f"{name}: expected a snapshot of format {FORMAT} or older; got format {version}, "
            "which a newer version of bayplan reads"
        )
    if version < 1:
        raise damaged(name, "a format that does not exist")
    position, kind = _START.size, None
    while kind is not BlockKind.END:
        start = position + _BLOCK.size
        if start > len(data):
            raise _cut_off(name)
        letters, checksum, length = _BLOCK.unpack(data[position:start])
        position = start + length
        if position > len(data):
            raise _cut_off(name)
        content = data[start:position]
        if zlib.crc32(content) != checksum or letters not in {one.value for one in BlockKind}:
            raise damaged(name, f"other bytes than were written before byte {position:,}")
        kind = BlockKind(letters)
        yield kind, content, position
    if position != len(data):
        raise damaged(name, "bytes after its end")


def damaged(name: str, fault: str) -> BayFileError:
    """The error about a damaged file."""
    return BayFileError(f"{name}: expected an undamaged snapshot; got {fault}")


def _cut_off(name: str) -> BayFileError:
    return damaged(name, "one that is cut off")
