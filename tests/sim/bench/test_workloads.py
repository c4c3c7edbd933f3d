"""Bundled workloads: each runs to its end with the expected results."""

import pytest

from bayplan.sim.bench.cases import Case, own_cases
from bayplan.sim.bench.measurements import EventRun, PodRun, Run
from bayplan.sim.bench.op_executor import execute
from bayplan.sim.bench.workload import Request, make_workload

COMMANDS = ("simulate", "deployments", "plan-web", "plan-openb")
"""Workloads that run a command: see test_end_to_end.py and test_plans.py."""
CASES = [case for case in own_cases() if case.name not in COMMANDS]
NODES, PODS = 30, 200
SIZES = {"trace": (300, PODS), "placement": (NODES, 192), "group-preemption": (80, 64)}
"""The first nodes of the trace are small; groups have 64 pods, of which one fits on a node."""
GROUPED = ("pod-groups", "placement", "group-preemption")
"""Their rounds are those of groups."""


def run(case: Case, nodes: int = NODES, pods: int = PODS) -> list[Run]:
    return execute(make_workload(case, Request(case.name, nodes=nodes, pods=pods)))


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_every_measured_pod_is_placed(case: Case) -> None:
    runs = run(case, *SIZES.get(case.name, (NODES, PODS)))

    assert runs
    for measured in runs:
        assert measured.nodes >= NODES
        if isinstance(measured, PodRun):
            assert measured.placed == measured.pods > 0
            assert measured.rounds >= (1 if case.name in GROUPED else measured.placed)
            assert measured.pods_per_s > 0
            assert 0 < measured.p50_us <= measured.p99_us


@pytest.mark.parametrize(
    ("name", "nodes", "pods"),
    [
        pytest.param("basic", 5000, 10_000, id="basic"),
        pytest.param("big", 100_000, 10_000, id="a hundred thousand nodes"),
        pytest.param("daemonset", 15_000, 15_000, id="a pod for each of fifteen thousand nodes"),
        pytest.param("preemption", 5000, 5000, id="a preemptor for each of five thousand nodes"),
    ],
)
def test_a_case_has_its_own_size(name: str, nodes: int, pods: int) -> None:
    workload = make_workload(case_named(name), Request(name))

    assert workload.params["initNodes"] == nodes
    assert workload.params["measurePods"] == pods


def test_each_important_pod_preempts_three() -> None:
    (measured,) = run(case_named("preemption"), nodes=10)

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed, measured.rounds) == (10, 10, 20)


def test_infeasible_pods_count_only_in_time() -> None:
    (measured,) = run(case_named("unschedulable"), pods=50)

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed, measured.rounds) == (50, 50, 100)


def test_churned_pods_are_placed_but_not_counted() -> None:
    (measured,) = run(case_named("churn"), pods=100)

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed) == (100, 100)
    assert measured.rounds > 100


def test_an_event_requeues_only_the_pods_it_may_help() -> None:
    useless, useful = run(case_named("events"), nodes=20, pods=300)
    (crowd,) = run(case_named("events-for-all"), nodes=20, pods=50)

    assert isinstance(useless, EventRun)
    assert isinstance(useful, EventRun)
    assert isinstance(crowd, EventRun)
    assert (useless.waiting, useless.events, useless.moved_per_event) == (400, 1000, 0)
    assert 50 < useful.moved_per_event <= 100
    assert crowd.moved_per_event == 50


def test_the_trace_has_the_rows_of_its_tables() -> None:
    nodes, pods = (step.rows for step in case_named("trace").steps)

    assert (len(nodes), len(pods)) == (1213, 7064)
    assert sum(row["gpu"] for row in nodes) == 6212
    assert len({tuple(row.values()) for row in pods}) == 135
