"""Pool options: what commands take that read node pools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..render.consoles import stderr_console

if TYPE_CHECKING:
    from ...planning import InstanceTable, PoolReading

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


def note_pools(reading: PoolReading) -> None:
    """Say on standard error what of the documents is not modelled."""
    for note in reading.notes:
        stderr_console().print(f"note: {note}", style="dim", markup=False, soft_wrap=True)
