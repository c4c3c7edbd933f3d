"""Differences page: the account as one HTML document without scripts. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..answers.judged_decision import Agreement
from .decision_account import DecisionAccount
from .report import headline

STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2rem;max-width:90rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "th,td{text-align:left;padding:.25rem .75rem;border-bottom:1px solid #ddd;vertical-align:top}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th,td{border-color:#444}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Content security policy of the page."""


def differences_page(account: DecisionAccount, state: str) -> str:
    """The page: a line per scheduler, causes, and the latest differences."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=10>",
        f"<title>bayplan shadow</title><style>{STYLE}</style>",
        f"<h1>bayplan shadow</h1><p>{escape(state)}</p><p><b>{escape(headline(account))}</b></p>",
        _table(
            ("Scheduler", "Bound", "Refused", *(str(one).capitalize() for one in Agreement)),
            (
                (
                    one.name if one.has_profile else f"{one.name} (default profile)",
                    one.bound,
                    one.refused,
                    *(one.count_of(agreement) for agreement in Agreement),
                )
                for one in account.schedulers.values()
            ),
        ),
        *(f"<p>{escape(hint)}</p>" for hint in account.hints()),
        *(f"<p>{n:,} not judged: {escape(cause)}</p>" for cause, n in account.skipped.items()),
    ]
    if account.differences:
        rows = (
            (d.time, d.pod, d.node, d.here, d.result, ", ".join(d.plugins), d.reason, d.evidence)
            for d in reversed(account.differences)
        )
        heads = ("Time", "Pod", "Node", "Here", "Result", "Plugins", "Reason", "Evidence")
        parts += ["<h2>Differences</h2>", _table(heads, rows)]
    return "\n".join((*parts, "</html>\n"))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    lines = ["<table><tr>", *(f"<th>{escape(head)}" for head in heads)]
    for row in rows:
        lines.append("<tr>")
        for value in row:
            is_number = isinstance(value, int)
            text = f"{value:,}" if isinstance(value, int) else escape(value)
            lines.append(f"<td class=n>{text}" if is_number else f"<td>{text}")
    return "".join((*lines, "</table>"))
