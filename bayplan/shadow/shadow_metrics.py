"""Shadow metrics: the account as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..observe.families import Family, ReadCounter, ReadGauge
from .decision_account import DecisionAccount

Values = Mapping[tuple[str, ...], float]
PREFIX = "bayplan_shadow_"


COUNTERS: dict[str, tuple[str, Callable[[DecisionAccount], Values]]] = {
    "decisions_total{scheduler,verdict}": (
        "Decisions of other schedulers, by verdict.",
        lambda account: {
            (one.name, verdict): number
            for one in account.schedulers.values()
            for verdict, number in one.agreements.items()
        },
    ),
    "different_decisions_total{scheduler,plugin}": (
        "Decisions that differ, by the plugins that are the reason.",
        lambda account: {
            (one.name, plugin): number
            for one in account.schedulers.values()
            for plugin, number in one.different_by_plugin.items()
        },
    ),
    "points_lost_total{scheduler}": (
        "Points between the best node and the chosen one, in sampled decisions.",
        lambda account: {(one.name,): one.points_lost for one in account.schedulers.values()},
    ),
    "skipped_decisions_total{cause}": (
        "Decisions that were not judged, by cause.",
        lambda account: {(cause,): number for cause, number in account.skipped.items()},
    ),
    "waited_seconds_total": (
        "Time that pods waited beside a node with room.",
        lambda account: {(): account.waits.seconds},
    ),
}


def account_families(
    account: Callable[[], DecisionAccount], lag_s: Callable[[], float], open_: Callable[[], int]
) -> list[Family]:
    """Metrics that read the account when they are exposed."""
    counters = [
        ReadCounter(f"{PREFIX}{name}", text, source=lambda read=read: read(account()))  # type: ignore[misc]  # mypy: default of a lambda
        for name, (text, read) in COUNTERS.items()
    ]
    lag = "Age of the oldest change that was not followed yet."
    return [
        *counters,
        ReadGauge(f"{PREFIX}lag_seconds", lag, source=lambda: {(): lag_s()}),
        ReadGauge(
            f"{PREFIX}open_decisions",
            "Decisions whose verdict is open.",
            source=lambda: {(): open_()},
        ),
    ]
