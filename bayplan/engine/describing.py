"""Describing: on which nodes the engine calls a plugin, and what would make it faster."""

from __future__ import annotations

from typing import NamedTuple

from ..framework import (
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    FilterPlugin,
    Plugin,
    ScorePlugin,
)


class Judging(NamedTuple):
    """On which nodes a plugin is called, and what to declare so that it is called less; both may be empty."""

    how: str
    advice: str


def describe_judging(plugin: type[Plugin]) -> Judging:
    """On which nodes Filter and Score of `plugin` are called."""
    is_filter, is_scorer = issubclass(plugin, FilterPlugin), issubclass(plugin, ScorePlugin)
    if not is_filter and not is_scorer:
        return Judging("", "")
    if plugin.scope is GROUPS:
        return Judging("one node of each group, for every pod", "")
    if plugin.scope is NODE_OBJECT:
        return Judging("nodes that changed", _advice(plugin))
    if plugin.scope is NODE_ROW:
        has_rules = _has_own(plugin, Plugin, "amount_rules")
        how = (
            "a rule on amounts, in the kernel" if has_rules else "nodes that changed, or their pods"
        )
        return Judging(how, _advice(plugin))
    advice = "declare `scope` if the answer depends on less"
    return Judging("all nodes, for every pod", advice + _rows(plugin))


def _advice(plugin: type[Plugin]) -> str:
    advice = []
    if not _has_own(plugin, Plugin, "spec_key"):
        advice.append("declare `spec_key` if it depends on the spec alone")
    is_normalized = issubclass(plugin, ScorePlugin) and _has_own(plugin, ScorePlugin, "normalize")
    if is_normalized and not getattr(plugin, "normalizes_by_bounds", False):
        advice.append("declare `normalizes_by_bounds` if only the scores count, not their number")
    return ("; ".join(advice) + _rows(plugin)).removeprefix("; ")


def _rows(plugin: type[Plugin]) -> str:
    """What a plugin that judges one node at a time lacks."""
    lacking = [
        f"`{method}`"
        for base, method in ((FilterPlugin, "filter_rows"), (ScorePlugin, "score_rows"))
        if issubclass(plugin, base) and not _has_own(plugin, base, method)
    ]
    return f"; implement {' and '.join(lacking)}" if lacking else ""


def _has_own(plugin: type[Plugin], base: type[Plugin], method: str) -> bool:
    return getattr(plugin, method) is not getattr(base, method)
