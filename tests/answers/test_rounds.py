"""Drains and upgrades in rounds: budgets are respected, and stalls are named with their cause."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers.courses import DrainCourse, UpgradeCourse
from bayplan.answers.what_if import ClusterChange, Drain, Upgrade, WhatIfAnswer, ask_what_if
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned

WEB = {"app": "web"}


def make_web(number: int, node: str, **fields: Any) -> list[Pod]:
    """Pods of one controller, on a node."""
    return [
        owned(make_pod(f"web-{node}-{i}", cpu="1", labels=WEB, node_name=node, **fields))
        for i in range(number)
    ]


def make_budget(name: str = "web", **spec: Any) -> Any:
    return make_object("PodDisruptionBudget", name, spec={"selector": {"matchLabels": WEB}, **spec})


def drain(objects: list[Any], change: ClusterChange) -> tuple[DrainCourse, WhatIfAnswer]:
    answer = ask_what_if(objects, [change])
    (course,) = answer.drains
    return course, answer


def upgrade(objects: list[Any], change: Upgrade) -> tuple[UpgradeCourse, WhatIfAnswer]:
    answer = ask_what_if(objects, [change])
    (course,) = answer.upgrades
    return course, answer


@pytest.mark.parametrize(
    ("budget", "rounds"),
    [
        pytest.param({"maxUnavailable": 1}, [1, 1, 1, 1, 1], id="one at a time"),
        pytest.param({"maxUnavailable": 2}, [2, 2, 1], id="two at a time"),
        pytest.param({"minAvailable": 2}, [3, 2], id="a number that must run"),
        pytest.param({"maxUnavailable": "100%"}, [5], id="all of them"),
    ],
)
def test_each_round_evicts_what_the_budget_allows(
    budget: dict[str, Any], rounds: list[int]
) -> None:
    objects = [make_node("a"), make_node("b", cpu="9"), *make_web(5, "a"), make_budget(**budget)]

    course, answer = drain(objects, Drain(("a",), start_s=30))

    assert [one.evicted for one in course.rounds] == rounds
    assert course.seconds == 30 * len(rounds)
    assert (course.evicted, course.pods, course.drained, course.stalls) == (5, 5, 1, [])
    (use,) = answer.budgets
    assert (use.at_once, use.is_violated, len(use.pods)) == (rounds[0], False, 5)
    assert not answer.is_worse


def test_a_drain_without_budgets_is_one_round() -> None:
    course, _ = drain([make_node("a"), make_node("b", cpu="9"), *make_web(5, "a")], Drain(("a",)))

    assert [one.evicted for one in course.rounds] == [5]
    assert course.seconds == 0


def test_a_drain_stalls_where_an_evicted_pod_has_no_node() -> None:
    objects = [
        make_node("a", cpu="8"),
        make_node("b", cpu="2"),
        *make_web(5, "a"),
        make_budget(maxUnavailable=1),
    ]

    course, answer = drain(objects, Drain(("a",)))

    assert (course.evicted, course.pods, course.drained) == (3, 5, 0)
    (stall,) = course.stalls
    assert stall.cause == (
        "default/web allows 1 disruption; its evicted pod default/web-a-2 has no node: "
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable"
    )
    assert stall.pods == ("default/web-a-3", "default/web-a-4")
    assert answer.is_worse
    assert answer.to_dict()["drains"][0]["stalls"][0]["budget"] == "default/web"


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        pytest.param(
            [make_budget(maxUnavailable=0)],
            "default/web allows no disruption",
            id="a budget of nothing",
        ),
        pytest.param(
            [make_budget(maxUnavailable=3), make_budget("other", maxUnavailable=3)],
            "default/web and default/other select the same pods, and the eviction API refuses pods "
            "with two budgets",
            id="two budgets",
        ),
    ],
)
def test_pods_that_can_never_be_evicted_are_named(more: list[Any], cause: str) -> None:
    objects = [make_node("a"), make_node("b"), *make_web(3, "a"), *more]

    course, answer = drain(objects, Drain(("a",)))

    assert (course.evicted, course.rounds) == (0, [])
    assert [(stall.cause, len(stall.pods)) for stall in course.stalls] == [(cause, 3)]
    assert answer.pods == []


def test_pods_without_an_owner_are_at_risk_when_they_are_evicted_by_force() -> None:
    bare = [make_pod(f"bare-{i}", labels=WEB, node_name="a") for i in range(2)]
    objects = [make_node("a"), make_node("b"), *bare, make_budget(minAvailable=1)]

    course, _ = drain(objects, Drain(("a",), force=True))

    assert (course.stalls, course.evicted) == ([], 2)
    assert [(risk.pod, risk.why) for risk in course.at_risk] == [
        (f"default/bare-{i}", "no controller recreates it; it counts as created again")
        for i in range(2)
    ]


@pytest.mark.parametrize(
    ("policy", "min_available", "evicted"),
    [
        pytest.param(None, 2, 3, id="an unready pod goes while the budget is met"),
        pytest.param(None, 3, 0, id="but not below it"),
        pytest.param("AlwaysAllow", 3, 1, id="unless its policy lets it go"),
    ],
)
def test_unready_pods(policy: str | None, min_available: int, evicted: int) -> None:
    unready = {"conditions": [{"type": "Ready", "status": "False"}], "phase": "Running"}
    pods = make_web(3, "a")
    first = make_object(
        "Pod",
        "web-unready",
        metadata={
            "name": "web-unready",
            "labels": WEB,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
            ],
        },
        spec={"nodeName": "a", "containers": [{"name": "c"}]},
        status=unready,
    )
    budget = make_budget(minAvailable=min_available, unhealthyPodEvictionPolicy=policy)
    objects = [make_node("a"), make_node("b", cpu="1"), first, *pods[:2], budget]

    course, _ = drain(objects, Drain(("a",)))

    assert course.evicted == evicted


def test_an_only_pod_is_at_risk_and_one_of_many_is_not() -> None:
    single = owned(make_pod("db-0", node_name="a"), "db", "StatefulSet")
    objects = [make_node("a"), make_node("b"), single, *make_web(1, "a"), *make_web(1, "b")]

    course, _ = drain(objects, Drain(("a",)))

    assert [(risk.pod, risk.why) for risk in course.at_risk] == [
        (
            "default/db-0",
            "the only pod of StatefulSet default/db: down until it runs elsewhere",
        )
    ]


ZONES = [
    make_node("a-1", labels={"zone": "a"}),
    make_node("a-2", labels={"zone": "a"}),
    make_node("b-1", labels={"zone": "b", "spot": "yes"}),
    make_node("b-2", labels={"zone": "b"}),
]


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        pytest.param(Drain(selector="zone=a"), ["a-1", "a-2"], id="by labels"),
        pytest.param(Drain(selector="zone in (a,b),!spot"), ["a-1", "a-2", "b-2"], id="by a set"),
        pytest.param(Drain(("*-1",)), ["a-1", "b-1"], id="by pattern"),
        pytest.param(Drain(("b-2", "a-[12]")), ["b-2", "a-1", "a-2"], id="a name and a pattern"),
        pytest.param(Drain(("*-2",), selector="zone=b"), ["b-2"], id="a pattern and labels"),
    ],
)
def test_nodes_are_chosen_by_names_patterns_and_labels(change: Drain, nodes: list[str]) -> None:
    course, _ = drain(ZONES, change)

    assert course.nodes == nodes


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(
            lambda: Drain(selector="zone=c"),
            "drain -l zone=c: expected a node with zone=c; got none; zone is a, b",
            id="a value that no node has",
        ),
        pytest.param(
            lambda: Drain(selector="pool=c"),
            "drain -l pool=c: expected a node with pool=c; got none; no label pool there",
            id="a label that no node has",
        ),
        pytest.param(
            lambda: Drain(("x-*",)),
            'drain x-*: expected nodes of the cluster; got "x-*"; there are a-1, a-2, b-1 and 1 more',
            id="a pattern without nodes",
        ),
        pytest.param(
            lambda: Drain(selector="=a"),
            "selector: expected labels such as zone=a,!spot; got \"=a\" (found '=a')",
            id="no selector",
        ),
        pytest.param(
            lambda: Drain(),
            "drain: expected names of nodes or a selector (-l); got neither",
            id="nothing",
        ),
        pytest.param(
            lambda: Drain(("a-1",), start_s=-1),
            "Drain: start_s: expected seconds, 0 or more; got -1",
            id="a negative time",
        ),
        pytest.param(
            lambda: Upgrade(("a-1",), surge=0),
            "upgrade: expected numbers of which one is more than 0; got surge 0 and "
            "max-unavailable 0",
            id="an upgrade of nothing at a time",
        ),
    ],
)
def test_wrong_choices_are_reported(make: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        ask_what_if(ZONES, [make()])

    assert str(caught.value) == problem


def test_an_upgrade_replaces_each_node_and_keeps_the_budget() -> None:
    objects = [
        make_node("a", cpu="3"),
        make_node("b", cpu="3"),
        make_node("other", cpu="1"),
        *make_web(3, "a"),
        *make_web(3, "b"),
        make_budget(maxUnavailable=1),
    ]

    course, answer = upgrade(objects, Upgrade(("a", "b"), start_s=10, node_start_s=100))

    assert course.replaced == {"a": "a-new-1", "b": "b-new-1"}
    assert (course.steps, course.stalls, course.pending_peak) == (2, [], 0)
    assert course.seconds == 2 * 100 + course.rounds * 10
    assert answer.nodes_removed == ["a", "b"]
    assert not answer.is_worse
    assert not any(use.is_violated for use in answer.budgets)


def test_pods_that_new_nodes_take_count_as_running_before_the_next_eviction() -> None:
    nodes = [make_node("a", cpu="1"), make_node("b", cpu="1")]
    waiting = make_web(1, "")
    objects = [*nodes, *make_web(1, "a"), *make_web(1, "b"), *waiting, make_budget(minAvailable=2)]

    course, answer = upgrade(objects, Upgrade(("a", "b")))

    assert (course.evicted, course.stalls, len(course.replaced)) == (2, [], 2)
    (use,) = answer.budgets
    assert (use.allowed, use.at_once, use.is_violated) == (1, 1, False)


def test_progress_is_told_by_nodes_of_an_upgrade_and_by_pods_of_a_drain() -> None:
    objects: list[Any] = [*(make_node(name, cpu="9") for name in "abc"), *make_web(2, "a")]
    told: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        told.append((done, total))

    ask_what_if(objects, [Upgrade(("*",), surge=2)], on_progress=note)
    assert told == [(2, 3), (3, 3)]
    told.clear()
    ask_what_if([*objects, make_budget(maxUnavailable=1)], [Drain(("a",))], on_progress=note)
    assert told == [(1, 2), (2, 2)]


def test_nodes_that_go_before_their_copies_come_leave_pods_pending_meanwhile() -> None:
    objects = [make_node("a", cpu="3"), make_node("b", cpu="4"), *make_web(3, "a")]
    full = make_pod("full", cpu="3", node_name="b")

    course, answer = upgrade([*objects, full], Upgrade(("a",), surge=0, max_unavailable=1))

    assert (course.pending_peak, course.peak_nodes) == (2, ("a",))
    assert course.replaced == {"a": "a-new-1"}
    assert not answer.is_worse, "they land on the new node"


def test_an_upgrade_goes_on_after_a_node_that_stalls() -> None:
    objects = [
        make_node("a", cpu="3"),
        make_node("b", cpu="3"),
        *make_web(2, "a"),
        make_budget(maxUnavailable=0),
        make_pod("alone", node_name="b"),
    ]

    course, answer = upgrade(objects, Upgrade(("a", "b"), force=True))

    assert [(stall.nodes, stall.cause) for stall in course.stalls] == [
        (("a",), "default/web allows no disruption")
    ]
    assert list(course.replaced) == ["b"]
    assert answer.nodes_removed == ["b"]
    # The copy that was made for `a` exists in addition, and counts as surge.
    assert sorted(answer.nodes_added) == ["a-new-1", "b-new-1"]
    assert answer.is_worse


def test_daemons_of_a_dump_without_daemon_sets_are_on_new_nodes_too() -> None:
    daemon = owned(make_pod("logs-a", cpu="1", node_name="a"), "logs", "DaemonSet")
    objects = [make_node("a", cpu="2"), daemon, make_pod("large", cpu="2")]

    _, answer = upgrade(objects, Upgrade(("a",)))

    assert "default/large" in answer.pending_after


@st.composite
def clusters(draw: st.DrawFn) -> list[Any]:
    """A few nodes with pods of a few controllers, each with a budget or without."""
    nodes = draw(st.integers(2, 4))
    objects: list[Any] = [
        make_node(f"n{i}", cpu=str(draw(st.integers(3, 8)))) for i in range(nodes)
    ]
    for w in range(draw(st.integers(1, 3))):
        labels = {"app": f"w{w}"}
        for i in range(draw(st.integers(1, 4))):
            node = f"n{draw(st.integers(0, nodes - 1))}"
            pod = make_pod(f"w{w}-{i}", cpu="1", labels=labels, node_name=node)
            objects.append(owned(pod, f"w{w}"))
        if draw(st.booleans()):
            spec = {"selector": {"matchLabels": labels}, "maxUnavailable": draw(st.integers(0, 2))}
            objects.append(make_object("PodDisruptionBudget", f"w{w}", spec=spec))
    return objects


@given(clusters(), st.data())
@settings(max_examples=40)
def test_no_drain_or_upgrade_overdraws_a_budget_or_loses_a_pod(
    objects: list[Any], data: st.DataObject
) -> None:
    surge = data.draw(st.integers(0, 2))
    change = data.draw(
        st.sampled_from(
            [Drain(("n0",)), Drain(("n[01]",)), Upgrade(("*",), surge=surge, max_unavailable=1)]
        )
    )

    answer = ask_what_if(objects, [change])

    assert not any(use.is_violated for use in answer.budgets)
    pods = sum(obj.kind == "Pod" for obj in objects)
    assert answer.running[1] + len(answer.pending_after) == pods
    assert len(answer.courses) == 1
    for upgraded in answer.upgrades:
        stuck = {node for stall in upgraded.stalls for node in stall.nodes}
        assert set(upgraded.replaced) | stuck == set(upgraded.nodes)
        assert set(answer.nodes_removed) == set(upgraded.replaced)
    for drained in answer.drains:
        stuck = {node for stall in drained.stalls for node in stall.nodes}
        assert stuck <= {obj.node_name for obj in objects if obj.kind == "Pod"}
        assert drained.evicted + sum(len(stall.pods) for stall in drained.stalls) == drained.pods
