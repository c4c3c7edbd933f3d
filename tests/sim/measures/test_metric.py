"""Metric: Student's t, confidence intervals, and differences in pairs."""

import pytest

from bayplan.sim.measures import Metric, PairedDifference
from bayplan.sim.measures.metric import t_probability, t_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (99, 1.9842)],
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-5)


def test_other_confidences() -> None:
    assert t_quantile(5, 0.99) == pytest.approx(4.0321, abs=5e-5)
    assert t_probability(0.0, 7) == 0


def test_the_interval_of_a_mean() -> None:
    metric = Metric("placed", (1.0, 2.0, 3.0))

    assert metric.margin == pytest.approx(4.3027 / 3**0.5, abs=1e-4)
    assert metric.to_dict()["interval"] == pytest.approx([2 - 2.484138, 2 + 2.484138], abs=1e-4)
    assert Metric("placed", (1.0,)).to_dict()["interval"] is None


@pytest.mark.parametrize(
    ("values", "is_significant"),
    [
        pytest.param((11.0, 21.1, 30.9), True, id="always one more, although seeds differ by ten"),
        pytest.param((12.0, 19.0, 31.0), False, id="sometimes more and sometimes less"),
        pytest.param((11.0, 21.0, 31.0), True, id="always the same difference"),
        pytest.param((10.0, 20.0, 30.0), False, id="equal"),
        pytest.param((10.0, 20.0, 30.0 + 1e-12), False, id="rounding of floats"),
    ],
)
def test_a_difference_is_judged_in_pairs(values: tuple[float, ...], is_significant: bool) -> None:
    first = Metric("pending", (10.0, 20.0, 30.0))

    found = PairedDifference.of(Metric("pending", values), first)

    assert found.is_significant is is_significant
    assert found.gain == -found.mean, "fewer pending pods are better"
