"""Kubectl: `kubectl bayplan`, the commands as a plugin of kubectl, and its completion.

kubectl runs `kubectl-bayplan` with the words after the plugin's name. The cluster is the one that kubectl would talk
to, and names without a namespace are in that of the kubeconfig's context.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from .command_table import CommandApp, LazyGroup
from .options.cluster_options import (
    CLUSTER_DEFAULTS,
    CONTEXT,
    KUBECONFIG,
    NAMESPACE,
    ClusterDefaults,
)

NAME = "kubectl bayplan"
COMMAND = "kubectl-bayplan"
NO_FILES, FILES = 4, 0
"""The shell's default action: nothing, or it completes names of files (cobra's ShellCompDirective)."""


def root(
    ctx: typer.Context,
    kubeconfig: Path | None = KUBECONFIG,
    context: str | None = CONTEXT,
    namespace: str | None = NAMESPACE,
) -> None:
    """Ask Kubernetes' scheduling rules about the cluster that kubectl talks to. Only `run` changes the cluster.

    The options may also follow the command; -n only where a command takes the name of a pod or workload.

    Example: kubectl bayplan explain pod/web-7
    """
    defaults = ClusterDefaults(kubeconfig, context, namespace, is_kubectl_plugin=True)
    token = CLUSTER_DEFAULTS.set(defaults)
    ctx.call_on_close(lambda: CLUSTER_DEFAULTS.reset(token))


def make_app(add_completion: bool = False) -> CommandApp:
    """The plugin's command; completion is kubectl's business, so there are no options to install it."""
    app = CommandApp(
        name=NAME,
        cls=LazyGroup,
        no_args_is_help=True,
        add_completion=add_completion,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    return app


app = make_app()


def main() -> None:
    """Run the plugin; the entry point `kubectl-bayplan`."""
    app(prog_name=NAME)


def complete() -> None:
    """Print completions for kubectl; the entry point `kubectl_complete-bayplan`.

    kubectl gives the words after the plugin's name, the last of them incomplete, and reads one completion per line,
    then a colon and a number with instructions for the shell.
    """
    found = completions(sys.argv[1:])
    for each in found:
        print(each)
    print(f":{NO_FILES if found else FILES}")


def completions(words: Sequence[str]) -> list[str]:
    """Completions of the last word."""
    variables = {
        "_KUBECTL_BAYPLAN_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join([COMMAND, *words]),
        "COMP_CWORD": str(max(len(words), 1)),
    }
    os.environ.update(variables)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        make_app(add_completion=True)(prog_name=COMMAND)
    # Where a file is expected, the completion is the incomplete word itself.
    known = {"", *words[-1:]}
    return [line for line in printed.getvalue().splitlines() if line not in known]
