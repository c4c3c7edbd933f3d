"""Scoring: points for how a node would use its resources with the pod on it, in NumPy.

Mirrors pkg/scheduler/framework/plugins/noderesources/{resource_allocation,least_allocated,most_allocated,
requested_to_capacity_ratio,balanced_allocation}.go; alignment is ours. Amounts are int64 and wrap around as Go's do;
divisions truncate.

Dividing integers takes NumPy ten times as long as dividing floats, and floats do as well: for whole numbers a and b
with 0 <= a < 2**53 and 0 < b < 2**53, rounding a/b down gives the same before and after it is rounded to float64. Were
it otherwise, a/b would lie below a whole number q+1 and be rounded up to it. It lies at least 1/b below, and numbers
just below q+1 are rounded up only from within (q+1) * 2**-54; so b*(q+1) would be 2**54 or more. But b*q <= a, hence
b*(q+1) <= a+b < 2**54.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..table import AmountColumns, Bools, Ints, Rows
from .rules import AlignmentRule, BalanceRule, ScoreRule, ShareKind, ShareRule

Floats: TypeAlias = NDArray[np.float64]

DeviceUse: TypeAlias = Mapping[str, tuple[Ints, Ints]]
"""By resource, int64 per row: how many devices stand in for it, and how many of them are in use."""

MAX_SCORE = 100
MAX_EXACT = 2**53 // 128
"""Amounts below this are exact in float64, and so are a hundred times as much."""
ROUNDING = 1e-9
"""Tolerance for shares that sum to 1, in points."""


def rule_points(table: AmountColumns, rows: Rows, rule: ScoreRule) -> Ints:
    """int64 per row of `rows`: the points by a rule."""
    if isinstance(rule, ShareRule):
        return share_points(table, rows, rule)
    if isinstance(rule, BalanceRule):
        return _balance_points(table, rows, rule)
    return _alignment_points(table, rows, rule)


def share_points(
    table: AmountColumns, rows: Rows, rule: ShareRule, devices: DeviceUse | None = None
) -> Ints:
    """int64 per row of `rows`: the weighted mean of the points for each resource.

    `devices` stand in for resources on nodes without them: per row their number, and the number in use.
    """
    total = np.zeros(table.count(rows), dtype=np.int64)
    weight_sum = np.zeros_like(total)
    for resource, amount, weight in rule.parts:
        capacity = table.allocatable[resource][rows]
        used = table.scoring_usage[resource][rows]
        if devices and resource in devices:
            there, in_use = devices[resource]
            used = np.where((capacity == 0) & (there > 0), in_use, used)
            capacity = np.where(capacity == 0, there, capacity)
        points = _points(rule, used + amount, capacity)
        counts = (capacity > 0) & (points > 0) if rule.kind is ShareKind.RATIO else capacity > 0
        if not counts.all():
            total += np.where(counts, points, 0) * weight
            weight_sum += np.where(counts, weight, 0)
        else:
            total += points * weight if weight != 1 else points
            weight_sum += weight
    weight_sum = np.maximum(weight_sum, 1)
    if rule.kind is ShareKind.RATIO:  # rounds half up, where the others truncate
        return _divide(2 * total + weight_sum, 2 * weight_sum)
    return _divide(total, weight_sum)


def _points(rule: ShareRule, requested: Ints, capacity: Ints) -> Ints:
    """int64 per row: points for one resource; any number where the capacity is not positive."""
    if rule.kind is ShareKind.LEAST:
        return _percent(np.maximum(capacity - requested, 0), capacity)
    if rule.kind is ShareKind.MOST:
        return _percent(np.minimum(requested, capacity), capacity)
    assert rule.heights is not None, "a rule by ratio has heights"
    used = np.where(requested > capacity, 100, _percent(requested, capacity))
    heights: Ints = rule.heights[np.clip(used, 0, 100)]
    return heights


def _percent(part: Ints, whole: Ints) -> Ints:
    """`part` in hundredths of `whole`, cut; wherever `whole` is positive."""
    divisor = np.maximum(whole, 1)
    if part.size and part.min() >= 0 and part.max() < MAX_EXACT and divisor.max() < MAX_EXACT:
        return (part * float(MAX_SCORE) / divisor).astype(np.int64)
    return _divide(part * MAX_SCORE, divisor)


def _divide(numerator: Ints, denominator: Ints) -> Ints:
    """Integer division that truncates toward zero; `denominator` is positive."""
    if numerator.size and numerator.min() < 0:
        # The lowest int64 has no opposite: divide the magnitudes as unsigned numbers.
        size = np.abs(numerator).view(np.uint64) // denominator.view(np.uint64)
        return np.where(numerator < 0, -size.view(np.int64), size.view(np.int64))
    quotient: Ints = numerator // denominator
    return quotient


def _balance_points(table: AmountColumns, rows: Rows, rule: BalanceRule) -> Ints:
    """int64 per row of `rows`: 100 for even use of resources; of a change, 75 and more where the pod evens it out."""
    capacities = [table.allocatable[resource][rows] for resource, _ in rule.parts]
    used = [table.requested[resource][rows] for resource, _ in rule.parts]
    after = [before + amount for before, (_, amount) in zip(used, rule.parts, strict=True)]
    size = table.count(rows)
    if not rule.scores_change:
        return _balance(after, capacities, size)
    gain = _balance(after, capacities, size) - _balance(used, capacities, size)  # -50 to 50
    points: Ints = MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2
    return points


def _balance(used: list[Ints], capacities: list[Ints], size: int) -> Ints:
    """int64 per row: 100 when all resources are used to the same fraction, less the more they differ.

    The arithmetic is kept in upstream's order: the result is truncated, so the last bit of a float matters.
    """
    shares: list[Floats] = []
    present: list[Bools] = []
    for amount, capacity in zip(used, capacities, strict=True):
        present.append(capacity > 0)
        shares.append(np.minimum(amount / np.maximum(capacity, 1), 1.0))
    if len(shares) == 2:
        half = np.abs((shares[0] - shares[1]) / 2)
        even = ((1 - half) * MAX_SCORE).astype(np.int64)
        return np.where(present[0] & present[1], even, MAX_SCORE)
    number = np.zeros(size)
    for here in present:
        number += here
    deviation = _standard_deviation(shares, present, np.maximum(number, 1))
    pair = number == 2
    if pair.any():
        deviation = np.where(pair, _half_distance(shares, present), deviation)
    deviation = np.where(number < 2, 0.0, deviation)
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def _standard_deviation(shares: list[Floats], present: list[Bools], number: Floats) -> Floats:
    total = np.zeros_like(number)
    for share, here in zip(shares, present, strict=True):
        total = total + np.where(here, share, 0.0)
    mean = total / number
    squares = np.zeros_like(total)
    for share, here in zip(shares, present, strict=True):
        squares = squares + np.where(here, (share - mean) * (share - mean), 0.0)
    deviation: Floats = np.sqrt(squares / number)
    return deviation


def _half_distance(shares: list[Floats], present: list[Bools]) -> Floats:
    """Half the distance between the two shares that are present, on rows that have exactly two."""
    stacked = np.stack(shares)
    here = np.stack(present)
    highest = np.where(here, stacked, -np.inf).max(axis=0)
    lowest = np.where(here, stacked, np.inf).min(axis=0)
    distance: Floats = np.abs((highest - lowest) / 2)
    return distance


def _alignment_points(table: AmountColumns, rows: Rows, rule: AlignmentRule) -> Ints:
    """int64 per row of `rows`: 100 where both mixes are the same, 0 where they have nothing in common."""
    size = table.count(rows)
    all_wanted, all_free, common = np.zeros(size), np.zeros(size), np.zeros(size)
    mixes: list[tuple[Floats, Floats]] = []
    for resource, amount in rule.parts:
        capacity = table.allocatable[resource][rows]
        is_there, divisor = capacity > 0, np.maximum(capacity, 1)
        left = np.maximum(capacity - table.requested[resource][rows], 0)
        wanted = np.where(is_there, float(amount) / divisor, 0.0)
        free = np.where(is_there, left / divisor, 0.0)
        all_wanted, all_free = all_wanted + wanted, all_free + free
        mixes.append((wanted, free))
    counts = (all_wanted > 0) & (all_free > 0)
    all_wanted, all_free = np.where(counts, all_wanted, 1.0), np.where(counts, all_free, 1.0)
    for wanted, free in mixes:
        common = common + np.minimum(wanted / all_wanted, free / all_free)
    points: Ints = np.where(counts, common * MAX_SCORE + ROUNDING, 0.0).astype(np.int64)
    return points
