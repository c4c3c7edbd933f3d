"""Collector: how often Python collects garbage while pods are scheduled.

The objects that an attempt creates either stay (the pod on its node, its event, its counts) or are freed at once by
their reference counts; cycles are rare. By default Python scans the young objects after every 700 new ones, and
regularly a whole cluster of a million objects that stay; that took a third of the time of a pod.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 100_000
"""Allocations between collections of the young generation; some thousand pods."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Exclude the existing objects from garbage collection and collect rarely, until the end of the block."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
