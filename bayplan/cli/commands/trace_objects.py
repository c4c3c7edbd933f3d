"""Trace objects: writing the manifests that an importer of traces makes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..options.output_files import STDOUT, whole_target
from ..render.consoles import stderr_console

LINES_ENDING = ".jsonl"

ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="FILE",
        help="Where to write the manifests; - is standard output. JSON lines, sorted by time, if the name ends with "
        ".jsonl; gzipped if it ends with .gz.",
    ),
]


def write_objects(to: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write all manifests, or none when one is wrong."""
    from ...sim.traces import write_lines, write_list

    if to == STDOUT:
        write_list(sys.stdout, list(objects))
        return
    is_lines = to.removesuffix(".gz").endswith(LINES_ENDING)
    with whole_target("--to", Path(to)) as file:
        count = write_lines(file, objects) if is_lines else write_list(file, objects)
    stderr_console().print(f"{to}: {count:,} objects", style="dim", markup=False, soft_wrap=True)


def print_trace_notes(notes: Iterable[str]) -> None:
    """Print remarks on the import to standard error."""
    for note in dict.fromkeys(notes):
        stderr_console().print(f"note: {note}", style="dim", markup=False, soft_wrap=True)
