"""Pods of a PodGroup are gated until the group and enough members exist."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.scheduler import gated_attempts
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.life.gang_scenario import CPU, nodes
from tests.rig.scenarios import Scenario

GANG_SCHEDULING = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}


# PodGroup objects


def grouped(name: str, number: int, **wishes: Any) -> Pod:
    spec = {"schedulingGroup": {"podGroupName": name}}
    return make_pod(f"{name}-{number}", spec=spec, **{"cpu": CPU, **wishes})


def pod_group(name: str, needed: int) -> Any:
    policy = {"gang": {"minCount": needed}}
    return make_object("PodGroup", name, namespace="default", spec={"schedulingPolicy": policy})


def make_scenario(*objects: Any) -> Scenario:
    return Scenario(*objects, profile=GANG_SCHEDULING)


def test_pods_are_gated_until_their_group_and_enough_of_them_exist() -> None:
    scenario = make_scenario(*nodes(1))
    scenario.add(grouped("g", 0), grouped("g", 1))
    assert scenario.settle() == []
    (held, _) = gated_attempts(scenario.scheduler)
    assert held.message == 'waiting for pods\'s pod group "g" to appear in scheduling queue'

    scenario.add(pod_group("g", 3))
    assert scenario.settle() == []
    (held, _) = gated_attempts(scenario.scheduler)
    assert held.message == "waiting for minCount pods from a gang to appear in scheduling queue"

    scenario.add(grouped("g", 2))
    scenario.settle()
    assert [scenario.part_of(f"g-{number}") for number in range(3)] == ["bound"] * 3


def test_they_wait_five_minutes_for_each_other() -> None:
    scenario = make_scenario(*nodes(1, cpu=2), pod_group("g", 3))
    scenario.add(*(grouped("g", number) for number in range(3)))
    scenario.run()
    parts = sorted(scenario.part_of(f"g-{number}") for number in range(3))
    assert parts == ["unschedulable", "waiting", "waiting"]

    scenario.advance(299)
    assert scenario.part_of("g-0") == "waiting"
    scenario.clock.advance(1)
    scenario.scheduler.run_timers()

    text = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    (event,) = scenario.events_of("g-0")
    assert text in event.note
    assert len(scenario.scheduler.waiting_pods) == 0
    assert scenario.scheduler.cache.pod_count == 0


def test_the_last_one_releases_all() -> None:
    scenario = make_scenario(*nodes(1, cpu=2), pod_group("g", 3))
    scenario.add(*(grouped("g", number) for number in range(3)))
    scenario.run()
    assert len(scenario.scheduler.waiting_pods) == 2

    scenario.add(make_node("more"))
    scenario.advance(2)

    assert [scenario.part_of(f"g-{number}") for number in range(3)] == ["bound"] * 3


def test_a_group_without_a_gang_policy_gates_no_pod() -> None:
    group = make_object(
        "PodGroup", "g", namespace="default", spec={"schedulingPolicy": {"basic": {}}}
    )
    scenario = make_scenario(*nodes(1), group)

    scenario.add(grouped("g", 0))
    scenario.settle()

    assert scenario.part_of("g-0") == "bound"
