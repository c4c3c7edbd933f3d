"""Findings: the findings of `bayplan doctor`, one paragraph each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...doctor.cluster_facts import Finding
from .tables import count


def render_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print the findings, those that may make answers differ first, and a headline."""
    for one in findings:
        mark, style = ("!", "yellow") if one.differs else ("-", "")
        console.print(Text(f"{mark} {one.subject}: {one.text}", style=style), soft_wrap=True)
        if one.means:
            console.print(Text(f"    {one.means}", style="dim"), soft_wrap=True)
        if one.command:
            console.print(Text(f"    try: {one.command}", style="dim"), soft_wrap=True)
    number = sum(one.differs for one in findings)
    text = "nothing found that makes answers differ"
    if number:
        text = f"answers may differ: {count(number, 'finding')}"
    console.print(Text(text, style="bold yellow" if number else "bold green"))
