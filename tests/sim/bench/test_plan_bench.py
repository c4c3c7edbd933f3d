"""Plan workloads: their parts, and a small one from the command to the figures."""

from pathlib import Path

import pytest

from bayplan.errors import BayplanError
from bayplan.sim.bench.cases import read_cases
from bayplan.sim.bench.end_to_end import run_plan
from bayplan.sim.bench.measurements import PlanRun
from bayplan.sim.bench.op_executor import execute
from bayplan.sim.bench.ops import PlanNodes
from bayplan.sim.bench.plan_workloads import (
    openb_pools,
    openb_workload,
    web_pools,
    web_workload,
)
from bayplan.sim.bench.runs import read_suite
from bayplan.sim.bench.workload import Request, make_workload

CASE = """\
- name: mine
  workloadTemplate:
  - {opcode: plan, workload: %s, seed: 1, deployments: 6, countParam: $measurePods, timeLimit: 2s}
  workloads: [{name: small, params: {measurePods: 20}}]
"""


@pytest.mark.parametrize("workload", ["web", "openb"])
def test_a_plan_is_measured_beside_first_fit_and_the_bound(tmp_path: Path, workload: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(CASE % workload)
    (case,) = read_cases(file)

    (run,) = execute(make_workload(case, Request("mine")))

    assert isinstance(run, PlanRun)
    assert run.nodes > 0
    assert 0 < run.bound <= run.price
    assert run.first_fit_price > 0
    assert run.saved == 1 - run.price / run.first_fit_price
    assert run.gap == run.price / run.bound - 1


def test_equal_seeds_give_equal_workloads_and_others_do_not() -> None:
    assert list(web_workload(3, 20, 100)) == list(web_workload(3, 20, 100))
    assert list(web_workload(3, 20, 100)) != list(web_workload(4, 20, 100))
    assert list(openb_workload(3, 50)) == list(openb_workload(3, 50))
    assert list(openb_workload(3, 50)) != list(openb_workload(4, 50))


def test_the_web_workload_has_daemons_spread_and_nodes_of_their_own() -> None:
    objects = list(web_workload(0, 200, 2000))
    specs = [o["spec"]["template"]["spec"] for o in objects if o["kind"] == "Deployment"]

    assert [o["kind"] for o in objects].count("DaemonSet") == 2
    assert len(specs) == 200
    assert sum("topologySpreadConstraints" in spec for spec in specs) == 67
    assert sum("affinity" in spec for spec in specs) == 20
    assert len(web_pools()["spec"]["nodeTypes"]) == 12


def test_openb_has_the_node_types_of_its_trace() -> None:
    types = openb_pools()["spec"]["nodeTypes"]

    assert len(types) == 15
    assert all(one["price"] > 0 for one in types)


def test_plans_run_only_when_they_are_named() -> None:
    suite = read_suite(None)

    assert "plan-web" not in {request.case for request in suite.requests(())}
    assert [request.case for request in suite.requests(["plan-web"])] == ["plan-web"] * 2


def test_a_plan_that_fails_says_what_the_command_said() -> None:
    with pytest.raises(BayplanError, match=r'mine: expected a plan; got .*--time-limit.*"never"'):
        run_plan("mine", PlanNodes(deployments=1, time_limit="never"), 1)
