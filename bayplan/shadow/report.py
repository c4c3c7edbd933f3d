"""Shadow report: the account of judged decisions as a document, and in one line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from ..answers.judged_decision import Agreement
from ..api.own_documents import API_VERSION
from ..errors import InputError, OutputError, counted, os_errors_named
from .decision_account import DecisionAccount
from .gain import Gain

NAMES = {Agreement.OTHER_STATE: "otherState"}


def report_tree(
    account: DecisionAccount, gain: Gain | None, decisions: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The content of `-o json`: a `ShadowReport`."""
    tree = {
        "apiVersion": API_VERSION,
        "kind": "ShadowReport",
        "summary": {
            "decisions": account.decisions,
            **{NAMES.get(one, str(one)): account.count_of(one) for one in Agreement},
            "skipped": account.skipped_decisions,
            "watched": round(account.watched_s, 3),
        },
        **msgspec.to_builtins(account),
        "hints": list(account.hints()),
    }
    if gain is not None:
        tree["gain"] = msgspec.to_builtins(gain)
    if decisions is not None:
        tree["decisions"] = decisions
    return tree


def headline(account: DecisionAccount) -> str:
    """`120 decisions: 96 same, 22 sampled, 2 other state, 0 different`."""
    parts = ", ".join(f"{account.count_of(one):,} {one}" for one in Agreement)
    text = f"{counted(account.decisions, 'decision')}: {parts}"
    skipped = account.skipped_decisions
    return f"{text}; {skipped:,} not judged" if skipped else text


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


KIND = "ShadowState"


def read_state(path: Path) -> DecisionAccount:
    """The account in a file; an empty one if there is no file."""
    place = f"--state: {path}"
    try:
        with os_errors_named(place, "a file to read"), suppress(FileNotFoundError):
            tree = msgspec.json.decode(path.read_bytes(), type=dict)
            if (tree.get("apiVersion"), tree.get("kind")) != (API_VERSION, KIND):
                found = f"{tree.get('apiVersion')} {tree.get('kind')}"
                raise InputError(f"{place}: expected {API_VERSION} {KIND}; got {found}")
            return msgspec.convert(tree.get("account") or {}, DecisionAccount)
    except msgspec.DecodeError as error:
        problem = f"expected a file that `bayplan shadow` wrote; got {error}"
        raise InputError(f"{place}: {problem}") from None
    return DecisionAccount()


def write_state(path: Path, account: DecisionAccount) -> None:
    """Replace the file of the account, or leave it as it was."""
    tree = {"apiVersion": API_VERSION, "kind": KIND, "account": msgspec.to_builtins(account)}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with os_errors_named(f"--state: {path}", "room to write", OutputError), ExitStack() as stack:
        stack.callback(beside.unlink, missing_ok=True)
        beside.write_bytes(msgspec.json.encode(tree) + b"\n")
        os.replace(beside, path)
