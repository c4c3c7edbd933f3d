"""Lines: objects of a file with one manifest per line, decoded as they are needed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import cast

from ...api.decode import UnknownObject, decode, decode_items
from ...errors import DecodeError, InputError
from ..world import InputObject

GZIP_MAGIC = b"\x1f\x8b"
BATCH = 500
"""Lines that are decoded together."""


def read_lines(file: Path) -> Iterator[InputObject]:
    """Yield the objects of a file, gzipped or not; raises InputError, with file and line, for another text."""
    try:
        with open(file, "rb") as probe:
            is_packed = probe.read(2) == GZIP_MAGIC
        with gzip.open(file, "rb") if is_packed else open(file, "rb") as stream:
            first = 1
            while lines := list(islice(stream, BATCH)):
                yield from _decode(file, first, lines)
                first += len(lines)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{file}: expected a readable file of JSON lines; got {reason}") from None


def _decode(file: Path, first: int, lines: list[bytes]) -> Iterator[InputObject]:
    with suppress(DecodeError):  # what is wrong is said of its line
        objects = decode_items(b"[%s]" % b",".join(lines), "List")
        if objects is not None:
            yield from cast("list[InputObject]", objects)
            return
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            obj = decode(line)
        except DecodeError as error:
            raise InputError(f"{file}: line {number}: {error}") from None
        if isinstance(obj, UnknownObject):
            problem = f"expected an object that affects scheduling; got a {obj.kind}"
            raise InputError(f"{file}: line {number}: {problem}")
        yield cast(InputObject, obj)
