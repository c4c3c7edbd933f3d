"""Lines: objects of a file with one manifest per line, decoded as they are needed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import cast

from ...api.wire.decode import UnknownObject, decode, decode_items
from ...errors import DecodeError, InputError
from ...manifests.input_bytes import bounded_lines, open_input
from ...manifests.timeline import InputObject

BATCH = 500
"""Lines that are decoded together."""
BUFFER = 1 << 18


def read_lines(file: Path) -> Iterator[InputObject]:
    """Yield the objects of a file, gzipped or not; raises InputError, with file and line, for another text."""
    try:
        with io.BufferedReader(open_input(file), BUFFER) as stream:
            first, each = 1, bounded_lines(stream, lambda number, text: _fault(file, number, text))
            while lines := list(islice(each, BATCH)):
                yield from _decode(file, first, lines)
                first += len(lines)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file}: expected a readable file of JSON lines; got {reason}") from None


def _fault(file: Path, number: int, problem: str) -> InputError:
    return InputError(f"{file}: line {number}: {problem}")


def _decode(file: Path, first: int, lines: list[bytes]) -> Iterator[InputObject]:
    with suppress(DecodeError, RecursionError):  # what is wrong is said of its line
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
            raise _fault(file, number, str(error)) from None
        except RecursionError:
            raise _fault(file, number, "expected less deep nesting") from None
        if isinstance(obj, UnknownObject):
            problem = f"expected an object that affects scheduling; got a {obj.kind}"
            raise _fault(file, number, problem)
        yield cast(InputObject, obj)
