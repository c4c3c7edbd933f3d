"""Table rows: the lines of a table by column name, with errors that state the place.

A table is CSV, with or without a first line of column names, or JSON lines; plain, gzipped, or the
only CSV file of a tar archive.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from ...errors import InputError
from ...manifests.input_bytes import bounded_lines, open_input

TAR_ENDINGS = (".tar.gz", ".tgz", ".tar")
BUFFER = 1 << 18
NO_VALUE = frozenset({"", "nan", "null", "none"})
"""Cells without a value, in lower case: what CSV files, data frames and databases write."""


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

    def amount(self, column: str) -> float | None:
        """The cell as a number that is not negative; None when it has no value; raises InputError otherwise."""
        amount = self.signed(column)
        if amount is not None and amount < 0:
            raise self.fault(column, f'expected a number that is not negative; got "{amount:g}"')
        return amount

    def signed(self, column: str) -> float | None:
        """The cell as a number; None when it has no value; raises InputError when it is no number."""
        text = self.text(column)
        if text.lower() in NO_VALUE:
            return None
        try:
            number = float(text)
        except ValueError:
            number = float("inf")
        if abs(number) == float("inf"):
            raise self.fault(column, f'expected a number; got "{text}"')
        return number

    def count(self, column: str) -> int:
        """The cell as a whole number, which may be written 2.0; raises InputError otherwise."""
        amount = self.amount(column)
        if amount is None or amount != int(amount):
            raise self.fault(column, f'expected a whole number; got "{self.text(column)}"')
        return int(amount)

    def needed(self, column: str) -> str:
        """The cell, which must not be empty."""
        text = self.text(column)
        if not text:
            raise self.fault(column, "expected a value; got an empty cell")
        return text

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
    """Yield the rows of a file whose first line names the columns; raises InputError when it is no table or a required
    column is missing."""
    with _faults_of(file), _open(file) as stream:
        reader = csv.reader(_lines(file, stream))
        names = next(reader, [])
        yield from _rows(str(file), reader, names, needed)


def read_table(file: Path, columns: tuple[str, ...], needed: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the rows of a CSV file with these columns, in this order unless the first line names them.

    With names in the first line, only the `needed` columns must be there; by default all.
    """
    needed = tuple(needed) or columns
    with _faults_of(file), _open(file) as stream:
        reader = csv.reader(_lines(file, stream))
        first = next(reader, [])
        if set(needed) <= {cell.strip() for cell in first}:
            yield from _rows(str(file), reader, [cell.strip() for cell in first], needed)
            return
        if len(first) != len(columns):
            expected = f"{len(columns)} cells ({', '.join(columns)}), or their names"
            raise InputError(f"{file}: line 1: expected {expected}; got {len(first)} cells")
        yield Row(str(file), 1, dict(zip(columns, first, strict=True)))
        yield from _rows(str(file), reader, columns, ())


def read_json_lines(file: Path) -> Iterator[Row]:
    """Yield the objects of a file, one per line. A field of a field is named with a dot; a list is its JSON text."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with _faults_of(file), _open(file) as stream:
        for line, text in enumerate(_lines(file, stream), 1):
            if not text.strip():
                continue
            try:
                tree = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"{file}: line {line}: expected a JSON object; got {error}"
                ) from None
            except RecursionError:
                raise InputError(f"{file}: line {line}: expected less deep nesting") from None
            yield Row(str(file), line, dict(_flat(tree, "")))


def _flat(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        match value:
            case None:
                continue
            case dict():
                yield from _flat(value, f"{prefix}{name}.")
            case list():
                yield prefix + name, msgspec.json.encode(value).decode()
            case _:
                yield prefix + name, str(value)


@contextmanager
def _faults_of(file: Path) -> Iterator[None]:
    """Turn errors of reading into InputError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file}: expected a readable CSV file; got {reason}") from None
    except (UnicodeDecodeError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{file}: expected a CSV file; got {error}") from None
    except csv.Error as error:
        raise InputError(f"{file}: expected CSV; got {error}") from None


@contextmanager
def _open(file: Path) -> Iterator[IO[str]]:
    with io.BufferedReader(open_input(file), BUFFER) as stream:
        if not file.name.endswith(TAR_ENDINGS):
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            return
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            archive.fileobj.seekable = lambda: False  # type: ignore[attr-defined] # it lacks it
            for member in archive:
                # Refuse sparse members: their holes are not bytes of the archive, so no limit counts them.
                is_table = member.name.endswith(".csv") and not member.issparse()
                part = archive.extractfile(member) if is_table else None
                if part is not None:
                    yield io.TextIOWrapper(part, encoding="utf-8-sig", newline="")
                    return
        raise InputError(f"{file}: expected an archive with a .csv file; got none in it")


def _lines(file: Path, stream: IO[str]) -> Iterator[str]:
    return bounded_lines(stream, lambda number, text: InputError(f"{file}: line {number}: {text}"))


def _rows(file: str, reader: Any, names: Iterable[str], needed: Iterable[str]) -> Iterator[Row]:
    names = tuple(names)
    for column in needed:
        if column not in names:
            found = ", ".join(names) or "an empty file"
            raise InputError(f"{file}: line 1: expected a column {column}; got {found}")
    number = len(names)
    for cells in reader:
        if len(cells) != number:
            if not cells:
                continue
            problem = f"expected {number} cells; got {len(cells)}"
            raise InputError(f"{file}: line {reader.line_num}: {problem}")
        yield Row(file, reader.line_num, dict(zip(names, cells, strict=True)))
