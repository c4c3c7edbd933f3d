"""Use over time: series, means and peaks of a simulation with finite pods, and totals before and after."""

from typing import Any

import pytest

from bayplan.sim import Simulation
from bayplan.sim.use_over_time import UseSeries
from bayplan.testing.builders import make_node, make_pod

LASTS_A_MINUTE = {"bayplan.dev/duration": "60s"}


def series_of(*objects: Any) -> dict[str, UseSeries]:
    report = Simulation(objects).run()
    return {series.name: series for series in report.use_over_time()}


def test_use_follows_pods_that_come_and_end() -> None:
    pods = [make_pod(f"p{i}", cpu="2", annotations=LASTS_A_MINUTE) for i in range(2)]
    series = series_of(
        make_node("a", cpu="4"), *pods, make_pod("later", cpu="3", annotations=LASTS_A_MINUTE)
    )

    cpu = series["cpu"]
    assert cpu.values[0] == 1.0
    assert 0.75 in cpu.values, "the last pod had to wait"
    assert cpu.values[-1] == 0.0
    assert (cpu.peak, cpu.peak_at_s) == (1.0, 0.0)
    assert series["pending"].values == [1.0, 0.0]
    assert cpu.mean == pytest.approx((60 * 1.0 + 60 * 0.75) / cpu.end_s, rel=0.05)


def test_a_run_without_time_has_no_series() -> None:
    assert series_of(make_node("a"), make_pod("p")) == {}


@pytest.mark.parametrize(
    ("count", "samples"),
    [
        pytest.param(1, [0.5], id="the mean"),
        pytest.param(2, [1.0, 0.0], id="halves"),
        pytest.param(4, [1.0, 1.0, 0.0, 0.0], id="quarters"),
        pytest.param(5, [1.0, 1.0, 0.5, 0.0, 0.0], id="a change inside a part"),
    ],
)
def test_samples_are_means_of_equal_parts(count: int, samples: list[float]) -> None:
    series = UseSeries("cpu", [0.0, 30.0], [1.0, 0.0], 60.0)

    assert series.samples(count) == pytest.approx(samples)


def test_samples_of_many_short_steps_add_up_to_the_mean() -> None:
    times = [i * 7.3 for i in range(100)]
    series = UseSeries("cpu", times, [float(i % 5) for i in range(100)], 777.7)

    assert sum(series.samples(60)) / 60 == pytest.approx(series.mean)


def test_totals_count_nodes_that_come() -> None:
    report = Simulation([make_node("a", cpu="4"), make_pod("p", cpu="1")]).run()

    cpu = report.totals.after.of("cpu")
    assert (cpu.allocatable, cpu.used, cpu.free) == (4000, 1000, 3000)
    assert report.totals.before.of("cpu").used == 0
    assert report.totals.resources[:2] == ["cpu", "memory"]
    assert report.totals.after.of("pods").used == 1


def test_a_pod_that_is_deleted_while_it_waits_is_no_longer_pending() -> None:
    simulation = Simulation([make_node("a", cpu="1"), make_pod("large", cpu="5")])
    simulation.run()
    (waiting,) = simulation.cluster.list("Pod")
    simulation.expect(60.0, lambda: simulation.cluster.delete(waiting))

    report = simulation.run(until_s=120.0)

    pending = report.use_over_time()[-1]
    assert (pending.times_s, pending.values) == ([0.0, 60.0], [1.0, 0.0])
