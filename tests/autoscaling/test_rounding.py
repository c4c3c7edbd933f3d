"""Times of an autoscaler are those that the clock can show: else its alarm rings before the time, again and again."""

from typing import Any

import pytest

from bayplan.sim import Simulation

from .scaled import (
    GROUPS,
    KARPENTER,
    make_pool,
    make_timeline,
    make_type,
    make_workload,
    run_scaled,
)

MOST_ALARMS = 10_000


@pytest.fixture(autouse=True)
def _few_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that sets the same alarm for ever fails instead of hanging."""
    expect, count = Simulation.expect, 0

    def counted(simulation: Simulation, at_s: float, action: Any) -> None:
        nonlocal count
        count += 1
        assert count < MOST_ALARMS, f"the alarm at {at_s!r} is set again and again"
        expect(simulation, at_s, action)

    monkeypatch.setattr(Simulation, "expect", counted)


@pytest.mark.parametrize(
    "at_s",
    [
        pytest.param(1023.382868, id="a second later is above a microsecond by a rounding error"),
        pytest.param(2047.926647, id="the same above 2048"),
        pytest.param(1020.179571, id="ten seconds later is above a microsecond"),
        pytest.param(2046.160826, id="fifteen seconds later is above a microsecond"),
    ],
)
@pytest.mark.parametrize("options", [KARPENTER, GROUPS], ids=["karpenter", "cluster-autoscaler"])
def test_a_run_ends_when_times_are_between_two_microseconds(at_s: float, options: Any) -> None:
    objects = [
        make_workload("first", 1),
        make_workload("web", 0),
        make_timeline((f"{at_s}s", {"web": 3}), (f"{at_s + 900}s", {"web": 1})),
    ]

    report = run_scaled(objects, [make_pool(make_type("n", 2, 1.0))], options, until_s=7200)

    assert report.time_s == 7200
    assert not report.pending
