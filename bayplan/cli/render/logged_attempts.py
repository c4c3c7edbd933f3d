"""Logged attempts: the entries of a scheduler's log of decisions about a pod."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from ...drivers.decision_log import LoggedAttempt
from .table_layout import Listing
from .tables import count, section


def render_attempts(console: Console, attempts: Sequence[LoggedAttempt]) -> None:
    """Print a sentence about the last attempt, and a line for each."""
    console.print(Text(sentence_of(attempts[-1]), style="bold"), soft_wrap=True)
    console.print()
    heads = ("TIME", "ATTEMPT", "RESULT", "NODE", "TOTAL", "RUNNER-UP", "MARGIN", "FIT", "REASON")
    table = Listing(heads, spare=("ATTEMPT",))
    for one in attempts:
        second = f"{one.runner_up} ({one.runner_up_total:,})" if one.runner_up else "-"
        table.add(
            time_of(one),
            f"{one.attempt}",
            one.result,
            one.node or "-",
            "-" if one.total is None else f"{one.total:,}",
            second,
            "-" if one.margin is None else f"{one.margin:,}",
            f"{one.feasible_nodes:,} of {one.nodes:,}",
            _reason(one),
        )
    section(console, table)


def sentence_of(one: LoggedAttempt) -> str:
    """Reason why the pod went where it went then, or nowhere."""
    key = f"{one.namespace}/{one.name}"
    if not one.node:
        victims = f"; evicted for it: {', '.join(one.victims)}" if one.victims else ""
        return f"{key} got no node at {time_of(one)}: {one.message}{victims}"
    start = f"{key} went to {one.node} at {time_of(one)}"
    if one.from_nomination:
        return f"{start}: it was nominated there, and fits"
    if one.feasible_nodes <= 1 or one.total is None:
        return f"{start}: the only one of {count(one.nodes, 'node')} that fits"
    start = f"{start}: {one.total:,} points, the highest of {one.feasible_nodes:,} nodes that fit"
    if one.margin == 0:
        return f"{start}; {one.runner_up} had as many, the draw decided"
    if one.margin is None:
        return start
    return f"{start}; {one.runner_up} had {one.margin:,} less"


def time_of(one: LoggedAttempt) -> str:
    """The time of an attempt, in UTC."""
    return datetime.fromtimestamp(one.time, UTC).isoformat(timespec="milliseconds")


def _reason(one: LoggedAttempt) -> str:
    parts = [f"{plugin} {number:,}" for plugin, number in one.refusals.items()]
    if one.victims:
        parts.append(f"evicts {', '.join(one.victims)} on {one.nominated_node}")
    return ", ".join(parts)
