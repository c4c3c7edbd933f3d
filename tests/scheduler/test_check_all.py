"""alwaysCheckAllPredicates of a Policy: every filter judges every node."""

import json
from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.load import parse_config
from bayplan.scheduler import build_scheduler
from bayplan.testing.builders import make_node, make_pod


def policy(check_all: bool) -> dict[str, Any]:
    predicates = [{"name": "PodFitsResources"}, {"name": "PodToleratesNodeTaints"}]
    return {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": predicates,
        "priorities": [],
        "alwaysCheckAllPredicates": check_all,
    }


@pytest.mark.parametrize(
    ("check_all", "message"),
    [
        pytest.param(False, "2 Insufficient cpu.", id="the first refusal of a node is enough"),
        pytest.param(
            True,
            "1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="all of them are given",
        ),
    ],
)
def test_reasons_of_a_policy(check_all: bool, message: str) -> None:
    cluster = MemoryCluster()
    config = parse_config(json.dumps(policy(check_all)), "policy.json")
    scheduler = build_scheduler(config, cluster, clock=ManualClock())
    cluster.watch(scheduler)
    cluster.add(make_node("tainted", cpu="1", taints=["gpu:NoSchedule"]))
    cluster.add(make_node("plain", cpu="1"))
    cluster.add(make_pod("large", cpu="4"))

    attempt = scheduler.schedule_one()

    assert attempt is not None
    assert attempt.fit_error == f"0/2 nodes are available: {message}"
