"""The scheduling cycle of a pod group, in an embedded cluster. Decisions of kube-scheduler are in tests/conformance."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import PodGroup
from bayplan.errors import ApiError
from bayplan.framework import (
    Code,
)
from bayplan.scheduler.group_algorithm import SCHEDULED
from bayplan.scheduler.group_cycle import NOT_WITH_CONSTRAINTS
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.scenarios import Scenario

GANGS = {"GenericWorkload": True, "GangScheduling": True}
PLACES = {**GANGS, "TopologyAwareWorkloadScheduling": True}
PREEMPTING = {**GANGS, "WorkloadAwarePreemption": True}


def scenario(*objects: Any, gates: Mapping[str, bool] = GANGS, **options: Any) -> Scenario:
    """A scenario with the plugins that the gates add to the default ones."""
    names = ["GangScheduling"]
    if gates.get("TopologyAwareWorkloadScheduling"):
        names += ["TopologyPlacementGenerator", "PodGroupPodsCount"]
    enabled = [{"name": name} for name in names if name not in options.get("without", ())]
    options.pop("without", None)
    disabled = [{"name": name} for name in options.pop("disabled", ())]
    profile = {"plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}}}
    if "plugin_config" in options:
        profile["pluginConfig"] = options.pop("plugin_config")
    return Scenario(*objects, profile=profile, feature_gates=gates, **options)


def member(name: str, group: str = "g", **wishes: Any) -> Pod:
    wishes.setdefault("cpu", "1")
    return make_pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **wishes)


def gang(needed: int, name: str = "g", **spec: Any) -> Any:
    policy = {"schedulingPolicy": {"gang": {"minCount": needed}}}
    return make_object("PodGroup", name, namespace="default", spec={**policy, **spec})


def rack(name: str, number: str, cpu: str = "2") -> Any:
    return make_node(name, cpu=cpu, labels={"rack": number})


def places(cluster: Scenario, *names: str) -> list[str]:
    return [cluster.pod(name).node_name for name in names]


def condition_of(cluster: Scenario, name: str = "g") -> Any:
    group: PodGroup = cluster.cluster.get("PodGroup", "default", name)
    return next((c for c in group.status.conditions or () if c.type == SCHEDULED), None)


def test_all_members_are_bound_or_none() -> None:
    cluster = scenario(make_node("a", cpu="2"), gang(3))
    cluster.add(member("p0"), member("p1"), member("p2"))

    cluster.run()

    assert places(cluster, "p0", "p1", "p2") == ["", "", ""]
    assert cluster.scheduler.cache.pod_count == 0
    assert condition_of(cluster).status == "False"

    cluster.add(make_node("b", cpu="2"))
    cluster.settle()

    assert sorted(places(cluster, "p0", "p1", "p2")) == ["a", "a", "b"]
    assert condition_of(cluster).status == "True"


def test_a_gang_that_waits_holds_nothing_that_another_needs() -> None:
    cluster = scenario(make_node("a", cpu="4"), gang(3, "red"), gang(3, "blue"))
    for number in range(3):
        cluster.add(member(f"red-{number}", "red"), member(f"blue-{number}", "blue"))

    cluster.advance(30)

    groups = [{places(cluster, f"{name}-{i}")[0] for i in range(3)} for name in ("red", "blue")]
    assert sorted(groups, key=sorted) == [{""}, {"a"}]
    assert cluster.scheduler.cache.pod_count == 3


def test_members_beyond_the_minimum_come_along_if_they_fit() -> None:
    cluster = scenario(make_node("a", cpu="3"), gang(2))
    cluster.add(member("p0"), member("p1"), member("p2", cpu="3", priority=-1))

    cluster.run()

    assert places(cluster, "p0", "p1", "p2") == ["a", "a", ""]
    (failed,) = [a for a in cluster.ended if a.pod.name == "p2" and a.number == 1]
    assert "Insufficient cpu" in failed.message
    assert failed.group.attempts[-1] is failed


def test_members_of_a_basic_group_need_not_wait_for_each_other() -> None:
    group = make_object(
        "PodGroup", "g", namespace="default", spec={"schedulingPolicy": {"basic": {}}}
    )
    cluster = scenario(make_node("a", cpu="1"), group)
    cluster.add(member("p0"), member("p1"))

    cluster.run()

    assert places(cluster, "p0", "p1") == ["a", ""]
    assert condition_of(cluster).status == "True"


def test_a_condition_that_is_true_stays_so() -> None:
    cluster = scenario(make_node("a", cpu="2"), gang(2))
    cluster.add(member("p0"), member("p1"))
    cluster.run()
    before = condition_of(cluster)

    cluster.add(member("late"))
    cluster.run()

    assert places(cluster, "late") == [""]
    assert condition_of(cluster) == before
    assert before.last_transition_time is not None


def test_members_being_deleted_leave_the_queue() -> None:
    cluster = scenario(make_node("a", cpu="4"), gang(1))
    cluster.add(member("p0"), member("going", terminating=True))

    cluster.run()

    assert places(cluster, "p0", "going") == ["a", ""]
    assert cluster.scheduler.queue.get(cluster.pod("going")) is None
    assert not len(cluster.scheduler.queue.in_flight)


def test_a_group_goes_to_one_domain() -> None:
    cluster = scenario(
        rack("a0", "a"),
        rack("b0", "b"),
        rack("b1", "b"),
        gang(3, schedulingConstraints={"topology": [{"key": "rack"}]}),
        gates=PLACES,
    )
    cluster.add(member("p0"), member("p1"), member("p2"))

    (attempt,) = cluster.run()

    assert set(places(cluster, "p0", "p1", "p2")) == {"b0", "b1"}
    assert attempt.group.chosen.name == "b"
    tried = {
        trial.placement.name: trial.result.status.message for trial in attempt.group.placements
    }
    assert tried == {"a": "pod group is unschedulable", "b": ""}


def test_more_members_come_to_the_domain_of_the_first() -> None:
    cluster = scenario(
        rack("a0", "a", "8"),
        rack("b0", "b", "2"),
        make_pod("there", node_name="b0", spec={"schedulingGroup": {"podGroupName": "g"}}),
        gang(1, schedulingConstraints={"topology": [{"key": "rack"}]}),
        gates=PLACES,
    )
    cluster.add(member("p0"))

    cluster.run()

    assert places(cluster, "p0") == ["b0"]


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        pytest.param("Pod", ["low1"], id="single pods of a group are preempted"),
        pytest.param("PodGroup", [], id="a group is preempted as a whole"),
    ],
)
def test_a_group_preempts_for_all_of_its_members(mode: str, left: list[str]) -> None:
    low = [
        make_pod(
            f"low{i}",
            node_name="a",
            cpu="2",
            priority=1,
            status={"startTime": f"2026-04-01T00:00:0{i}Z", "phase": "Running"},
            spec={"schedulingGroup": {"podGroupName": "low"}, "terminationGracePeriodSeconds": 0},
        )
        for i in (1, 2)
    ]
    cluster = scenario(
        make_node("a", cpu="4"),
        gang(1, "low", disruptionMode=mode, priority=1),
        gang(2, priority=10),
        *low,
        gates=PREEMPTING,
    )
    cluster.add(member("p0", priority=10), member("p1", priority=10))

    cluster.settle()

    assert places(cluster, "p0", "p1") == ["a", "a"]
    names = {pod.name for pod in cluster.cluster.list("Pod")}
    assert sorted(names - {"p0", "p1"}) == left
    notes = [event.note for event in cluster.cluster.events if event.reason == "Preempted"]
    uid = cluster.cluster.get("PodGroup", "default", "g").uid
    assert set(notes) == {f"Preempted by podgroup {uid} on node cluster"}


def test_victims_are_evicted_when_all_members_were_tried() -> None:
    victims = [
        make_pod(f"low{i}", node_name=f"n{i}", cpu="2", spec={"terminationGracePeriodSeconds": 0})
        for i in range(2)
    ]
    cluster = scenario(make_node("n0", cpu="2"), make_node("n1", cpu="2"), gang(2), *victims)
    cluster.add(member("p0", cpu="2", priority=5), member("p1", cpu="2", priority=5))

    (attempt, *_) = cluster.run()

    nominated = [a.nominated_node_name for a in attempt.group.attempts]
    assert sorted(nominated, key=str) == ["n0", "n1"]  # not both on the node that was freed first
    cluster.settle()
    assert sorted(places(cluster, "p0", "p1")) == ["n0", "n1"]


def test_the_cycles_of_groups_are_counted() -> None:
    cluster = scenario(make_node("a", cpu="2"), gang(2), gang(9, "h"))
    cluster.add(member("p0"), member("p1"), *(member(f"h{i}", "h") for i in range(9)))

    cluster.run()

    counts = cluster.scheduler.metrics.group_attempts.source()
    assert counts["scheduled", "default-scheduler"] == 1
    assert counts["unschedulable", "default-scheduler"] >= 1


def test_a_group_that_does_not_fit_is_not_tried_again_before_something_changes() -> None:
    cluster = scenario(make_node("a", cpu="1"), gang(2))
    cluster.add(member("p0"), member("p1"))

    assert len(cluster.run()) <= 2  # its condition is a change, too
    assert cluster.run() == []
    cluster.add(make_node("b", cpu="1"))
    cluster.run()

    assert sorted(places(cluster, "p0", "p1")) == ["a", "b"]


def test_a_member_whose_gates_go_away_is_tried_after_those_that_were_there() -> None:
    cluster = scenario(
        make_node("a", cpu="4"),
        gang(1),
        gates={"GenericWorkload": True},
        without=["GangScheduling"],
    )
    cluster.add(member("p0", gates=["example.com/wait"]), member("p1"))
    cluster.change("p0", spec=replace(cluster.pod("p0").spec, scheduling_gates=None))

    (attempt, *_) = cluster.run()

    assert [one.pod.name for one in attempt.group.attempts] == ["p1", "p0"]


def rivalled() -> Scenario:
    """A member of a group evicts a pod on a node that a pod of a lower priority is nominated to."""
    cluster = scenario(
        make_node("a", cpu="6"),
        make_pod("victim", node_name="a", cpu="3", priority=1),
        gang(1),
    )
    cluster.add(
        make_pod("rival", cpu="7", priority=5, host_ports=[80], nominated_node_name="a"),
        member("p0", cpu="4", priority=10),
        member("p1", cpu="0", priority=3, host_ports=[80]),
    )
    return cluster


def test_members_see_nominations_that_one_before_them_takes_away() -> None:
    cluster = rivalled()

    (attempt, *_) = cluster.run()

    first, second = attempt.group.attempts
    assert first.nominated_node_name == "a"
    assert second.unschedulable_plugins == {"NodePorts"}
    assert cluster.pod("rival").nominated_node_name == ""


def test_a_nomination_that_cannot_be_cleared_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = rivalled()

    def refuse(pod: Pod) -> None:
        raise ApiError(f"{pod.key} cannot be changed")

    monkeypatch.setattr(cluster.cluster, "clear_nomination", refuse)

    (attempt, *_) = cluster.run()

    assert attempt.group.attempts[0].nominated_node_name == "a"
    (message,) = caplog.messages
    assert "node a: cannot clear nominations" in message
    assert "default/rival cannot be changed" in message


def test_a_group_that_lacks_members_evicts_no_pods() -> None:
    held = [member(f"held{i}", gates=["example.com/wait"], priority=10) for i in range(2)]
    cluster = scenario(
        make_node("a", cpu="4"),
        make_pod("low", node_name="a", cpu="1", priority=1),
        gang(3, priority=10),
        gates=PREEMPTING,
    )
    cluster.add(*held, member("p0", priority=10))

    (attempt, *_) = cluster.run()

    assert attempt.group.preemption.status.code is Code.Unschedulable
    assert not cluster.pod("low").is_terminating
    assert cluster.pod("p0").nominated_node_name == ""


def test_no_pods_are_evicted_for_a_group_with_constraints_even_where_these_have_no_effect() -> None:
    """A PodGroup that was stored with the gate TopologyAwareWorkloadScheduling on, and the gate is off."""
    cluster = scenario(
        make_node("a", cpu="4"),
        make_pod("low", node_name="a", cpu="4", priority=1),
        gang(1, priority=10, schedulingConstraints={"topology": [{"key": "rack"}]}),
        gates=PREEMPTING,
    )
    cluster.add(member("p0", priority=10))

    (attempt, *_) = cluster.run()

    assert attempt.group.preemption.status.message == NOT_WITH_CONSTRAINTS
    assert not cluster.pod("low").is_terminating


def test_what_a_node_lacks_is_not_in_use_on_it() -> None:
    """A pod that requests a resource its node lacks, such as one bound by hand, does not make the placement fuller."""
    gpu = "example.com/gpu"
    scoring = {"type": "MostAllocated", "resources": [{"name": gpu, "weight": 1}]}
    cluster = scenario(
        make_node("a", cpu="4", extended={gpu: 2}, labels={"rack": "1"}),
        make_node("b", cpu="4", labels={"rack": "1"}),
        make_node("c", cpu="4", extended={gpu: 4}, labels={"rack": "2"}),
        make_pod("by-hand", node_name="b", requests={gpu: 2}),
        make_pod("there", node_name="c", requests={gpu: 2}),
        gang(1, schedulingConstraints={"topology": [{"key": "rack"}]}),
        gates=PLACES,
        plugin_config=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}],
    )
    cluster.add(member("p0", requests={gpu: 1}))

    cluster.run()

    assert places(cluster, "p0") == ["c"]  # three of four, rather than one of two
