"""Down: `bayplan down` and `bayplan clusters`, the clusters of `bayplan up` on this machine."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from ..api.own_documents import API_VERSION
from ..errors import InputError
from .cluster_entries import (
    DEFAULT_NAME,
    ClusterEntry,
    all_entries,
    check_name,
    find_entry,
    remove_entry,
    running_clusters,
)
from .consoles import stderr_console, stdout_console, written_to_stdout
from .documents import print_json_document, print_yaml_document
from .failures import reports_failures

PATIENCE_S = 30.0
PAUSE_S = 0.05


class ClustersOutput(StrEnum):
    """How the clusters are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def complete_cluster(incomplete: str) -> list[str]:
    """Names of running clusters for shell completion."""
    return [entry.name for entry in running_clusters() if entry.name.startswith(incomplete)]


@reports_failures
def clusters(
    output: Annotated[
        ClustersOutput,
        typer.Option(
            "-o",
            "--output",
            metavar="FORM",
            help=f"How to print it: {', '.join(ClustersOutput)}.",
        ),
    ] = ClustersOutput.TABLE,
) -> None:
    """List the clusters of bayplan up that run on this machine.

    Example: bayplan clusters -o json
    """
    found = running_clusters()
    document = {
        "apiVersion": API_VERSION,
        "kind": "ClusterList",
        "items": [_described(entry) for entry in found],
    }
    match output:
        case ClustersOutput.JSON:
            print_json_document(document)
        case ClustersOutput.YAML:
            print_yaml_document(document)
        case ClustersOutput.NAME:
            print("\n".join(entry.name for entry in found), end="\n" if found else "")
        case _:
            _print_table(found)


@reports_failures
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

    Example: bayplan down
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
    """Ask the cluster's process to end, and wait; one that was killed leaves its entry, which is removed."""
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


def _described(entry: ClusterEntry) -> dict[str, Any]:
    found = asdict(entry)
    del found["process_started"]
    return found


def _print_table(found: list[ClusterEntry]) -> None:
    from .render.listing import Listing, show_listing

    if not found:
        _say("No clusters run here; bayplan up starts one.")
        return
    console = stdout_console()
    table = Listing(("NAME", "SERVER", "NODES", "PID", "STARTED", "KUBECONFIG"))
    for entry in found:
        row = (entry.name, entry.server, str(entry.nodes), str(entry.pid), entry.started)
        table.add(*row, entry.kubeconfig)
    with written_to_stdout(console):
        show_listing(console, table)
