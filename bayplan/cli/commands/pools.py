"""Pools: `bayplan plan pools`, to check the files that describe node pools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_table import CommandApp
from ..options.autoscaler_options import INSTANCE_TYPES, read_table
from ..options.input_options import takes_input_limit
from ..options.option_groups import argument
from ..render.consoles import print_notes
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_in_form, with_remarks

if TYPE_CHECKING:
    from rich.console import Console

    from ...planning import PoolReading

app = CommandApp(
    name="pools",
    no_args_is_help=True,
    help="Check the files that describe node pools.",
    epilog="Example: bayplan plan pools pools.yaml --instance-types types.csv",
)


@app.callback()
def pools() -> None:
    """Check the files that describe node pools."""


@app.command(short_help="Name all problems of pools, and list their types and prices.")
@takes_input_limit
def check(
    files: list[Path] = argument(
        "FILE",
        "NodePools of bayplan.dev/v1 or karpenter.sh/v1, nodes with labels of their group, the status of "
        "Cluster Autoscaler; - is standard input.",
        allow_dash=True,
    ),
    instance_types: Path | None = INSTANCE_TYPES,
    output: AnswerForm = ANSWER_FORM,
) -> None:
    """Name all problems of files with node pools, or list the types of nodes that they come to.

    Exit status: 0 when all files are good, 2 when one is not.

    Example: bayplan plan pools pools.yaml --instance-types types.csv
    """
    from ...planning import read_pools

    reading = read_pools(files, read_table(instance_types))

    def render(console: Console) -> None:
        from ..render.plan_tables import render_pools

        render_pools(console, reading)

    names = [f"pool/{pool.name} type/{one.name}" for pool, one in reading.types]
    print_in_form(output, lambda: pools_document(reading), render, lambda: names, "NodePools")
    if output in (AnswerForm.TABLE, AnswerForm.NAME):
        print_notes(reading.notes)


def pools_document(reading: PoolReading) -> dict[str, Any]:
    """The pools as plain data."""
    from ...planning.pools import pool_entry

    document = {"pools": [pool_entry(pool) for pool in reading.pools]}
    return with_remarks(document, reading.notes)
