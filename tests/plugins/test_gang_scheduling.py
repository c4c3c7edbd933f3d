"""GangScheduling: its status at each point. Its hints are compared with the recorded ones elsewhere."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import SUCCESS, Code, CycleState
from bayplan.plugins.gang_scheduling.plugin import TIMEOUT_S, TOO_FEW, WAITING, GangScheduling
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.scenarios import Scenario

PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}


def member(name: str, group: str = "g", **wishes: Any) -> Pod:
    return make_pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **wishes)


def pod_group(needed: int | None, name: str = "g", namespace: str = "default") -> Any:
    policy = {"basic": {}} if needed is None else {"gang": {"minCount": needed}}
    return make_object("PodGroup", name, namespace=namespace, spec={"schedulingPolicy": policy})


def make_scenario(*objects: Any) -> tuple[Scenario, GangScheduling]:
    scenario = Scenario(make_node("a", cpu="2"), *objects, profile=PROFILE)
    return scenario, scenario.plugin(GangScheduling)


def test_off_unless_enabled() -> None:
    scenario = Scenario(make_node("a"))
    scenario.add(member("p"))

    scenario.run()

    assert scenario.part_of("p") == "bound"


@pytest.mark.parametrize(
    ("objects", "reasons"),
    [
        pytest.param(
            [],
            ('waiting for pods\'s pod group "g" to appear in scheduling queue',),
            id="without its group",
        ),
        pytest.param(
            [pod_group(1, namespace="other")],
            ('waiting for pods\'s pod group "g" to appear in scheduling queue',),
            id="with a group of another namespace",
        ),
        pytest.param([pod_group(2)], (TOO_FEW,), id="with too few others"),
        pytest.param([pod_group(1)], (), id="with enough"),
        pytest.param([pod_group(None)], (), id="of a group that is no gang"),
    ],
)
def test_pre_enqueue(objects: list[Any], reasons: tuple[str, ...]) -> None:
    scenario, plugin = make_scenario(*objects)
    scenario.add(member("p"))

    status = plugin.pre_enqueue(scenario.pod("p"))

    code = Code.UnschedulableAndUnresolvable if reasons else Code.Success
    assert (status.code, status.reasons) == (code, reasons)


def test_pods_without_a_group_pass() -> None:
    _, plugin = make_scenario()

    assert plugin.pre_enqueue(make_pod()) == SUCCESS
    assert plugin.permit(CycleState(), make_pod(), "a") == (SUCCESS, 0)


def test_permit_waits_until_enough_have_a_node_and_calls_the_others() -> None:
    scenario, plugin = make_scenario(pod_group(2))
    scenario.add(member("p0", gates=["later"]), member("p1"))

    (attempt,) = scenario.run()

    assert attempt.pod.name == "p1"
    assert scenario.part_of("p1") == "waiting"
    status, timeout_s = plugin.permit(CycleState(), scenario.pod("p1"), "a")
    assert (status.code, status.reasons, timeout_s) == (Code.Wait, (WAITING,), TIMEOUT_S)


def test_permit_brings_back_members_that_were_refused_at_once() -> None:
    scenario, _ = make_scenario(pod_group(2))
    scenario.add(member("big", cpu="3", priority=1), member("small", cpu="1"))

    scenario.scheduler.schedule_one()
    assert scenario.part_of("big") == "unschedulable"
    scenario.scheduler.schedule_one()

    assert scenario.part_of("small") == "waiting"
    assert scenario.part_of("big") == "active"


def test_permit_of_a_gang_whose_group_is_gone_is_an_error() -> None:
    scenario, plugin = make_scenario()

    status, _ = plugin.permit(CycleState(), member("p", node_name="a"), "a")

    assert status.code is Code.Error
    text = 'failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found'
    assert status.message == text
    assert scenario.scheduler.is_settled


def test_permit_of_a_group_that_is_no_gang() -> None:
    _, plugin = make_scenario(pod_group(None))

    assert plugin.permit(CycleState(), member("p", node_name="a"), "a") == (SUCCESS, 0)


def test_pods_that_run_already_count() -> None:
    scenario, _ = make_scenario(pod_group(3))
    scenario.add(member("r0", node_name="a"), member("r1", node_name="a"), member("p"))

    scenario.run()

    assert scenario.part_of("p") == "bound"
