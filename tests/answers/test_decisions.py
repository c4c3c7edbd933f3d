"""Decisions: recorded decisions are judged in the state of the cluster in which they were made."""

import random
from typing import Any

import pytest

from bayplan.answers.decisions import DecisionFollower
from bayplan.answers.judged_decision import JudgedDecision
from bayplan.api.pod import Pod
from bayplan.scheduler import RandomTies
from bayplan.scheduler.assessment import choose
from bayplan.sim.replay_report import ReplayVerdict
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster

SMALL, LARGE = make_node("small", cpu="4"), make_node("large", cpu="16")
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
Event = tuple[float, Any]
WINDOW = 24
"""Bindings that are under way at the same time."""


def pod(name: str, node: str = "", **more: Any) -> Pod:
    more.setdefault("cpu", "1")
    return make_pod(name, uid=f"uid-{name}", node_name=node, **more)


def follow(objects: list[Any], events: list[Event]) -> DecisionFollower:
    follower = DecisionFollower(TrialCluster(objects))
    for at_s, obj in events:
        is_deleted = isinstance(obj, tuple)
        follower.take(at_s, obj[0] if is_deleted else obj, is_deleted=is_deleted)
    follower.finish(1000.0)
    return follower


def judge(objects: list[Any], events: list[Event]) -> list[JudgedDecision]:
    return follow(objects, events).decisions


def verdicts(decisions: list[JudgedDecision]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.verdict.value) for one in decisions]


def test_every_verdict() -> None:
    decisions = judge(
        [SMALL, LARGE],
        [
            (1.0, pod("best")),
            (1.1, pod("best", "large")),
            (20.0, pod("elsewhere")),
            (20.1, pod("elsewhere", "small")),
            (40.0, pod("too-big", cpu="64")),
            (40.1, pod("too-big", cpu="64", status=REFUSED)),
            (60.0, pod("forgotten", status=REFUSED)),
            (60.1, pod("forgotten", status={"phase": "Pending", **REFUSED})),
            (80.0, pod("squeezed", cpu="32")),
            (80.1, pod("squeezed", "large", cpu="32")),
            (100.0, pod("late")),
        ],
    )

    assert verdicts(decisions) == [
        ("best", "same"),
        ("elsewhere", "other node"),
        ("too-big", "pending"),
        ("forgotten", "pending then"),
        ("squeezed", "pending here"),
        ("late", "undecided"),
    ]
    other = decisions[1].assessment
    assert other is not None
    assert (other.rank, other.feasible_nodes) == (2, 2)
    assert other.behind[0][0] == "NodeResourcesFit"
    squeezed = decisions[4].assessment
    assert squeezed is not None
    assert [status.plugin for status in squeezed.refusals] == ["NodeResourcesFit"]


def test_decisions_do_not_follow_from_each_other() -> None:
    """After a decision that differs, the next one is judged in the recorded state."""
    decisions = judge(
        [make_node("a", cpu="4"), make_node("b", cpu="4")],
        [
            (1.0, pod("p0", cpu="2")),
            (1.1, pod("p0", "b", cpu="2")),
            (20.0, pod("p1", cpu="2")),
            (20.1, pod("p1", "a", cpu="2")),
        ],
    )

    assert {one.verdict for one in decisions} <= {ReplayVerdict.SAME, ReplayVerdict.EQUAL}
    assert decisions[0].assessment is not None
    assert decisions[0].assessment.best_nodes == 2
    assert decisions[1].assessment is not None
    assert decisions[1].assessment.best_nodes == 1


def test_an_assumed_pod_explains_a_decision() -> None:
    first, second = pod("first", cpu="3"), pod("second", cpu="2")
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="6")]
    late = [
        (1.0, first),
        (1.01, second),
        (1.05, pod("second", "b", cpu="2")),
        (1.06, pod("first", "a", cpu="3")),
    ]

    explained = judge(nodes, late)
    alone = judge(nodes, [event for event in late if event[1].name == "second"])

    assert verdicts(explained) == [("second", "same"), ("first", "same")]
    state = explained[0].state
    assert state is not None
    assert (len(state.left_out), len(state.anticipated)) == (0, 1)
    assert verdicts(alone) == [("second", "other node")]


@pytest.mark.parametrize(
    ("bound_s", "verdict"),
    [
        pytest.param(5.0, "same", id="bound three seconds later"),
        pytest.param(9.0, "other node", id="too late to have been decided before"),
    ],
)
def test_a_binding_that_is_written_late_explains_a_decision(bound_s: float, verdict: str) -> None:
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="6")]
    decisions = judge(
        nodes,
        [
            (1.0, pod("again", cpu="3")),
            (1.1, pod("again", cpu="3", status=REFUSED)),
            (2.0, pod("second", cpu="2")),
            (2.1, pod("second", "b", cpu="2")),
            (bound_s, pod("again", "a", cpu="3")),
        ],
    )

    assert ("second", verdict) in verdicts(decisions)


@pytest.mark.parametrize(
    ("cordoned_s", "verdict"),
    [
        pytest.param(7.09, "same", id="just before the binding: perhaps not received yet"),
        pytest.param(1.0, "pending here", id="long before the pod"),
    ],
)
def test_a_change_just_before_a_binding_may_be_unknown_to_the_scheduler(
    cordoned_s: float, verdict: str
) -> None:
    cordoned = (cordoned_s, SMALL.replace(unschedulable=True))
    events: list[Event] = [(7.0, pod("p")), cordoned, (7.1, pod("p", "small"))]

    decisions = judge([SMALL], sorted(events, key=lambda event: event[0]))

    assert verdicts(decisions) == [("p", verdict)]


def test_a_pod_that_waits_for_its_volumes_takes_room() -> None:
    """kube-scheduler announces the node of such a pod as its nomination, and counts it there."""
    waiting = pod("waiting", cpu="14", status={"nominatedNodeName": "large"})
    decisions = judge(
        [SMALL, LARGE],
        [
            (1.0, pod("waiting", cpu="14")),
            (1.1, waiting),
            (20.0, pod("next")),
            (20.1, pod("next", "small")),
            (40.0, pod("waiting", "large", cpu="14", status={"nominatedNodeName": "large"})),
        ],
    )

    assert verdicts(decisions) == [("waiting", "same"), ("next", "same")]


def test_a_nomination_by_preemption_is_a_refusal_first() -> None:
    status = {"nominatedNodeName": "small", **REFUSED}
    low = pod("low", "small", cpu="4")
    decisions = judge(
        [SMALL, low],
        [
            (1.0, pod("high", cpu="4", priority=9)),
            (1.1, pod("high", cpu="4", priority=9, status=status)),
            (2.0, (low,)),
            (3.0, pod("high", "small", cpu="4", priority=9, status=status)),
        ],
    )

    assert verdicts(decisions) == [("high", "pending"), ("high", "same")]
    assert decisions[1].assessment is not None
    assert decisions[1].assessment.is_nominated


def test_pods_of_others_are_followed_and_not_judged() -> None:
    follower = follow(
        [SMALL],
        [
            (1.0, pod("theirs", cpu="3", spec={"schedulerName": "another"})),
            (1.1, pod("theirs", "small", cpu="3", spec={"schedulerName": "another"})),
            (2.0, pod("static", "small")),
            (20.0, pod("ours", cpu="2")),
            (20.1, pod("ours", cpu="2", status=REFUSED)),
        ],
    )

    assert verdicts(follower.decisions) == [("ours", "pending")]


def test_a_new_pod_of_the_same_name_is_another_pod() -> None:
    again = make_pod("p", uid="again", cpu="4")
    decisions = judge(
        [SMALL],
        [
            (1.0, pod("p", cpu="4")),
            (1.1, pod("p", "small", cpu="4")),
            (20.0, again),
            (20.1, again.replace(node_name="small")),
        ],
    )

    assert verdicts(decisions) == [("p", "same"), ("p", "same")]


def test_gated_pods_are_pending_both_times() -> None:
    gates = {"schedulingGates": [{"name": "wait"}]}
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    held = pod("held", spec=gates)

    decisions = judge([SMALL], [(1.0, held), (1.1, held.replace(status=status_of(condition)))])

    assert verdicts(decisions) == [("held", "pending")]


def status_of(condition: dict[str, str]) -> Any:
    return make_pod("x", status={"conditions": [condition]}).status


def test_a_lower_total_among_many_nodes_is_sampled() -> None:
    nodes = [make_node(f"n{i:03}", cpu="8") for i in range(150)]
    nodes[7] = make_node("n007", cpu="4")
    nodes[8] = make_node("n008", cpu="4")

    def placed_on(name: str, count: int) -> str:
        decisions = judge(nodes[:count], [(1.0, pod("p")), (1.1, pod("p", name))])
        return decisions[0].verdict.value

    assert placed_on("n007", 50) == "other node"
    assert placed_on("n007", 150) == "other node"  # rank 149: kube-scheduler compares at least 100
    larger = make_node("n009", cpu="32")
    nodes[9] = larger
    assert placed_on("n010", 150) == "sampled"


@pytest.mark.parametrize(
    ("earlier", "verdict"),
    [
        pytest.param({}, "other node", id="both at the first attempt: in order of arrival"),
        pytest.param({"status": REFUSED}, "same", id="the earlier pod was held back"),
        pytest.param({"priority": -1}, "same", id="the later pod has a higher priority"),
    ],
)
def test_a_binding_that_was_decided_before_is_not_left_out(
    earlier: dict[str, Any], verdict: str
) -> None:
    """Without the first pod the second one goes to the same node; the queue has the first pod in front."""
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="6")]
    first = {**earlier, "cpu": "3"}
    decisions = judge(
        nodes,
        [
            (1.0, pod("first", **first)),
            (1.01, pod("second", cpu="2")),
            (1.05, pod("first", "a", **first)),
            (1.06, pod("second", "a", cpu="2")),
        ],
    )

    assert verdicts(decisions) == [("first", "same"), ("second", verdict)]


def test_a_binding_before_the_pod_existed_is_not_left_out() -> None:
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="6")]
    first: dict[str, Any] = {"status": REFUSED, "cpu": "3"}
    decisions = judge(
        nodes,
        [
            (1.0, pod("first", **first)),
            (1.05, pod("first", "a", **first)),
            (1.06, pod("second", cpu="2")),
            (1.07, pod("second", "a", cpu="2")),
        ],
    )

    assert verdicts(decisions) == [("first", "same"), ("second", "other node")]


def listed(count: int) -> tuple[list[Any], list[Event]]:
    """Pods that wait while no scheduler runs; one starts, takes them by priority and name, and binds concurrently."""
    draw = random.Random(7)
    nodes = [make_node(f"n{i}", cpu=str(8 + 6 * i), memory=f"{80 - 10 * i}Gi") for i in range(6)]
    pods = [
        pod(f"p{i:02}", cpu=f"{100 + 37 * i}m", memory=f"{1 + i % 3}Gi", priority=(i % 4 == 1) * 10)
        for i in range(count)
    ]
    view, bound = TrialCluster(nodes), []
    for one in sorted(pods, key=lambda one: (-one.priority, one.name)):
        node = choose(view.ask(one), RandomTies(0))
        bound.append(one.replace(node_name=node))
        view.replace_object(None, bound[-1])
    arrived = draw.sample(pods, count)
    events: list[Event] = [(1 + i / 100, one) for i, one in enumerate(arrived)]
    for first in range(0, count, WINDOW):
        some = bound[first : first + WINDOW]
        bound[first : first + WINDOW] = draw.sample(some, len(some))
    return nodes, events + [(20 + i / 100, one) for i, one in enumerate(bound)]


def test_pods_that_wait_for_a_scheduler_to_start_are_taken_by_their_names() -> None:
    nodes, events = listed(48)

    found = {one.verdict for one in judge(nodes, events)}

    assert found <= {ReplayVerdict.SAME, ReplayVerdict.EQUAL}


def test_a_scheduler_that_works_takes_pods_in_the_order_of_their_arrival() -> None:
    """Bindings that follow the arrivals at once, by a running scheduler, are different decisions."""
    nodes, events = listed(48)
    early = [(at_s - 18 if at_s >= 20 else at_s, obj) for at_s, obj in events]

    assert ReplayVerdict.OTHER in {one.verdict for one in judge(nodes, early)}
