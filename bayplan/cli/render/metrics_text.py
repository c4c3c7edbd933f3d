"""Metrics text: what the scheduler counted and timed, in the text format of Prometheus."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..options.output_files import STDOUT, whole_target

if TYPE_CHECKING:
    from ...observe import SchedulerMetrics

WriteMetrics: TypeAlias = "Callable[[SchedulerMetrics], None]"


@contextmanager
def metrics_to(target: str | None) -> Iterator[WriteMetrics]:
    """What writes metrics to a file, or to standard output for `-`; nowhere for None.

    A file that cannot be written is said at once; a run that fails leaves what was there.
    """
    if target is None:
        yield lambda metrics: None
    elif target == STDOUT:
        yield lambda metrics: _write(sys.stdout.write, metrics)
    else:
        with whole_target("--metrics", Path(target)) as file:
            yield lambda metrics: _write(file.write, metrics)


def _write(write: Callable[[str], int], metrics: SchedulerMetrics) -> None:
    write(metrics.render())
