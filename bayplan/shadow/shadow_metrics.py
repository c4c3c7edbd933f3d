"""Shadow metrics: the account as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..observe.families import Family, ReadCounter, ReadGauge
from .decision_account import DecisionAccount

Values = Mapping[tuple[str, ...], float]


def account_families(
    account: Callable[[], DecisionAccount], lag_s: Callable[[], float], open_: Callable[[], int]
) -> list[Family]:
    """Metrics that read the account when they are exposed."""

    def decisions() -> Values:
        return {
            (one.name, verdict): number
            for one in account().schedulers.values()
            for verdict, number in one.agreements.items()
        }

    def different() -> Values:
        return {
            (one.name, plugin): number
            for one in account().schedulers.values()
            for plugin, number in one.different_by_plugin.items()
        }

    def points() -> Values:
        return {(one.name,): one.points_lost for one in account().schedulers.values()}

    name = "bayplan_shadow"
    return [
        ReadCounter(
            f"{name}_decisions_total",
            "Decisions of other schedulers, by verdict.",
            ("scheduler", "verdict"),
            decisions,
        ),
        ReadCounter(
            f"{name}_different_decisions_total",
            "Decisions that differ, by the plugins that are the reason.",
            ("scheduler", "plugin"),
            different,
        ),
        ReadCounter(
            f"{name}_points_lost_total",
            "Points between the best node and the chosen one, in sampled decisions.",
            ("scheduler",),
            points,
        ),
        ReadCounter(
            f"{name}_skipped_decisions_total",
            "Decisions that were not judged, by cause.",
            ("cause",),
            lambda: {(cause,): number for cause, number in account().skipped.items()},
        ),
        ReadCounter(
            f"{name}_waited_seconds_total",
            "Time that pods waited beside a node with room.",
            (),
            lambda: {(): account().waits.seconds},
        ),
        ReadGauge(
            f"{name}_lag_seconds",
            "Age of the oldest change that was not followed yet.",
            (),
            lambda: {(): lag_s()},
        ),
        ReadGauge(
            f"{name}_open_decisions",
            "Decisions whose verdict is open.",
            (),
            lambda: {(): open_()},
        ),
    ]
