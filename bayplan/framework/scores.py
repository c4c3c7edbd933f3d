"""Scores: the range of a score, and the arithmetic that several plugins share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..table import Ints

MIN_SCORE = 0
MAX_SCORE = 100
MAX_UTILIZATION = 100
SHAPE_SCALE = MAX_SCORE // 10  # the scores of a shape in a configuration go from 0 to 10


def scale_to_max(scores: Ints, reverse: bool = False) -> Ints:
    """Scale so that the highest score becomes MAX_SCORE; with `reverse`, subtract them from MAX_SCORE afterwards.

    Mirrors DefaultNormalizeScore of pkg/scheduler/framework/plugins/helper/normalize_score.go.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64) if reverse else scores
    scaled = divide(MAX_SCORE * scores, highest)
    return MAX_SCORE - scaled if reverse else scaled


def divide(numerator: Ints, denominator: int | Ints) -> Ints:
    """Integer division that truncates toward zero, as Go's does; `denominator` is positive."""
    if numerator.size and numerator.min() < 0:
        return np.where(numerator < 0, -(-numerator // denominator), numerator // denominator)
    quotient: Ints = numerator // denominator
    return quotient


def broken_line(shape: Sequence[tuple[int, int]], at: Ints) -> Ints:
    """int64 per entry of `at`: the height of the line through the (position, height) points of `shape`."""
    heights = np.full_like(at, shape[-1][1])
    for (left, low), (right, high) in reversed(list(pairwise(shape))):
        # A falling line gives negative numerators: divide truncates toward zero as Go does.
        inside = low + divide((high - low) * (at - left), right - left)
        heights = np.where(at <= right, inside, heights)
    return np.where(at <= shape[0][0], shape[0][1], heights)


def shape_heights(shape: Sequence[tuple[int, int]]) -> Ints:
    """int64 per whole percent of utilisation: the height of the line through the points of a configuration's shape."""
    points = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]
    return broken_line(points, np.arange(MAX_UTILIZATION + 1, dtype=np.int64))
