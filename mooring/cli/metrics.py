"""Metrics: what the scheduler counted and timed, in the text format of Prometheus."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ..observe import SchedulerMetrics
from .targets import STDOUT, open_target

WriteMetrics: TypeAlias = Callable[[SchedulerMetrics], None]


@contextmanager
def metrics_to(target: str | None) -> Iterator[WriteMetrics]:
    """What writes metrics to a file, which is opened at once, or to standard output for `-`; nowhere for None."""
    if target is None:
        yield lambda metrics: None
    elif target == STDOUT:
        yield lambda metrics: _write(sys.stdout.write, metrics)
    else:
        with open_target("--metrics", target) as stream:
            yield lambda metrics: _write(stream.write, metrics)


def _write(write: Callable[[str], int], metrics: SchedulerMetrics) -> None:
    write(metrics.render())
