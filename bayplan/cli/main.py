"""Main: the `bayplan` command."""

from __future__ import annotations

from typing import Annotated

import typer

from bayplan import __version__

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
    name="bayplan",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut long options short where a terminal is narrow
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=SimulateCommand, short_help="Place pods on a cluster, and show where they go.")(
    simulate
)
app.command(name="explain", short_help="Say why a pod is pending, or why it is where it is.")(
    explain_command
)
app.command(short_help="Say how many more pods fit, and what runs out first.")(capacity)
app.command(short_help="Place the same pods under several configurations.")(compare)
app.command(short_help="Plan moves of pods that improve the cluster most.")(rebalance)
app.command(short_help="Measure pods per second and memory.")(bench)
app.command(short_help="List every plugin and its extension points.")(plugins)
app.command(short_help="Write down what happens in a live cluster.")(record)
app.command(short_help="Let a recorded cluster happen once more.")(replay)
app.command(short_help="Schedule the pods of a real cluster.")(run)
app.command(short_help="Write a live cluster to a file for the other commands.")(snapshot)
app.command(short_help="Run a cluster on this machine, for kubectl.")(up)
app.add_typer(config_app, short_help="Show, check and convert configuration files.")
app.add_typer(trace_app)
app.add_typer(what_if_app, short_help="Say what would follow from a change to a cluster.")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bayplan {__version__}")
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

    Decides as kube-scheduler v1.36 does, with a cluster or without.

    Example: bayplan simulate -f cluster.yaml -f workload.yaml
    """


def main() -> None:
    """Run the command; the entry point of the package."""
    app()


if __name__ == "__main__":
    main()
