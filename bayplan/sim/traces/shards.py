"""Shards: tables of a trace in several files, as BigQuery exports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import InputError
from .published import TraceTable
from .table_rows import Row, read_json_lines, read_rows

JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
CSV_ENDINGS = (".csv",)


def shards(folder: Path, table: TraceTable) -> Iterator[Row]:
    """The rows of all files of a table: those in `folder` whose names begin with it, and those in a folder of its name.

    Raises InputError when there is none, unless the table is optional.
    """
    files = [
        file
        for file in (*folder.glob(f"{table.name}*"), *folder.glob(f"{table.name}/*"))
        if _is_table(file)
    ]
    if not files and not table.is_optional:
        example = f"{table.name}-000000000000.json.gz, .json or .csv"
        raise InputError(f"{folder}: expected files such as {example}; got none")
    for file in sorted(files):
        if _plain(file).endswith(CSV_ENDINGS):
            yield from read_rows(file, table.columns)
        else:
            yield from read_json_lines(file)


def nested(row: Row, field: str, name: str) -> str:
    """The column of a field's field: `capacity.cpus`, or `capacity_cpus` as tables without nesting have it."""
    flat = f"{field}_{name}"
    return flat if flat in row.cells else f"{field}.{name}"


def code_of(row: Row, column: str, names: Sequence[str]) -> int:
    """The number of a value that is written as a number or a name; raises InputError when it is neither."""
    text = row.text(column)
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(names):
        return int(text)
    listed = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
    raise row.fault(column, f'expected one of {listed}; got "{text}"')


def _plain(file: Path) -> str:
    return file.name.removesuffix(".gz")


def _is_table(file: Path) -> bool:
    return file.is_file() and _plain(file).endswith((*JSON_ENDINGS, *CSV_ENDINGS))
