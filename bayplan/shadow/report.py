"""Shadow report: the account of judged decisions as a document, and in one line."""

from __future__ import annotations

from typing import Any

import msgspec

from ..answers.judged_decision import Agreement
from ..api.own_documents import API_VERSION
from .decision_account import DecisionAccount, account_tree
from .gain import Gain


def report_tree(
    account: DecisionAccount, gain: Gain | None, decisions: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The content of `-o json`: a `ShadowReport`."""
    tree = {
        "apiVersion": API_VERSION,
        "kind": "ShadowReport",
        "summary": {
            "decisions": account.decisions,
            **{_name(one): account.count_of(one) for one in Agreement},
            "skipped": account.skipped_decisions,
            "watched": round(account.watched_s, 3),
        },
        **account_tree(account),
        "hints": list(account.hints()),
    }
    if gain is not None:
        tree["gain"] = msgspec.to_builtins(gain)
    if decisions is not None:
        tree["decisions"] = decisions
    return tree


def headline(account: DecisionAccount) -> str:
    """`120 decisions: 96 same, 22 sampled, 2 other state, 0 different`."""
    noun = "decision" if account.decisions == 1 else "decisions"
    parts = ", ".join(f"{account.count_of(one):,} {one}" for one in Agreement)
    text = f"{account.decisions:,} {noun}: {parts}"
    skipped = account.skipped_decisions
    return f"{text}; {skipped:,} not judged" if skipped else text


def _name(agreement: Agreement) -> str:
    return "otherState" if agreement is Agreement.OTHER_STATE else str(agreement)
