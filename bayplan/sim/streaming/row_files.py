"""Row files: results of pods in a file, CSV or JSON lines, written as they come."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, cast

import msgspec

from ...api.wire.decode import UnknownObject, decode, decode_items
from ...errors import DecodeError, InputError
from ...manifests.input_bytes import bounded_lines, open_input
from ...manifests.timeline import InputObject
from .stream_results import PodRow, RowSink

FAST = 1
"""The compression level of gzip."""


@contextmanager
def write_rows(file: Path | None) -> Iterator[RowSink]:
    """A writer of rows to the file: JSON lines if its name ends with .jsonl, else CSV; gzipped if it ends with .gz.

    Without a file rows are dropped. Raises InputError when it cannot be written.
    """
    if file is None:
        yield lambda row: None
        return
    try:
        with _open(file) as stream:
            yield _json_sink(stream) if _is_lines(file) else _csv_sink(stream)
    except OSError as error:
        problem = f"expected a file to write to; got {error.strerror or error}"
        raise InputError(f"{file}: {problem}") from None


def _is_lines(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(".jsonl")


def _open(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        packed = gzip.open(file, "wb", compresslevel=FAST)  # noqa: SIM115 - closed with the text
        return io.TextIOWrapper(packed, encoding="utf-8", newline="", write_through=False)
    return open(file, "w", encoding="utf-8", newline="")


def _csv_sink(stream: IO[str]) -> RowSink:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(PodRow._fields)
    return writer.writerow


def _json_sink(stream: IO[str]) -> RowSink:
    encode = msgspec.json.Encoder().encode

    def write(row: PodRow) -> None:
        stream.write(encode(row._asdict()).decode() + "\n")

    return write


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
    with suppress(DecodeError, RecursionError):  # a problem is reported with its line
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
