"""Pool rows: the minimum, the maximum and the limits of pools as rows of a linear program, all of the form `>=`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fleet import NodeOption, all_pools


@dataclass(frozen=True, slots=True)
class PoolRow:
    """`per_node @ nodes >= least`."""

    per_node: NDArray[np.float64]
    """float64 per option: the coefficient of one node."""
    least: float


def pool_rows(options: Sequence[NodeOption]) -> Iterator[PoolRow]:
    """A row for each minimum, maximum and limit."""
    for pool in all_pools(options):
        member = np.array([one.pool is pool for one in options], dtype=float)
        if pool.minimum:
            yield PoolRow(member, float(pool.minimum))
        if pool.maximum is not None:
            yield PoolRow(-member, -float(pool.maximum))
        for name, limit in pool.limits.items():
            sizes = [one.type.capacity.get(name, 0) for one in options]
            scale = max(float(limit), 1.0)
            yield PoolRow(-member * np.array(sizes, dtype=float) / scale, -limit / scale)
