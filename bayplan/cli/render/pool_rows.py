"""Pool rows: a line for each type of nodes, with its size and price."""

from __future__ import annotations

from rich.console import Console

from ...planning import NodePool, PoolReading
from .table_layout import Listing
from .tables import amount, count, price_text, section

SHOWN = ("cpu", "memory", "pods")


def render_pools(console: Console, reading: PoolReading) -> None:
    """Print the table, and how many pools and types there are."""
    others = dict.fromkeys(
        name for _, one in reading.types for name in one.allocatable if name not in SHOWN
    )
    resources = (*SHOWN, *others)
    table = Listing(
        ("POOL", "NODES", "TYPE", *(name.upper() for name in resources), "PRICE", "SPOT", "ZONES"),
        right=("NODES", *(name.upper() for name in resources), "PRICE"),
        spare=("ZONES", "SPOT", "PODS"),
    )
    for pool in reading.pools:
        for number, one in enumerate(pool.types):
            amounts = [
                amount(one.allocatable[name], name) if name in one.allocatable else "-"
                for name in resources
            ]
            head = (pool.name, _sizes(pool)) if number == 0 else ("", "")
            zones = ",".join(zone for zone in one.zones if zone) or "-"
            spot = "yes" if one.is_spot else ""
            table.add(*head, one.name, *amounts, price_text(one.price), spot, zones)
    section(console, table)
    types = sum(len(pool.types) for pool in reading.pools)
    console.print(f"{count(len(reading.pools), 'pool')}, {count(types, 'node type')}", style="bold")


def _sizes(pool: NodePool) -> str:
    return f"{pool.minimum}-{'' if pool.maximum is None else pool.maximum}"
