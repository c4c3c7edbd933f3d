"""Main: the `mooring` command."""

from __future__ import annotations

from typing import Annotated

import typer

from mooring import __version__

from .bench import bench
from .capacity import capacity
from .compare import compare
from .config import app as config_app
from .explain import explain_command
from .import_trace import app as trace_app
from .plugins import plugins
from .rebalance import rebalance
from .record import record
from .replay import replay
from .run import run
from .simulate import SimulateCommand, simulate
from .snapshot import snapshot
from .up import up
from .what_if import app as what_if_app

app = typer.Typer(
    name="mooring",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=SimulateCommand)(simulate)
app.command(name="explain")(explain_command)
app.command()(capacity)
app.command()(compare)
app.command()(rebalance)
app.command()(bench)
app.command()(plugins)
app.command()(record)
app.command()(replay)
app.command()(run)
app.command()(snapshot)
app.command()(up)
app.add_typer(config_app)
app.add_typer(trace_app)
app.add_typer(what_if_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mooring {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """The Kubernetes scheduler on your desk: where would this pod go, and why.

    Decides as kube-scheduler v1.36 does, without a cluster.

    Example: mooring simulate -f cluster.yaml -f workload.yaml
    """


def main() -> None:
    """Run the command; the entry point of the package."""
    app()


if __name__ == "__main__":
    main()
