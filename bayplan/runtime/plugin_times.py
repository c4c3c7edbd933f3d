"""Plugin times: how long each plugin takes, in attempts that are sampled, and which plugins ran in an attempt.

Mirrors the run...Plugin functions of pkg/scheduler/framework/runtime/framework.go and instrumented_plugins.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from ..framework import Code, Plugin, Status
from ..observe.profile_metrics import ProfileMetrics
from ..observe.scheduler_metrics import SchedulerMetrics
from ..observe.series import Tally

P = ParamSpec("P")
R = TypeVar("R")


def timed(
    metrics: SchedulerMetrics, point: str, plugin: Plugin, method: Callable[P, R]
) -> Callable[P, R]:
    """`method` of a plugin, timed. An awaitable result is not timed."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        started = perf_counter()
        try:
            answer = method(*args, **kwargs)
        except Exception:  # counted, and raised again
            metrics.plugin_ended(plugin.name, point, Code.Error.name, perf_counter() - started)
            raise
        if not isawaitable(answer):
            metrics.plugin_ended(plugin.name, point, _status_of(answer), perf_counter() - started)
        return answer

    return call


def _status_of(answer: Any) -> str:
    """The name of the code in a plugin's result; scores and verdicts are a success."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    codes = [part.code for part in parts if isinstance(part, Status)]
    return (codes[0] if codes else Code.Success).name


class Evaluations:
    """Counts the attempts in which plugins ran at some extension points, by the set of plugins skipped."""

    def __init__(self, metrics: ProfileMetrics, points: Mapping[str, Iterable[Plugin]]) -> None:
        self._metrics = metrics
        self._points = {
            point: [plugin.name for plugin in plugins] for point, plugins in points.items()
        }
        self._tallies: dict[frozenset[str], Tally] = {}

    def count(self, skipped: Collection[str]) -> None:
        """Count an attempt in which all plugins but the `skipped` ran."""
        key = frozenset(skipped)
        tally = self._tallies.get(key)
        if tally is None:
            ran = {
                point: [name for name in names if name not in key]
                for point, names in self._points.items()
            }
            tally = self._tallies[key] = self._metrics.evaluations(ran)
        tally.count += 1
