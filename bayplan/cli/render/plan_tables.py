"""Plan tables: the nodes by pool, type and zone, and their price."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from ...errors import counted
from ...planning import PoolReading
from ...planning.fleet_check import OtherSeeds
from ...planning.node_plan import NodeExchange, NodePlan
from ...planning.rightsizing import NO_TYPE
from .consoles import conclude, say
from .table_layout import Listing
from .tables import amount, percent, price_text, section

SHOWN_NODES = 10
"""Names of nodes in one line."""


def render_node_plan(console: Console, plan: NodePlan) -> None:
    """Print the table of nodes, the pods that have no place, and the price."""
    section(console, _table(plan))
    for name, number in plan.pending.items():
        message = plan.messages.get(name, "")
        text = f"{name}: {counted(number, 'pod')} pending"
        say(console, f"{text}: {message}" if message else text, "red")
    for one in plan.unplaceable:
        fit = "fits" if one.count == 1 else "fit"
        say(console, f"{one.name}: {counted(one.count, 'pod')} {fit} no pool:", "red")
        for reason, types in one.reasons.items():
            about = f" ({', '.join(types)})" if types else ""
            say(console, f"  {reason}{about}", "red")
    style = "bold green" if plan.is_complete else "bold red"
    conclude(console, Text(plan.headline(), style=style))
    if plan.other_seeds is not None:
        _render_seeds(console, plan, plan.other_seeds)
    if plan.exchange is not None and plan.exchange.staying:
        _render_staying(console, plan.exchange)
    if plan.exchange is not None and plan.exchange.is_possible:
        _render_exchange(console, plan, plan.exchange)
    elif (
        plan.first_fit_price is not None
        and abs(plan.first_fit_price - plan.price) > plan.price * 0.0005
    ):
        share = 1 - plan.price / plan.first_fit_price
        say(
            console,
            f"first fit decreasing comes to {plan.first_fit_price:,.2f} before the scheduler places a pod; "
            f"this is {abs(share) * 100:.1f} % {'less' if share > 0 else 'more'}",
            "dim",
        )
    if plan.is_interrupted:
        say(console, "interrupted: this is the best plan so far", "yellow")
    elif plan.is_out_of_time:
        say(console, "the time limit ended the search; --time-limit gives it more", "dim")


def _render_seeds(console: Console, plan: NodePlan, found: OtherSeeds) -> None:
    """Print whether the plan holds when the scheduler draws otherwise among equal nodes."""
    if not found.tried:
        say(console, "there was no time to try other seeds", "yellow")
        return
    if found.held == found.tried:
        which = "the other pods are" if plan.unplaceable else "every pod is"
        say(console, f"with {counted(found.tried, 'other seed')} {which} placed, too", "dim")
        return
    say(
        console,
        f"with {found.tried - found.held} of {counted(found.tried, 'other seed')} up to "
        f"{counted(found.most_pending, 'pod')} would wait: the scheduler draws among nodes with equal scores; "
        f"--seeds {plan.demands['seeds'] + found.tried} asks for a plan that holds with all",
        "yellow",
    )


def _render_exchange(console: Console, plan: NodePlan, exchange: NodeExchange) -> None:
    """Print the present price of the cluster, and the steps to the plan."""
    saved = exchange.price_before - exchange.staying_price - plan.price
    share = saved / exchange.price_before * 100 if exchange.price_before else 0.0
    say(
        console,
        f"now {exchange.price_before:,.2f} per hour: {saved:,.2f} ({share:.0f} %) can be saved",
        "bold",
    )
    if not exchange.added and not exchange.removed:
        return
    console.print()
    table = Listing(("STEP", "WHAT", "NODE", "TYPE", "PODS LAND ON"), right=("STEP",))
    steps = [("add", name) for name in exchange.added]
    steps += [("drain and remove", name) for name in exchange.removed]
    for number, (what, name) in enumerate(steps, 1):
        landing = Counter(move.now.node or "-" for move in exchange.moves if move.was.node == name)
        places = ", ".join(f"{node} ({n})" if n > 1 else node for node, n in landing.items())
        table.add(str(number), what, name, exchange.types[name], places)
    section(console, table)
    for pod, message in exchange.pending.items():
        say(console, f"pod {pod} would wait after the last step: {message}", "red")


def _render_staying(console: Console, exchange: NodeExchange) -> None:
    """Print the nodes that are never removed, by reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in exchange.staying.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        number, more = len(names), ""
        if number > SHOWN_NODES:
            names, more = names[:SHOWN_NODES], f" and {number - SHOWN_NODES:,} more"
        price = "; their price is not known" if reason == NO_TYPE else ""
        stay = f"{counted(number, 'node')} {'stays' if number == 1 else 'stay'}"
        say(console, f"{stay} ({reason}{price}): {', '.join(names)}{more}", "yellow")


def _table(plan: NodePlan) -> Listing:
    resources = list(dict.fromkeys(name for group in plan.groups for name in group.use))
    heads = [name.upper() for name in resources]
    table = Listing(
        ("POOL", "TYPE", "ZONE", "NODES", "PRICE", "TOTAL", *heads),
        right=("NODES", "PRICE", "TOTAL", *heads),
        spare=("PODS", "PRICE"),
    )
    for group in plan.groups:
        name = f"{group.type} (spot)" if group.is_spot else group.type
        shares = [f"{percent(group.use[r])}%" if r in group.use else "-" for r in resources]
        total = price_text(group.price * group.count)
        numbers = (str(group.count), price_text(group.price), total)
        table.add(group.pool, name, group.zone or "-", *numbers, *shares)
    return table


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
            sizes = f"{pool.minimum}-{'' if pool.maximum is None else pool.maximum}"
            head = (pool.name, sizes) if number == 0 else ("", "")
            zones = ",".join(zone for zone in one.zones if zone) or "-"
            spot = "yes" if one.is_spot else ""
            table.add(*head, one.name, *amounts, price_text(one.price), spot, zones)
    section(console, table, even_empty=True)
    types = sum(len(pool.types) for pool in reading.pools)
    console.print(
        f"{counted(len(reading.pools), 'pool')}, {counted(types, 'node type')}", style="bold"
    )
