"""Accounts: every plugin's result for a pod in compact form: equal verdicts are merged, nodes are
numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ..answers.counterfactual import find_counterfactuals
from ..answers.remedy_rows import remedy_rows
from ..api.pod import Pod
from ..choices import NEAREST
from ..errors import BayplanError
from ..scheduler import Attempt, Explanation, Inquiry, PluginScore
from ..trials import TrialCluster
from .value_numbers import NONE, Tree

MOST_SCORED = 12
"""Number of best nodes with scores per plugin; equal ones count once."""

NumberOf = Callable[[str], int]
"""The number of a node by its name; NONE for an unknown one."""


def account_of_attempt(attempt: Attempt, number_of: NumberOf) -> Tree | None:
    """The results of the attempt; None when they were not recorded."""
    explanation = attempt.explanation
    if explanation is None:
        return None
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, status in explanation.filter.items():
        if not status.is_success:
            key = (status.plugin, status.message, status.code.name)
            groups.setdefault(key, []).append(name)
    account = {
        "when": "then",
        "evaluated": attempt.evaluated_nodes,
        "feasible": attempt.feasible_nodes,
        "refusals": _refusals(groups, number_of),
        **_rest(explanation, number_of, attempt.node_name),
    }
    if explanation.post_filter is not None:
        account["postFilter"] = explanation.post_filter[1].message
    return account


def account_of_inquiry(inquiry: Inquiry, number_of: NumberOf, when: str) -> Tree:
    """The results now; `when` selects the page's wording."""
    groups = {
        (status.plugin, status.message, status.code.name): names
        for status, names in inquiry.refusals()
    }
    return {
        "when": when,
        "evaluated": inquiry.evaluated_nodes,
        "feasible": inquiry.feasible_nodes,
        "refusals": _refusals(groups, number_of),
        "hasExtenders": inquiry.has_extenders,
        **_rest(inquiry.scores, number_of, ""),
    }


def ranges(numbers: Iterable[int]) -> list[int]:
    """Numbers as first and last of each range: 1, 2, 3, 7 are [1, 3, 7, 7]."""
    found: list[int] = []
    for number in sorted(numbers):
        if found and number == found[-1] + 1:
            found[-1] = number
        else:
            found += (number, number)
    return found


def _refusals(
    groups: Mapping[tuple[str, str, str], Sequence[str]], number_of: NumberOf
) -> list[Tree]:
    """The verdict table, most frequent rejection first."""
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        {
            "plugin": plugin,
            "reason": reason,
            "code": code,
            "count": len(names),
            "nodes": ranges(n for n in map(number_of, names) if n != NONE),
        }
        for (plugin, reason, code), names in ordered
    ]


def _rest(explanation: Explanation, number_of: NumberOf, winner: str) -> Tree:
    return {
        "preFilter": "" if explanation.pre_filter.is_success else explanation.pre_filter.message,
        "narrowed": None if explanation.node_names is None else len(explanation.node_names),
        "skipped": {"filter": explanation.skipped_filter, "score": explanation.skipped_score},
        "waitsFor": explanation.waits_for,
        "scores": _scores(explanation.scores, explanation.totals, number_of, winner),
    }


def _scores(
    scores: Sequence[PluginScore], totals: Mapping[str, int], number_of: NumberOf, winner: str
) -> Tree | None:
    """The best nodes, of equal ones the winner or the first, with each plugin's score; None without
    any."""
    if not totals:
        return None
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in sorted(totals, key=lambda name: (-totals[name], name != winner, name)):
        given = (totals[name], *(score.normalized[name] for score in scores))
        alike.setdefault(given, []).append(name)
    groups = list(alike.values())
    shown = groups[:MOST_SCORED]
    if winner in totals and not any(winner in group for group in shown):
        shown[-1] = next(group for group in groups if winner in group)
    firsts = [group[0] for group in shown]
    return {
        "nodes": [number_of(name) for name in firsts],
        "alike": [len(group) - 1 for group in shown],
        "totals": [totals[name] for name in firsts],
        "of": len(totals),
        "winner": number_of(winner) if winner else NONE,
        "plugins": [
            {
                "plugin": score.plugin,
                "weight": score.weight,
                "raw": [score.raw[name] for name in firsts],
                "points": [score.normalized[name] * score.weight for name in firsts],
                "isLevel": len(set(score.normalized.values())) <= 1,
            }
            for score in scores
        ],
    }


MakeView: TypeAlias = Callable[[], TrialCluster]
"""Makes the current cluster view."""


def remedies_of(view: TrialCluster, pod: Pod, number_of: NumberOf) -> list[Tree]:
    """The smallest changes for the nearest nodes, in the rows of `bayplan explain`; empty where that fails."""
    if view.has_extenders:
        return []  # extenders would be called, and may keep state
    try:
        found = find_counterfactuals(view, pod, nearest=NEAREST)
    except BayplanError:
        return []
    return [
        {
            "nodes": [number_of(name) for name in names],
            "lines": [[text.strip(), kind.value] for text, kind in lines],
        }
        for names, lines in remedy_rows(found)
    ]
