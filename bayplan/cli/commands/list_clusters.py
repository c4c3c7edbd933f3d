"""List clusters: `bayplan up list`, the clusters of `bayplan up` on this machine."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from ...api.own_documents import API_VERSION
from ..render.consoles import stderr_console, stdout_console, written_to_stdout
from ..render.plain_data import print_json_document, print_yaml_document
from .cluster_entries import ClusterEntry, running_clusters


class ClustersOutput(StrEnum):
    """Output formats of the list of clusters."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


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

    Example: bayplan up list -o json
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


def _described(entry: ClusterEntry) -> dict[str, Any]:
    found = asdict(entry)
    del found["process_started"]
    return found


def _print_table(found: list[ClusterEntry]) -> None:
    from ..render.table_layout import Listing, show_listing

    if not found:
        stderr_console().print("No clusters run here; bayplan up starts one.", highlight=False)
        return
    console = stdout_console()
    table = Listing(("NAME", "SERVER", "NODES", "PID", "STARTED", "KUBECONFIG"))
    for entry in found:
        row = (entry.name, entry.server, str(entry.nodes), str(entry.pid), entry.started)
        table.add(*row, entry.kubeconfig)
    with written_to_stdout(console):
        show_listing(console, table)
