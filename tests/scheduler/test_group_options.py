"""The options of pod groups that kube-scheduler does not have: each one off, as kube-scheduler does it, and on."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import GroupPreemptor
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import BayplanError
from bayplan.testing.builders import make_node, make_pod
from tests.rig.groups import group_scenario, make_member, make_pod_group
from tests.rig.scenarios import Scenario

BOTH_WAYS = {"GangScheduling": {"antiAffinityBothWays": True}}
WHOLE_GROUPS = {"GangScheduling": {"evictForWholeGroups": True}}
HOST = "kubernetes.io/hostname"


def avoiding(label: str) -> dict[str, Any]:
    """Required anti-affinity to pods with a label, on one node."""
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def plan(scenario: Scenario) -> list[str]:
    """The node of each member in one cycle of the group; empty for those that have none."""
    scenario.scheduler.schedule_one()
    group = scenario.ended[0].group
    assert group is not None, "the pods are members of a group"
    return [member.node_name for member in group.result.members]


def victims(scenario: Scenario) -> list[str]:
    return [name for what, name in scenario.seen if what == "preempted"]


# Anti-affinity


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param({}, ["a", "a"], id="one-sided, as in kube-scheduler"),
        pytest.param(BOTH_WAYS, ["a", ""], id="both ways"),
    ],
)
def test_anti_affinity_of_a_member_that_has_its_node(
    args: dict[str, Any], expected: list[str]
) -> None:
    """The first member has anti-affinity to pods like the second one, which has none."""
    scenario = group_scenario(make_node("a"), make_pod_group("g", 1), args=args)
    scenario.add(
        make_member("first", affinity=avoiding("second"), priority=10),
        make_member("second", labels={"app": "second"}),
    )

    assert plan(scenario) == expected


def test_anti_affinity_both_ways_leaves_room_on_other_nodes() -> None:
    scenario = group_scenario(
        make_node("a"), make_node("b", cpu="1"), make_pod_group("g", 2), args=BOTH_WAYS
    )
    scenario.add(
        make_member("first", affinity=avoiding("second"), priority=10, cpu="2"),
        make_member("second", labels={"app": "second"}, cpu="1"),
    )

    assert plan(scenario) == ["a", "b"]
    scenario.settle()
    assert [scenario.pod(name).node_name for name in ("first", "second")] == ["a", "b"]


def test_what_a_trial_shows_is_gone_after_it() -> None:
    """The first member fits, the gang does not: a pod that it would avoid can have the node."""
    scenario = group_scenario(make_node("a", cpu="2"), make_pod_group("g", 2), args=BOTH_WAYS)
    scenario.add(
        make_member("first", affinity=avoiding("other"), priority=10, cpu="1"),
        make_member("second", cpu="4"),
    )
    assert plan(scenario) == ["a", ""]

    scenario.add(make_pod("other", labels={"app": "other"}, cpu="1"))
    scenario.scheduler.schedule_one()

    assert scenario.pod("other").node_name == "a"


# Evictions


def full_nodes(args: dict[str, Any], min_count: int, **options: Any) -> Scenario:
    """Two full nodes, and a gang of which each member needs one of them."""
    return group_scenario(
        make_node("a", cpu="4"),
        make_node("b", cpu="4"),
        *(make_pod(f"low-{node}", cpu="4", node_name=node, priority=0) for node in ("a", "b")),
        make_pod_group("g", min_count),
        args=args,
        **options,
    )


@pytest.mark.parametrize("is_async", [True, False], ids=["asynchronous", "within the attempt"])
@pytest.mark.parametrize(
    ("args", "evicted"),
    [
        pytest.param({}, ["low-a", "low-b"], id="at once, as in kube-scheduler"),
        pytest.param(WHOLE_GROUPS, [], id="only for groups that then fit"),
    ],
)
def test_a_gang_that_does_not_fit_even_so(
    args: dict[str, Any], evicted: list[str], is_async: bool
) -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True, "SchedulerAsyncPreemption": is_async}
    scenario = full_nodes(args, 3, gates=gates)
    scenario.add(*(make_member(f"m{i}", cpu="4", priority=10) for i in range(3)))

    scenario.scheduler.schedule_one()

    assert sorted(victims(scenario)) == evicted
    left = {pod.name for pod in scenario.cluster.list("Pod") if pod.node_name}
    assert left == {"low-a", "low-b"} - set(evicted)
    assert all(not scenario.pod(f"m{i}").nominated_node_name for i in range(3))


@pytest.mark.parametrize("is_async", [True, False], ids=["asynchronous", "within the attempt"])
@pytest.mark.parametrize("args", [{}, WHOLE_GROUPS], ids=["at once", "for whole groups"])
def test_a_gang_that_fits_without_the_victims(args: dict[str, Any], is_async: bool) -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True, "SchedulerAsyncPreemption": is_async}
    scenario = full_nodes(args, 2, gates=gates)
    scenario.add(*(make_member(f"m{i}", cpu="4", priority=10) for i in range(2)))

    scenario.scheduler.schedule_one()
    assert sorted(victims(scenario)) == ["low-a", "low-b"]
    assert sorted(scenario.pod(f"m{i}").nominated_node_name for i in range(2)) == ["a", "b"]

    scenario.settle()
    assert sorted(scenario.pod(f"m{i}").node_name for i in range(2)) == ["a", "b"]


class SlowCluster(MemoryCluster):
    """A cluster in which victims have not left when the cycle ends."""

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        """The pod stays."""


@pytest.mark.parametrize(
    ("args", "nominated"),
    [
        pytest.param({}, "", id="no, as in kube-scheduler"),
        pytest.param(WHOLE_GROUPS, "a", id="yes"),
    ],
)
def test_members_after_a_preemption_use_what_its_victims_leave(
    args: dict[str, Any], nominated: str
) -> None:
    """The victim of the first member leaves room for both; the second one must not preempt for itself."""
    scenario = group_scenario(
        make_node("a", cpu="4"),
        make_pod("low", cpu="4", node_name="a", priority=0),
        make_pod_group("g", 2),
        args=args,
        cluster=SlowCluster(),
    )
    scenario.add(
        make_member("m0", cpu="2", priority=11),
        make_member("m1", cpu="2", priority=10, spec={"preemptionPolicy": "Never"}),
    )

    scenario.scheduler.schedule_one()

    assert victims(scenario) == ["low"]
    assert [scenario.pod(name).nominated_node_name for name in ("m0", "m1")] == [nominated] * 2


def test_victims_are_back_on_their_nodes_after_a_cycle() -> None:
    scenario = full_nodes(WHOLE_GROUPS, 3)
    scenario.add(*(make_member(f"m{i}", cpu="4", priority=10) for i in range(3)))
    scenario.scheduler.schedule_one()

    table = scenario.scheduler.cache.table
    there = {table.names[row]: [p.name for p in table.pods[row].values()] for row in range(2)}
    assert there == {"a": ["low-a"], "b": ["low-b"]}


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(BayplanError, match="unknown field `antiAffinity`"):
        group_scenario(args={"GangScheduling": {"antiAffinity": True}})
