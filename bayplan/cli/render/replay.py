"""Render replay: where pods went and where they go now, as a table and as plain data."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ...api.own_documents import API_VERSION
from ...sim.replay import PodPlacement, ReplayedPod, ReplayReport, ReplayVerdict
from .listing import Listing
from .node_names import NodeNames
from .tables import count, hint, section
from .totals import render_totals, render_use

MAX_PODS = 40
STYLES = {
    ReplayVerdict.SAME: "",
    ReplayVerdict.OTHER: "cyan",
    ReplayVerdict.PENDING_HERE: "red",
    ReplayVerdict.PENDING_THEN: "green",
    ReplayVerdict.PENDING: "yellow",
}


def to_document(report: ReplayReport) -> dict[str, Any]:
    """The comparison as plain data; nothing in it depends on how long the replay took."""
    counts = report.counts()
    return {
        "apiVersion": API_VERSION,
        "kind": "ReplayReport",
        "summary": {
            "pods": len(report.pods),
            "same": counts[ReplayVerdict.SAME],
            "otherNode": counts[ReplayVerdict.OTHER],
            "pendingHere": counts[ReplayVerdict.PENDING_HERE],
            "pendingThen": counts[ReplayVerdict.PENDING_THEN],
            "pending": counts[ReplayVerdict.PENDING],
            "preempted": len(report.preempted),
            "time": round(report.time_s, 6),
        },
        "pods": [_pod(one) for one in report.pods],
        "totals": report.totals.to_list(),
        "useOverTime": [series.to_dict() for series in report.use],
        "preempted": [
            {"pod": victim.key, "node": victim.node_name, "for": preemptor.key}
            for victim, preemptor in report.preempted
        ],
    }


def _pod(one: ReplayedPod) -> dict[str, Any]:
    return {
        "namespace": one.pod.namespace,
        "name": one.pod.name,
        "created": round(one.created_s, 6),
        "result": str(one.verdict),
        "recorded": _placement(one.recorded),
        "replayed": _placement(one.replayed),
        **({"lostWithNode": True} if one.is_lost else {}),
    }


def _placement(placement: PodPlacement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {"node": placement.node_name, "time": round(placement.time_s, 6)}


def render_replay(console: Console, report: ReplayReport, everything: bool) -> None:
    """Print the pods that go to another node, and how many there are."""
    pods = report.pods if everything else report.differing
    shown = pods if everything or not console.is_terminal else pods[:MAX_PODS]
    if shown:
        section(console, _table(console, shown))
        hint(console, len(pods) - len(shown), "pod")
    render_totals(console, report.totals)
    render_use(console, report.use, report.time_s)
    console.print(summary(report))


def summary(report: ReplayReport) -> Text:
    """`12 of 14 pods go where they went, 1 to another node, 1 is pending here only`."""
    counts = report.counts()
    parts = [
        f"{counts[ReplayVerdict.SAME]:,} of {count(len(report.pods), 'pod')} go where they went"
    ]
    for verdict, words in (
        (ReplayVerdict.OTHER, "to another node"),
        (ReplayVerdict.PENDING_HERE, "pending here but not then"),
        (ReplayVerdict.PENDING_THEN, "pending then but not here"),
        (ReplayVerdict.PENDING, "pending both times"),
    ):
        if counts[verdict]:
            parts.append(f"{counts[verdict]:,} {words}")
    if report.preempted:
        parts.append(f"{count(len(report.preempted), 'pod')} preempted")
    return Text(", ".join(parts), style="bold yellow" if report.differing else "bold green")


def _table(console: Console, pods: list[ReplayedPod]) -> Listing:
    places = [place for one in pods for place in (one.recorded, one.replayed) if place]
    names = NodeNames.of(console, (place.node_name for place in places))
    names.tell(console)
    table = Listing(("TIME", "POD", "RECORDED", "REPLAYED", "RESULT"), spare=("TIME",))
    for one in pods:
        result = "lost with its node" if one.is_lost else str(one.verdict)
        nodes = (names.short(p.node_name) if p else "-" for p in (one.recorded, one.replayed))
        styled = [(result, STYLES[one.verdict])]
        table.add(f"{one.created_s:.1f}s", one.pod.key, *nodes, styled)
    return table
