"""Collector: how often Python collects garbage while pods are scheduled.

Whatever a pod leaves behind is kept (the pod on its node, its event, its counts) or freed at once, by reference count:
cycles are rare. By default Python goes through the young objects after every 700 new ones, and again and again through
a cluster of a million objects that stay; that took a third of the time of a pod.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 100_000
"""Allocations between collections of the young generation; some thousand pods."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Exclude the existing objects from garbage collection, and collect seldom; afterwards as before."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
