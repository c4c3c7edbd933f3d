"""Benchmarks: every workload runs to its end, and events move the pods they should."""

import pytest

from mooring.sim.bench import measure
from mooring.sim.bench_events import WAIT_FOR_TPU, measure_crowd, measure_events
from mooring.sim.workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_of_a_workload_is_placed(name: str) -> None:
    run = measure(name, nodes=30, pods=200)

    assert run.placed == run.pods == WORKLOADS[name].count(200)
    assert run.pods_per_s > 0


def test_an_event_moves_the_pods_it_may_help_and_no_others() -> None:
    useless, useful = measure_events(nodes=20, pods=300)

    assert useless.moved_per_event == 0
    assert WAIT_FOR_TPU / 2 < useful.moved_per_event <= WAIT_FOR_TPU
    assert measure_crowd(nodes=20, pods=50).moved_per_event == 50
