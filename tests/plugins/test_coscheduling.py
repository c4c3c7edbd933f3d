"""Coscheduling: its status at each point, and the events that requeue refused pods."""

import re
from typing import Any

import pytest

from bayplan.api.custom import CustomObject, custom_kind
from bayplan.api.pod import Pod
from bayplan.api.pod_groups import CUSTOM_LABEL, MIN_AVAILABLE_LABEL, NAME_LABEL
from bayplan.api.wire.decode import build_from_tree
from bayplan.errors import InputError
from bayplan.framework import Code, Hint, typed_args
from bayplan.plugins.coscheduling import POD_GROUPS, Coscheduling, CoschedulingArgs
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler import gated_attempts
from bayplan.testing.builders import make_custom, make_node, make_pod
from tests.rig.scenarios import Scenario

PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}
GPU = "example.com/gpu"


def member(name: str, group: str = "g", needed: int | str = 2, **wishes: Any) -> Pod:
    labels = {NAME_LABEL: group, MIN_AVAILABLE_LABEL: str(needed)}
    return make_pod(name, labels=labels, **{"cpu": "1", **wishes})


def make_scenario(*objects: Any) -> Scenario:
    return Scenario(*(objects or (make_node("a", cpu="4"),)), profile=PROFILE)


def plugin_of(scenario: Scenario) -> Coscheduling:
    return scenario.plugin(Coscheduling)


def test_off_unless_enabled() -> None:
    scenario = Scenario(make_node("a"))
    scenario.add(member("p0"))

    scenario.run()

    assert scenario.part_of("p0") == "bound"


def test_a_pod_without_a_group_is_ignored() -> None:
    scenario = make_scenario()
    scenario.add(member("p0", needed=3), make_pod("single"))

    scenario.run()

    assert scenario.part_of("single") == "bound"


def test_pre_enqueue_says_how_many_are_missing() -> None:
    scenario = make_scenario()
    scenario.add(member("p0", needed=3), member("p1", needed=3))

    for attempt in gated_attempts(scenario.scheduler):
        assert attempt.status is not None
        assert attempt.status.code is Code.UnschedulableAndUnresolvable
        assert attempt.status.plugin == "Coscheduling"
    last = plugin_of(scenario).pre_enqueue(scenario.pod("p1"))
    assert last.reasons == ("group g needs 3 pods; 2 are there",)


@pytest.mark.parametrize("needed", ["", "0", "-3", "many"])
def test_an_invalid_number_counts_as_one(needed: str) -> None:
    scenario = make_scenario()
    scenario.add(member("p0", needed=needed))

    scenario.run()

    assert scenario.part_of("p0") == "bound"


def test_groups_of_the_same_name_in_two_namespaces_are_two() -> None:
    scenario = make_scenario()
    scenario.add(member("p0"), member("p1", namespace="other"))

    assert scenario.run() == []
    assert len(gated_attempts(scenario.scheduler)) == 2


def test_the_message_of_those_that_wait_for_their_turn() -> None:
    scenario = make_scenario()
    scenario.add(member("x0", "x"), member("x1", "x", gates=["later"]))
    scenario.run()
    scenario.add(member("y0", "y"), member("y1", "y"))
    scenario.run()

    (condition,) = scenario.pod("y0").status.conditions or ()
    assert "group x is being placed" in condition.message
    info = scenario.scheduler.queue.get(scenario.pod("y0"))
    assert info is not None
    assert info.unschedulable_plugins == {"Coscheduling"}


def test_the_messages_of_those_that_give_up_and_of_those_that_know_better() -> None:
    scenario = make_scenario(make_node("a", cpu="2"))
    scenario.add(*(member(f"p{number}", needed=3) for number in range(3)))

    scenario.settle()

    said = {event.note for number in range(3) for event in scenario.events_of(f"p{number}")}
    assert any("of group g finds no node" in note for note in said)
    assert any("group g did not fit, and nothing has changed since" in note for note in said)


def test_a_group_that_did_not_fit_is_tried_again_after_a_while() -> None:
    """Should something have changed that it cannot see."""
    scenario = make_scenario(make_node("a", cpu="2"))
    scenario.add(*(member(f"p{number}", needed=3) for number in range(3)))
    scenario.settle()
    before = len(scenario.events_of("p0"))

    scenario.advance(6 * 60)

    assert len(scenario.events_of("p0")) > before
    assert scenario.scheduler.is_settled


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda s: s.add(make_node("b", cpu="1")), id="a node comes"),
        pytest.param(lambda s: s.cluster.update(make_node("a", cpu="4")), id="a node grows"),
        pytest.param(
            lambda s: s.cluster.delete(s.pod("single")), id="a pod that is no member goes"
        ),
        pytest.param(lambda s: s.add(member("small", needed=3, cpu="0")), id="a member comes"),
        pytest.param(
            lambda s: s.change("p2", spec=make_pod(cpu="0").spec), id="a member asks for less"
        ),
    ],
)
def test_a_group_that_did_not_fit_is_tried_again_when_the_cluster_changed(change: Any) -> None:
    scenario = make_scenario(make_node("a", cpu="3"), make_pod("single", node_name="a", cpu="1"))
    scenario.add(*(member(f"p{number}", needed=3) for number in range(3)))
    scenario.settle()
    assert scenario.part_of("p0") == "unschedulable"

    change(scenario)
    scenario.settle()

    bound = [pod.name for pod in scenario.cluster.list("Pod") if pod.node_name]
    assert len([name for name in bound if name != "single"]) >= 3


# The queue

SORTING = {
    "plugins": {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
}


def make_pod_group(name: str, created: str, needed: int = 1) -> CustomObject:
    tree = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
        "spec": {"minMember": needed},
    }
    made = build_from_tree(custom_kind(POD_GROUPS), tree)
    assert isinstance(made, CustomObject)
    return made


def test_the_queue_is_sorted_by_priority_then_by_the_time_of_the_group() -> None:
    early = make_pod_group("early", "1999-12-31T00:00:00Z")
    late = make_pod_group("late", "1999-12-31T12:00:00Z")
    scenario = Scenario(make_node("a", cpu="9"), early, late, profile=SORTING)
    in_group = {name: {CUSTOM_LABEL: name} for name in ("early", "late")}
    scenario.add(
        make_pod("b"),
        make_pod("a"),
        make_pod("l", labels=in_group["late"]),
        make_pod("e1", labels=in_group["early"]),
        make_pod("e0", labels=in_group["early"]),
        make_pod("high", priority=1),
    )

    attempts = scenario.run()

    assert [each.pod.name for each in attempts] == ["high", "e0", "e1", "l", "a", "b"]


def test_a_group_that_did_not_fit_comes_after_those_that_wait_since_then() -> None:
    first = make_pod_group("first", "1999-12-31T00:00:00Z", needed=2)
    second = make_pod_group("second", "1999-12-31T12:00:00Z")
    scenario = Scenario(make_node("a", cpu="1"), first, second, profile=SORTING)
    scenario.add(*(make_pod(f"f{i}", labels={CUSTOM_LABEL: "first"}, cpu="1") for i in range(2)))
    scenario.run()
    scenario.advance(60)
    plugin = plugin_of(scenario)

    keys = [
        plugin.sort_key(QueuedPodInfo(make_pod("p", labels={CUSTOM_LABEL: name}), 0.0))
        for name in ("second", "first")
    ]

    assert keys == sorted(keys)


# Hints


@pytest.mark.parametrize(
    ("wishes", "gone", "expected"),
    [
        pytest.param({}, make_pod("x", node_name="a", cpu="1"), Hint.QUEUE, id="any other pod"),
        pytest.param({}, member("p9", node_name="a"), Hint.SKIP, id="one of its own"),
        pytest.param(
            {"requests": {GPU: 1}},
            make_pod("x", node_name="a", cpu="1"),
            Hint.SKIP,
            id="a pod without what it is short of",
        ),
        pytest.param(
            {"requests": {GPU: 1}},
            make_pod("x", node_name="a", requests={GPU: 1}),
            Hint.QUEUE,
            id="a pod with what it is short of",
        ),
        pytest.param({}, member("q9", "q", node_name="a"), Hint.QUEUE, id="of a gang, deleted"),
    ],
)
def test_hint_after_a_pod_left(wishes: dict[str, Any], gone: Pod, expected: Hint) -> None:
    scenario = make_scenario()
    (hint,) = (
        wanted.hint
        for wanted in plugin_of(scenario).events_to_register()
        if str(wanted.event).startswith("PodDelete")
    )

    assert hint is not None
    assert hint(member("p0", **wishes), gone, None) is expected


def test_what_another_gang_held_for_its_turn_is_no_news() -> None:
    scenario = make_scenario(make_node("a", cpu="2"))
    scenario.add(*(member(f"x{number}", "x", 3) for number in range(3)))
    scenario.settle()
    scenario.add(*(member(f"y{number}", "y", 3) for number in range(3)))

    attempts = scenario.settle()

    assert {attempt.pod.name[0] for attempt in attempts} == {"y"}


def test_hint_after_a_pod_came() -> None:
    scenario = make_scenario()
    (hint,) = (
        wanted.hint
        for wanted in plugin_of(scenario).events_to_register()
        if str(wanted.event) == "PodAdd"
    )

    assert hint is not None
    assert hint(member("p0"), None, member("p1")) is Hint.QUEUE
    assert hint(member("p0"), None, member("p1", "other")) is Hint.SKIP
    assert hint(member("p0"), None, make_pod("x")) is Hint.SKIP


# PodGroups of scheduling.x-k8s.io


def pod_group(needed: int, name: str = "g", **spec: Any) -> Any:
    return make_custom(POD_GROUPS, name, namespace="default", spec={"minMember": needed, **spec})


def of_pod_group(name: str, group: str = "g", **wishes: Any) -> Pod:
    return make_pod(name, labels={CUSTOM_LABEL: group}, **{"cpu": "1", **wishes})


def bound(scenario: Scenario, *names: str) -> list[bool]:
    return [scenario.part_of(name) == "bound" for name in names]


def test_a_pod_group_says_how_many_must_run_together() -> None:
    scenario = make_scenario(make_node("a", cpu="4"), pod_group(2))
    scenario.add(of_pod_group("p0"))
    scenario.run()
    assert bound(scenario, "p0") == [False]

    scenario.add(of_pod_group("p1"))
    scenario.run()

    assert bound(scenario, "p0", "p1") == [True, True]


def test_pods_wait_for_the_pod_group_that_they_name() -> None:
    scenario = make_scenario()
    scenario.add(of_pod_group("p0"), of_pod_group("p1"))
    scenario.run()
    status = plugin_of(scenario).pre_enqueue(scenario.pod("p0"))
    assert status.reasons == ("PodGroup g is not there",)

    scenario.add(pod_group(2, name="another"))
    assert not scenario.run()
    scenario.add(pod_group(2))
    scenario.run()

    assert bound(scenario, "p0", "p1") == [True, True]


def test_a_pod_group_counts_before_the_label_of_the_pod() -> None:
    scenario = make_scenario(make_node("a", cpu="4"), pod_group(3))
    scenario.add(member("p0", needed=2), member("p1", needed=2))
    scenario.run()
    assert bound(scenario, "p0", "p1") == [False, False]

    scenario.cluster.update(pod_group(2))
    scenario.run()

    assert bound(scenario, "p0", "p1") == [True, True]


def test_a_pod_group_that_did_not_fit_is_tried_again_when_it_needs_less() -> None:
    scenario = make_scenario(make_node("a", cpu="2"), pod_group(3))
    scenario.add(*(of_pod_group(f"p{i}") for i in range(3)))
    scenario.run()
    scenario.advance(20)
    assert bound(scenario, "p0", "p1", "p2") == [False, False, False]

    scenario.cluster.update(pod_group(2))
    scenario.settle()

    assert sum(bound(scenario, "p0", "p1", "p2")) == 2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(
            {"podGroupBackoffSeconds": 5},
            "args: podGroupBackoffSeconds: expected none, as a group that did not fit waits until "
            "the cluster has changed; got 5",
            id="no backoff",
        ),
        pytest.param({"podGroupRejectPercentage": 10}, "podGroupRejectPercentage: ", id="no share"),
        pytest.param({"permitWaitingTimeSeconds": -1}, "expected zero or more; got -1", id="less"),
        pytest.param({"permitWaitingTimeSeconds": 1, "permit_timeout_s": 1}, "both", id="both"),
        pytest.param({"kind": "OtherArgs"}, 'kind: expected CoschedulingArgs; got "', id="kind"),
        pytest.param({"permitWaitSeconds": 1}, "unknown field `permitWaitSeconds`", id="unknown"),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "CoschedulingArgs",
                "permitWaitingTimeSeconds": 10,
                "podGroupBackoffSeconds": 0,
            },
            "",
            id="those of scheduler-plugins",
        ),
    ],
)
def test_arguments(args: dict[str, Any], problem: str) -> None:
    if not problem:
        assert typed_args(CoschedulingArgs, args).timeout_s == 10
        return
    with pytest.raises(InputError, match=re.escape(problem)):
        typed_args(CoschedulingArgs, args)


@pytest.mark.parametrize(
    ("spec", "timeout_s"),
    [
        pytest.param({"scheduleTimeoutSeconds": 7}, 7, id="its own"),
        pytest.param({}, 60, id="that of the plugin"),
        pytest.param({"scheduleTimeoutSeconds": "soon"}, 60, id="not a number"),
    ],
)
def test_a_pod_group_says_how_long_members_wait(spec: dict[str, Any], timeout_s: float) -> None:
    scenario = make_scenario(make_node("a", cpu="4"), pod_group(2, **spec))
    gated = {"schedulingGates": [{"name": "later"}]}
    scenario.add(of_pod_group("p0"), of_pod_group("p1", spec=gated))
    scenario.run()

    scenario.advance(timeout_s - 1)
    assert scenario.part_of("p0") == "waiting"
    scenario.advance(2)
    assert scenario.part_of("p0") != "waiting"
