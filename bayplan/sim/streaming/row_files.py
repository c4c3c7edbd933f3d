"""Row files: results of pods in a file, CSV or JSON lines, written as they come."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from ...errors import InputError
from .stream_results import PodRow, RowSink

FAST = 1
"""The compression level of gzip."""


@contextmanager
def write_rows(file: Path | None) -> Iterator[RowSink]:
    """What writes rows to the file: JSON lines if its name ends with .jsonl, else CSV; gzipped if it ends with .gz.

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
