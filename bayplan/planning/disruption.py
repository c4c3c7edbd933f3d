"""Disruption: the fields of pool documents that say when nodes may be taken away. They are Karpenter's."""

from __future__ import annotations

from typing import Any

import msgspec

from ..api.text.cron import parse_cron
from ..api.text.durations import parse_duration
from ..config.decode import Duration
from ..config.problems import Literally, Problems, one_of
from .pools import CONSOLIDATION_POLICIES, REASONS, WHEN_UNDERUTILIZED, NodeBudget

NEVER = "Never"


class BudgetFile(msgspec.Struct, frozen=True, rename="camel"):
    """A disruption budget."""

    nodes: Any = "10%"
    reasons: tuple[str, ...] = ()
    schedule: str = ""
    duration: Duration | None = None


class DisruptionFile(msgspec.Struct, frozen=True, rename="camel"):
    """When nodes may be taken away; Karpenter's fields."""

    consolidation_policy: str = WHEN_UNDERUTILIZED
    consolidate_after: str = "0s"
    budgets: tuple[BudgetFile, ...] | None = None


def read_disruption(file: DisruptionFile, path: str, problems: Problems) -> dict[str, Any]:
    """The fields of a pool that say when nodes may be taken away."""
    if file.consolidation_policy not in CONSOLIDATION_POLICIES:
        expected = one_of(CONSOLIDATION_POLICIES)
        problems.add(f"{path}.consolidationPolicy", expected, file.consolidation_policy)
    found: dict[str, Any] = {
        "consolidation_policy": file.consolidation_policy,
        "consolidate_after_s": read_limit(
            file.consolidate_after, f"{path}.consolidateAfter", problems
        ),
    }
    if file.budgets is not None:
        found["budgets"] = tuple(
            _budget(budget, f"{path}.budgets[{i}]", problems)
            for i, budget in enumerate(file.budgets)
        )
    return found


def read_limit(text: str, path: str, problems: Problems) -> float | None:
    """A duration in seconds; None for `Never`."""
    if text == NEVER:
        return None
    seconds = parse_duration(text)
    if seconds is None:
        problems.add(path, "a duration such as 30s, 720h or Never", text)
    return seconds


def _budget(file: BudgetFile, path: str, problems: Problems) -> NodeBudget:
    nodes = str(file.nodes)
    share = nodes.removesuffix("%")
    is_number = share.isascii() and share.isdigit() and not isinstance(file.nodes, bool)
    if not is_number or (nodes.endswith("%") and int(share) > 100):
        problems.add(f"{path}.nodes", "a number of nodes, or a share such as 10%", file.nodes)
        nodes = "0"
    for i, reason in enumerate(file.reasons):
        if reason not in REASONS:
            problems.add(f"{path}.reasons[{i}]", one_of(REASONS), reason)
    if bool(file.schedule) != (file.duration is not None):
        missing = "duration" if file.schedule else "schedule"
        problems.add(f"{path}.{missing}", "schedule and duration together", Literally("one"))
    if file.schedule:
        try:
            parse_cron(file.schedule)
        except ValueError:
            problems.add(f"{path}.schedule", "a schedule in the notation of cron", file.schedule)
    return NodeBudget(nodes, file.reasons, file.schedule, file.duration)
