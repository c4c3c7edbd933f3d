"""Shadow metrics: the account as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..observe.families import Family, ReadCounter, ReadGauge
from .decision_account import DecisionAccount

Values = Mapping[tuple[str, ...], float]
PREFIX = "bayplan_shadow_"


def _decisions(account: DecisionAccount) -> Values:
    return {
        (one.name, verdict): number
        for one in account.schedulers.values()
        for verdict, number in one.agreements.items()
    }


def _different(account: DecisionAccount) -> Values:
    return {
        (one.name, plugin): number
        for one in account.schedulers.values()
        for plugin, number in one.different_by_plugin.items()
    }


def _points(account: DecisionAccount) -> Values:
    return {(one.name,): one.points_lost for one in account.schedulers.values()}


COUNTERS: tuple[tuple[str, str, tuple[str, ...], Callable[[DecisionAccount], Values]], ...] = (
    (
        "decisions_total",
        "Decisions of other schedulers, by verdict.",
        ("scheduler", "verdict"),
        _decisions,
    ),
    (
        "different_decisions_total",
        "Decisions that differ, by the plugins that are the reason.",
        ("scheduler", "plugin"),
        _different,
    ),
    (
        "points_lost_total",
        "Points between the best node and the chosen one, in sampled decisions.",
        ("scheduler",),
        _points,
    ),
    (
        "skipped_decisions_total",
        "Decisions that were not judged, by cause.",
        ("cause",),
        lambda account: {(cause,): number for cause, number in account.skipped.items()},
    ),
    (
        "waited_seconds_total",
        "Time that pods waited beside a node with room.",
        (),
        lambda account: {(): account.waits.seconds},
    ),
)


def account_families(
    account: Callable[[], DecisionAccount], lag_s: Callable[[], float], open_: Callable[[], int]
) -> list[Family]:
    """Metrics that read the account when they are exposed."""
    gauges = (
        ("lag_seconds", "Age of the oldest change that was not followed yet.", lag_s),
        ("open_decisions", "Decisions whose verdict is open.", open_),
    )
    return [
        *(
            ReadCounter(f"{PREFIX}{name}", text, labels, lambda read=read: read(account()))  # type: ignore[misc]  # mypy: default of a lambda
            for name, text, labels, read in COUNTERS
        ),
        *(
            ReadGauge(f"{PREFIX}{name}", text, (), lambda read=read: {(): read()})  # type: ignore[misc]  # mypy: default of a lambda
            for name, text, read in gauges
        ),
    ]
