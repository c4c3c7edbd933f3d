"""Rows: the lines of a CSV file by column name, with errors that state the place."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ...errors import InputError

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the file, the line number, and its cells by column."""

    file: str
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell, stripped; "" when it is empty."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str) -> int:
        """The cell as a whole number that is not negative; raises InputError otherwise."""
        text = self.text(column)
        if not text.isascii() or not text.isdigit():
            raise self.fault(column, f'expected a whole number; got "{text}"')
        return int(text)

    def seconds(self, column: str) -> float | None:
        """The cell as seconds; None when it is empty; raises InputError when it is no number."""
        text = self.text(column)
        if not text:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise self.fault(column, f'expected seconds; got "{text}"')
        return seconds

    def fault(self, column: str, problem: str) -> InputError:
        """The error about a cell."""
        return InputError(f"{self.file}: line {self.line}: {column}: {problem}")


def read_rows(file: Path, needed: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the rows of a file, gzipped or not; raises InputError when it is no table or a required
    column is missing."""
    try:
        with _open(file) as stream:
            yield from _rows(str(file), stream, tuple(needed))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file}: expected a readable CSV file; got {reason}") from None
    except (UnicodeDecodeError, EOFError) as error:
        raise InputError(f"{file}: expected a CSV file; got {error}") from None
    except csv.Error as error:
        raise InputError(f"{file}: expected CSV; got {error}") from None


def _open(file: Path) -> IO[str]:
    with open(file, "rb") as probe:
        is_packed = probe.read(2) == GZIP_MAGIC
    if is_packed:
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return open(file, encoding="utf-8-sig", newline="")


def _rows(file: str, stream: IO[str], needed: tuple[str, ...]) -> Iterator[Row]:
    reader = csv.DictReader(stream, restkey="", restval=None)
    names = reader.fieldnames or ()
    for column in needed:
        if column not in names:
            found = ", ".join(names) or "an empty file"
            raise InputError(f"{file}: line 1: expected a column {column}; got {found}")
    for cells in reader:
        if "" in cells or None in cells.values():
            found_cells = len(names) + len(cells.get("", ()))
            found_cells -= sum(value is None for value in cells.values())
            problem = f"expected {len(names)} cells; got {found_cells}"
            raise InputError(f"{file}: line {reader.line_num}: {problem}")
        yield Row(file, reader.line_num, cells)
