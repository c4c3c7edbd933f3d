"""Main: the `bayplan` command."""

from __future__ import annotations

import gc
import os

import typer

from bayplan import __version__

from ..compiled_kernel import STALE, why_not_compiled
from . import command_time
from .command_table import CommandApp, LazyGroup
from .options.option_groups import option

COLLECT_AFTER = 500_000
"""New objects after which Python searches for garbage, instead of 700: modules and clusters stay as they are."""

app = CommandApp(
    name="bayplan",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bayplan {__version__} (kernel: {_kernel_in_use()})")
        raise typer.Exit


def _kernel_in_use() -> str:
    """The value of `bayplan.amounts.KERNEL`, without importing that package, which takes NumPy."""
    why_not = why_not_compiled()
    if why_not is None:
        return "compiled"
    return f"NumPy; {why_not}" if why_not is STALE else "NumPy"


@app.callback()
def root(
    version: bool = option(
        "--version", "Print the version and the kernel.", callback=_print_version, is_eager=True
    ),
    debug: bool = option("--debug", "Print a traceback before the line about an error."),
) -> None:
    """The Kubernetes scheduler on your desk: where would this pod go, and why.

    Example: bayplan simulate -f cluster.yaml -f workload.yaml
    """
    if debug:
        from . import failures

        failures.has_tracebacks = True


def main() -> None:
    """Run the command; the entry point of the package."""
    gc.set_threshold(COLLECT_AFTER)
    # NumPy's library of linear algebra starts a thread per core, and these wait actively: a tenth of a second each.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command_time.is_whole_process = True
    try:
        app(prog_name="bayplan")
    finally:
        gc.freeze()  # the process ends: Python need not search all there is for garbage once more


if __name__ == "__main__":
    main()
