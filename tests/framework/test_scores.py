"""Scores: normalisation and division as Go does them."""

import numpy as np
import pytest

from bayplan.framework import scale_to_max
from bayplan.framework.scores import divide


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("raw", "reverse", "scaled"),
    [
        pytest.param([0, 1, 2, 3], False, [0, 33, 66, 100], id="the highest becomes 100"),
        pytest.param([0, 1, 2, 3], True, [100, 67, 34, 0], id="reversed after truncating"),
        pytest.param([0, 0], False, [0, 0], id="all zero"),
        pytest.param([0, 0], True, [100, 100], id="all zero, reversed"),
        pytest.param([7], False, [100], id="one node"),
        pytest.param([-5, -1], False, [-5, -1], id="a highest below zero counts as zero"),
        pytest.param([-1, 3], False, [-33, 100], id="negative ones truncate toward zero"),
        pytest.param([], True, [], id="no nodes"),
    ],
)
def test_scale_to_max(raw: list[int], reverse: bool, scaled: list[int]) -> None:
    found = scale_to_max(ints(*raw), reverse=reverse)

    assert found.tolist() == scaled
    assert found.dtype == np.int64


def test_scale_to_max_leaves_the_raw_scores_alone() -> None:
    raw = ints(1, 2)

    scale_to_max(raw, reverse=True)

    assert raw.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("numerator", "denominator", "quotient"),
    [
        pytest.param([7, 8, 0], 4, [1, 2, 0], id="positive"),
        pytest.param([-7, -8, 7], 4, [-1, -2, 1], id="negative ones truncate toward zero"),
        pytest.param([-1], 2, [0], id="minus a half is zero"),
        pytest.param([], 3, [], id="nothing"),
    ],
)
def test_divide(numerator: list[int], denominator: int, quotient: list[int]) -> None:
    assert divide(ints(*numerator), denominator).tolist() == quotient


def test_divide_by_one_denominator_per_row() -> None:
    assert divide(ints(-7, 7), ints(2, 3)).tolist() == [-3, 2]
