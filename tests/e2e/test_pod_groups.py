"""Pod groups in the API: the recorded answers are those of a real kube-apiserver, and both servers take the scheduler's
writes.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.api.pod_groups import PodGroup, PodGroupCondition, PodGroupStatus
from bayplan.api.wire.decode import decode_object
from bayplan.kube.pod_statuses import group_status_patch
from tests.rig.live.api_cases import GATE_SETS, prepare_server, read_cases, run_case
from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.control_plane import real_client
from tests.rig.live.follower import Key, ListFollower

DATA = Path(__file__).resolve().parents[1] / "apiserver" / "registry"
CASES = read_cases(DATA / "pod_group_cases.yaml")
ANSWERS = json.loads((DATA / "pod_group_answers.json").read_text())
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


@pytest.mark.parametrize("gates", [pytest.param(name, id=f"gates {name}") for name in GATE_SETS])
def test_recorded_answers_are_those_of_kube_apiserver(gates: str, tmp_path: Path) -> None:
    """To record anew, write its result to pod_group_answers.json."""
    with real_client(tmp_path, GATE_SETS[gates]) as client:
        prepare_server(client)
        found = {case.name: run_case(client, case) for case in CASES if case.gates == gates}

    assert found == {case.name: ANSWERS[case.name] for case in CASES if case.gates == gates}


def condition(status: str, reason: str) -> PodGroupCondition:
    return PodGroupCondition(
        type="PodGroupScheduled",
        status=status,
        reason=reason,
        message="m",
        last_transition_time="2026-01-01T00:00:00Z",
    )


def write(cluster: ClusterUnderTest, group: PodGroup, *conditions: PodGroupCondition) -> Any:
    """Send the patch that `run` sends, and return the stored object."""
    changed = replace(group, status=PodGroupStatus(conditions=conditions))
    patch = group_status_patch(group, changed)
    assert patch is not None
    path = f"{cluster.path('PodGroup', group.name)}/status"
    return cluster.client.patch(path, msgspec.json.decode(patch), "strategic")


def test_the_condition_of_a_group_is_written(group_cluster: ClusterUnderTest) -> None:
    group = decode_object(group_cluster.make("PodGroup", "g", spec=GANG))
    assert isinstance(group, PodGroup)

    first = write(group_cluster, group, condition("False", "Unschedulable"))
    second = write(group_cluster, group, condition("True", "Scheduled"))

    assert [c["reason"] for c in first["status"]["conditions"]] == ["Unschedulable"]
    assert [c["reason"] for c in second["status"]["conditions"]] == ["Scheduled"]
    assert second["spec"]["schedulingPolicy"] == GANG["schedulingPolicy"]


def test_the_scheduler_says_when_a_gang_waits_and_when_it_is_placed(
    group_cluster: ClusterUnderTest,
) -> None:
    group_cluster.node("a", room={"cpu": "1"})
    group_cluster.start_scheduler()
    group_cluster.make("PodGroup", "g", spec=GANG)
    for name in ("one", "two"):
        group_cluster.pod(name, {"cpu": "1"}, schedulingGroup={"podGroupName": "g"})

    waiting = wait_condition(group_cluster, "False")
    group_cluster.node("b", room={"cpu": "1"})
    placed = wait_condition(group_cluster, "True")

    assert (waiting["reason"], placed["reason"]) == ("Unschedulable", "Scheduled")
    assert set(group_cluster.wait_all_bound(2).values()) == {"a", "b"}


def wait_condition(cluster: ClusterUnderTest, status: str) -> Any:
    """Wait until the condition of group g has this status, and return it."""

    def look(groups: dict[Key, Tree]) -> Any:
        group = groups.get((cluster.namespace, "g"), {})
        conditions = (group.get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["status"] == status), None)

    groups = ListFollower(cluster.client, cluster.path("PodGroup"))
    try:
        return groups.wait(look, f"PodGroupScheduled is {status}")
    finally:
        groups.stop()


def test_a_gang_with_a_topology_constraint_goes_to_one_rack(
    group_cluster: ClusterUnderTest,
) -> None:
    for name, rack in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("b1", "b")):
        room = {"cpu": "1" if name != "a1" else "100m"}
        group_cluster.node(name, room=room, labels={"example.com/rack": rack})
    group_cluster.start_scheduler()
    constraints = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
    group_cluster.make("PodGroup", "g", spec={**GANG, **constraints})
    for name in ("one", "two"):
        group_cluster.pod(name, {"cpu": "1"}, schedulingGroup={"podGroupName": "g"})

    assert set(group_cluster.wait_all_bound(2).values()) == {"b0", "b1"}


def test_a_gang_preempts_a_group_as_a_whole(group_cluster: ClusterUnderTest) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        group_cluster.make("PriorityClass", f"e2e-{name}", value=value)
    for name in ("a", "b"):
        group_cluster.node(name, room={"cpu": "2"})
    group_cluster.start_scheduler()
    group_cluster.make(
        "PodGroup",
        "low",
        spec={**GANG, "priorityClassName": "e2e-low", "disruptionMode": "PodGroup"},
    )
    group_cluster.make("PodGroup", "g", spec={**GANG, "priorityClassName": "e2e-high"})
    wishes: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
    for name in ("low-0", "low-1"):
        group_cluster.pod(
            name,
            {"cpu": "2"},
            schedulingGroup={"podGroupName": "low"},
            priorityClassName="e2e-low",
            **wishes,
        )
    group_cluster.wait_all_bound(2)

    for name in ("high-0", "high-1"):
        group_cluster.pod(
            name,
            {"cpu": "1"},
            schedulingGroup={"podGroupName": "g"},
            priorityClassName="e2e-high",
            **wishes,
        )

    assert {group_cluster.wait_bound(name) for name in ("high-0", "high-1")} <= {"a", "b"}
    for name in ("low-0", "low-1"):
        group_cluster.wait_gone(name)
