"""GroupInquiry: it equals the scheduling cycle of the group, and leaves no trace."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.scheduler import GroupInquiry
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_gang, make_node, make_pod
from bayplan.trials import TrialCluster
from tests.rig.scenarios import Scenario

GATES = dict.fromkeys(
    ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling"), True
)
ZONE = "topology.kubernetes.io/zone"
NODES = [make_node(f"n{i}", zone=f"z{i % 6}", cpu="4") for i in range(12)]
GANGS = [
    pytest.param({"cpu": "1"}, id="fits"),
    pytest.param({"cpu": "4", "topology_key": ZONE}, id="fits in no domain"),
    pytest.param({"cpu": "1", "topology_key": ZONE}, id="fits in a domain"),
    pytest.param({"cpu": "9"}, id="fits on no node"),
]


@pytest.mark.parametrize(
    "tells_all", [pytest.param(True, id="all"), pytest.param(False, id="brief")]
)
@pytest.mark.parametrize("fields", GANGS)
def test_it_says_what_the_cycle_says(fields: dict[str, Any], tells_all: bool) -> None:
    group, *pods = make_gang("red", 4, **fields)
    scenario = Scenario(*NODES, group, *pods, feature_gates=GATES)

    inquiry = GroupInquiry(scenario.scheduler, pods)
    asked = inquiry.decide(tells_all=tells_all)
    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    told = attempt.group
    assert [m.attempt.pod.name for m in asked.result.members] == [
        m.attempt.pod.name for m in told.result.members
    ]
    assert [m.node_name for m in asked.result.members] == [m.node_name for m in told.result.members]
    assert asked.status == told.status


@pytest.mark.parametrize("fields", GANGS)
def test_it_leaves_no_trace(fields: dict[str, Any]) -> None:
    group, *pods = make_gang("red", 4, **fields)
    nominated = pods[0].replace(status=make_pod("x", nominated_node_name="n3").status)
    other = make_pod("other", cpu="1", nominated_node_name="n0")
    view = TrialCluster(
        [*NODES, group, nominated, *pods[1:], other], settings=Settings(feature_gates=GATES)
    )
    table, queue = view.table, view.scheduler.queue
    before = queue.nominator.nominated(), queue.pending(), table.requested["cpu"].tolist()

    waiting: list[Pod] = [pod for pod in view.pods() if pod.name != "other"]
    view.ask_group(waiting).decide()

    assert before[0]
    assert (queue.nominator.nominated(), queue.pending(), table.requested["cpu"].tolist()) == before
