"""Clusters: `bayplan up list` and `bayplan up down`, for the clusters that `bayplan up` runs."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from ...errors import InputError
from ..options.option_groups import argument, option
from ..render.consoles import say, stderr_console
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_in_form
from .cluster_entries import (
    DEFAULT_NAME,
    ClusterEntry,
    all_entries,
    check_name,
    find_entry,
    remove_entry,
    running_clusters,
)

if TYPE_CHECKING:
    from rich.console import Console


def clusters(output: AnswerForm = ANSWER_FORM) -> None:
    """List the clusters of bayplan up that run on this machine.

    Example: bayplan up list -o json
    """
    found = running_clusters()
    if not found and output in (AnswerForm.TABLE, AnswerForm.WIDE):
        stderr_console().print("No clusters run here; bayplan up starts one.", highlight=False)
        return

    def render(console: Console) -> None:
        from ..render.table_layout import Listing, show_listing

        heads = ("NAME", "SERVER", "NODES", "PID", "STARTED", "KUBECONFIG")
        rows = [[str(getattr(entry, head.lower())) for head in heads] for entry in found]
        show_listing(console, Listing(heads, rows))

    items = [asdict(entry) for entry in found]
    for item in items:
        del item["process_started"]
    names = [entry.name for entry in found]
    print_in_form(output, lambda: {"items": items}, render, lambda: names, "ClusterList")


PATIENCE_S = 30.0
PAUSE_S = 0.05


def complete_cluster(incomplete: str) -> list[str]:
    """Names of running clusters for shell completion."""
    return [entry.name for entry in running_clusters() if entry.name.startswith(incomplete)]


def down(
    name: str = argument(
        "NAME",
        "The cluster to end.",
        default=DEFAULT_NAME,
        autocompletion=complete_cluster,
    ),
    every: bool = option("--all", "End all clusters."),
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
        say(stderr_console(), f"{entry.name}: its process has ended before; removed what it left")
        return
    os.kill(entry.pid, signal.SIGTERM)
    end = time.monotonic() + PATIENCE_S
    while entry.is_running():
        if time.monotonic() > end:
            expected = f"expected process {entry.pid} to end within {PATIENCE_S:g} s"
            raise InputError(f"{entry.name}: {expected}; got one that still runs")
        time.sleep(PAUSE_S)
    remove_entry(entry)
    say(stderr_console(), f"{entry.name}: ended")
