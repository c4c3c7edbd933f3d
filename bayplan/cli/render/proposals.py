"""Proposals: requests that follow the measured use, and what they would free."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...answers.rightsizing import Rightsizing
from .cluster_totals import render_totals
from .consoles import conclude
from .table_layout import Listing
from .tables import count, section


def render_rightsizing(console: Console, answer: Rightsizing) -> None:
    """Print the proposals, the totals of the cluster with them, and the scheduler's result for them."""
    numbers = ("PODS", "REQUESTED", "USED", "PROPOSED", "FREES")
    table = Listing(("WORKLOAD", "CONTAINER", "RESOURCE", *numbers), right=numbers)
    for one in answer.proposals:
        row = one.to_dict()
        amounts = (row["requested"], row["used"], row["proposed"], row["frees"])
        table.add(one.workload, one.container, one.resource, str(one.pods), *amounts)
    if answer.proposals:
        section(console, table)
    render_totals(console, answer.totals)
    if answer.unmeasured:
        text = f"{count(answer.unmeasured, 'running pod')} without a measured use"
        console.print(text, style="dim", markup=False, highlight=False)
    for name in answer.displaced:
        text = f"{name} has less than its pods would request: some would have to move"
        console.print(text, style="yellow", markup=False, highlight=False)
    for pod in answer.placed:
        console.print(f"{pod} gets a node then", style="green", markup=False, highlight=False)
    conclude(console, Text(answer.headline(), style="bold"))
