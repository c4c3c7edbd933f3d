import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.observe.series import Distribution, Histogram, exponential_buckets

BOUNDS = [1.0, 2.0, 4.0]
numbers = st.lists(st.floats(min_value=0, max_value=8) | st.sampled_from([1.0, 2.0, 4.0]))


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        pytest.param(0.0, 0, id="nothing is in the first"),
        pytest.param(1.0, 0, id="a limit belongs to its bucket"),
        pytest.param(1.5, 1, id="between two limits"),
        pytest.param(4.0, 2, id="the last limit"),
        pytest.param(4.1, 3, id="beyond all limits"),
    ],
)
def test_observation_is_in_the_bucket_of_the_next_limit(value: float, bucket: int) -> None:
    histogram = Histogram(BOUNDS)

    histogram.observe(value)

    expected = [0, 0, 0, 0]
    expected[bucket] = 1
    assert histogram.read() == Distribution(expected, value)


@given(numbers, numbers)
def test_a_batch_counts_like_single_observations(first: list[float], second: list[float]) -> None:
    one_by_one, at_once = Histogram(BOUNDS), Histogram(BOUNDS)

    for value in (*first, *second):
        one_by_one.observe(value)
    at_once.observe_all(np.array(first))
    at_once.observe_all(np.array(second))

    assert at_once.read().counts == one_by_one.read().counts
    assert at_once.read().sum == pytest.approx(one_by_one.read().sum)


def test_nan_is_not_an_observation() -> None:
    histogram = Histogram(BOUNDS)

    histogram.observe_all(np.array([math.nan, 3.0, math.nan]))

    assert histogram.read() == Distribution([0, 0, 1, 0], 3.0)


def test_a_read_value_does_not_change() -> None:
    histogram = Histogram(BOUNDS)
    before = histogram.read()

    histogram.observe(1.0)

    assert before.count == 0


def test_buckets_are_multiplied_step_by_step() -> None:
    # 0.00001 * 1.5 ** 4 is 5.0625e-05; Go multiplies step by step and gets this value.
    assert exponential_buckets(0.00001, 1.5, 5)[-1] == 0.00001 * 1.5 * 1.5 * 1.5 * 1.5
    assert exponential_buckets(1, 2, 5) == [1, 2, 4, 8, 16]
