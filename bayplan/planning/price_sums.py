"""Price sums: which prices a fleet can have at all. A bound rises to the next sum of prices of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

DIGITS = 6
"""Digits after the point in which prices are compared."""
MOST_STEPS = 20_000_000
TOLERANCE = 1e-7


def next_sum(bound: float, prices: Sequence[float]) -> float:
    """The least sum of any numbers of these prices that is not below the bound, or the bound where that takes long."""
    units = sorted({round(price * 10**DIGITS) for price in prices})
    exact = all(abs(price * 10**DIGITS - round(price * 10**DIGITS)) < 1e-3 for price in prices)
    if not units or not exact or bound <= 0:
        return bound
    step: int = math.gcd(*units)
    start = math.ceil(bound * (1 - TOLERANCE) * 10**DIGITS / step)
    sizes = [unit // step for unit in units]
    length = start + sizes[0] + 1
    if length > MOST_STEPS:
        return bound
    # A bit for each sum, counted in steps.
    sums, mask = 1, (1 << length) - 1
    for size in sizes:
        shift = size
        while shift < length:  # 1, 2, 4 ... more nodes of this price
            sums = (sums | sums << shift) & mask
            shift *= 2
    above = sums >> start
    found = start + (above & -above).bit_length() - 1
    raised: float = found * step / 10**DIGITS
    return max(bound, raised)
