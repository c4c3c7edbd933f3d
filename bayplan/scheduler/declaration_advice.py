"""Declaration advice: on which nodes the engine calls a plugin, and what would make it faster."""

from __future__ import annotations

from typing import NamedTuple

from ..framework import (
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)

EVERY_POD = "all nodes, for every pod"


class Judging(NamedTuple):
    """On which nodes a plugin is called, and what to declare so that it is called less; both may be empty."""

    how: str
    advice: str


def describe_judging(plugin: type[Plugin]) -> Judging:
    """On which nodes Filter and Score of `plugin` are called."""
    is_filter, is_scorer = issubclass(plugin, FilterPlugin), issubclass(plugin, ScorePlugin)
    if not is_filter and not is_scorer:
        return Judging("", "; ".join(_unsettled(plugin)))
    if plugin.scope is GROUPS:
        return Judging("one node of each group, for every pod", "")
    if plugin.scope not in (NODE_OBJECT, NODE_ROW):
        advice = "declare `scope` if the answer depends on less"
        return Judging(EVERY_POD, advice + _rows(plugin))
    how = "nodes that changed"
    if plugin.scope is NODE_ROW:
        how += ", or their pods"
        if _has_own(plugin, Plugin, "amount_rules"):
            how = "a rule on amounts, in the kernel"
    if is_scorer and _scores_every_pod(plugin):
        how = f"in Filter {how}; in Score all nodes, for every pod" if is_filter else EVERY_POD
    return Judging(how, _advice(plugin))


def _scores_every_pod(plugin: type[Plugin]) -> bool:
    """Whether Score is called for every pod, whatever the scope: it may depend on what PreScore computes."""
    is_prepared = issubclass(plugin, PreScorePlugin) and not _has_own(plugin, Plugin, "settled")
    return is_prepared or _has_own(plugin, ScorePlugin, "normalize_rows")


def _unsettled(plugin: type[Plugin]) -> list[str]:
    """Advice about methods that are called for every pod for want of a declaration."""
    called = (PreFilterPlugin, PreScorePlugin, ReservePlugin, PermitPlugin, PreBindPlugin)
    points = [base.__name__.removesuffix("Plugin") for base in called if issubclass(plugin, base)]
    if not points or _has_own(plugin, Plugin, "settled"):
        return []
    return [f"declare `settled` if the spec says that {' and '.join(points)} need not be called"]


def _advice(plugin: type[Plugin]) -> str:
    advice = _unsettled(plugin)
    if not _has_own(plugin, Plugin, "spec_key"):
        advice.append("declare `spec_key` if it depends on the spec alone")
    return ("; ".join(advice) + _rows(plugin)).removeprefix("; ")


def _rows(plugin: type[Plugin]) -> str:
    """The missing declaration of a plugin that judges one node at a time."""
    lacking = [
        f"`{method}`"
        for base, method in ((FilterPlugin, "filter_rows"), (ScorePlugin, "score_rows"))
        if issubclass(plugin, base) and not _has_own(plugin, base, method)
    ]
    return f"; implement {' and '.join(lacking)}" if lacking else ""


def _has_own(plugin: type[Plugin], base: type[Plugin], method: str) -> bool:
    return getattr(plugin, method) is not getattr(base, method)
