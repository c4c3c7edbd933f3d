"""Pool options: options of the commands that read node pools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..render.consoles import stderr_console

if TYPE_CHECKING:
    from ...planning import InstanceTable

InstanceTypesOption = Annotated[
    Path | None,
    typer.Option(
        "--instance-types",
        metavar="CSV",
        help="Table of instance types: name, cpu, memory, price, zones, other resources by name, labels.",
        show_default=False,
    ),
]


def read_table(path: Path | None) -> InstanceTable:
    """The table of instance types in a file; empty without one."""
    from ...planning import InstanceTable, read_instance_table

    return read_instance_table(path) if path is not None else InstanceTable()


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, such as parts of documents that are not modelled."""
    for note in notes:
        stderr_console().print(f"note: {note}", style="dim", markup=False, soft_wrap=True)
