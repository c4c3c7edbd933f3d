"""Down: `bayplan up down`, the end of a cluster of `bayplan up`."""

from __future__ import annotations

import os
import signal
import time
from typing import Annotated

import typer

from ...errors import InputError
from ..render.consoles import stderr_console
from .cluster_entries import (
    DEFAULT_NAME,
    ClusterEntry,
    all_entries,
    check_name,
    find_entry,
    remove_entry,
    running_clusters,
)

PATIENCE_S = 30.0
PAUSE_S = 0.05


def complete_cluster(incomplete: str) -> list[str]:
    """Names of running clusters for shell completion."""
    return [entry.name for entry in running_clusters() if entry.name.startswith(incomplete)]


def down(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The cluster to end.",
            autocompletion=complete_cluster,
        ),
    ] = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="End all clusters.")] = False,
) -> None:
    """End a cluster of bayplan up, and wait until it has ended.

    Data in a folder of --data-dir stays.

    Exit status: 0, or 2 when there is no such cluster.

    Example: bayplan up down
    """
    if every:
        for entry in all_entries():
            _end(entry)
        return
    check_name(name, "NAME")
    found = find_entry(name)
    if found is None:
        known = ", ".join(entry.name for entry in running_clusters()) or "none"
        raise InputError(f'NAME: expected a running cluster ({known}); got "{name}"')
    _end(found)


def _end(entry: ClusterEntry) -> None:
    """Stop the cluster's process, and wait; one that was killed leaves its entry, which is removed."""
    if not entry.is_running():
        remove_entry(entry)
        _say(f"{entry.name}: its process has ended before; removed what it left")
        return
    os.kill(entry.pid, signal.SIGTERM)
    end = time.monotonic() + PATIENCE_S
    while entry.is_running():
        if time.monotonic() > end:
            expected = f"expected process {entry.pid} to end within {PATIENCE_S:g} s"
            raise InputError(f"{entry.name}: {expected}; got one that still runs")
        time.sleep(PAUSE_S)
    remove_entry(entry)
    _say(f"{entry.name}: ended")


def _say(text: str) -> None:
    stderr_console().print(text, markup=False, highlight=False, soft_wrap=True)
