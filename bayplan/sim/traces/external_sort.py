"""External sort: more records than fit into memory, in order, with the help of temporary files."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import msgspec

RUN_LENGTH = 200_000
"""Records that are sorted in memory at a time."""
BLOCK_LENGTH = 500
"""Records that are read back at a time, of each sorted run."""


def sorted_on_disk(
    records: Iterable[tuple[Any, ...]], run_length: int = RUN_LENGTH
) -> Iterator[tuple[Any, ...]]:
    """Yield the records, tuples of numbers and texts, in ascending order.

    Up to `run_length` records are sorted in memory. More of them are sorted in runs, which are written to temporary
    files and merged.
    """
    run: list[tuple[Any, ...]] = []
    files: list[IO[bytes]] = []
    try:
        for record in records:
            run.append(record)
            if len(run) >= run_length:
                files.append(_spilled(run))
                run = []
        run.sort()
        yield from heapq.merge(*map(_read, files), run) if files else run
    finally:
        for file in files:
            file.close()


def _spilled(run: list[tuple[Any, ...]]) -> IO[bytes]:
    """A temporary file with the sorted records, in blocks after their length."""
    run.sort()
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    for start in range(0, len(run), BLOCK_LENGTH):
        block = msgspec.msgpack.encode(run[start : start + BLOCK_LENGTH])
        file.write(len(block).to_bytes(4))
        file.write(block)
    return file


def _read(file: IO[bytes]) -> Iterator[tuple[Any, ...]]:
    decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode
    file.seek(0)
    while length := file.read(4):
        yield from decode(file.read(int.from_bytes(length)))
