"""What-ifs: which pods move, wait or are lost, and that nothing else changes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers.what_if import (
    AddNodes,
    AddTaint,
    ClusterChange,
    Cordon,
    Delete,
    Drain,
    RemoveTaint,
    Resize,
    Scale,
    Uncordon,
    WhatIfAnswer,
    ask_what_if,
    fit_with_nodes,
)
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned
from tests.rig.random_examples import examples


def make_owned(name: str, **fields: Any) -> Pod:
    """A pod whose controller is not among the objects, as in a dump of nodes and pods."""
    return owned(make_pod(name, **fields), "web-1")


def make_daemon(name: str, **fields: Any) -> Pod:
    return owned(make_pod(name, **fields), "logs", "DaemonSet")


def ask(objects: list[Any], *changes: ClusterChange) -> WhatIfAnswer:
    return ask_what_if(objects, changes)


def places(answer: WhatIfAnswer) -> dict[str, tuple[str, str]]:
    return {change.name: (str(change.was), str(change.now)) for change in answer.pods}


def test_pods_of_a_drained_node_move_and_those_without_owner_refuse_it() -> None:
    objects = [
        make_node("a"),
        make_node("b"),
        make_owned("web", cpu="1", node_name="a"),
        make_daemon("logs", node_name="a"),
        make_pod("static", node_name="a", annotations={"kubernetes.io/config.mirror": "x"}),
        make_pod("bare", node_name="a"),
        make_pod("elsewhere", node_name="b"),
    ]

    answer = ask(objects, Drain(("a",)))

    assert places(answer) == {}
    assert answer.is_worse
    forced = ask(objects, Drain(("a",), force=True))
    assert places(forced) == {"web": ("a", "b"), "bare": ("a", "b")}


def test_a_drain_without_enough_room_reports_pending_pods_and_reasons() -> None:
    objects = [
        make_node("a", cpu="2"),
        make_node("b", cpu="2"),
        make_owned("web", cpu="2", node_name="a"),
        make_owned("other", cpu="1", node_name="b"),
    ]

    answer = ask(objects, Drain(("a",)))

    assert places(answer) == {"web": ("a", "pending")}
    assert answer.pods[0].why.startswith(
        "a is drained: 0/2 nodes are available: 1 Insufficient cpu"
    )
    assert answer.summary()["newlyPending"] == 1


def test_a_drained_pod_of_high_priority_preempts_another_which_is_recreated() -> None:
    objects = [
        make_node("a", cpu="2"),
        make_node("b", cpu="2"),
        make_owned("high", cpu="2", node_name="a", priority=10),
        make_owned("low", cpu="2", node_name="b", priority=0),
    ]

    answer = ask(objects, Drain(("a",)))

    assert places(answer) == {"high": ("a", "b"), "low": ("b", "pending")}
    assert [entry.to_dict() for entry in answer.preempted] == [
        {"victim": "default/low", "node": "b", "for": "default/high"}
    ]
    assert answer.pods[1].why.startswith("preempted by default/high: 0/2 nodes are available")


def test_pods_of_a_known_workload_are_not_created_twice() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = make_object("Deployment", "web", spec=spec)

    answer = ask([make_node("a"), make_node("b"), deployment], Drain(("a",)))

    assert answer.summary()["moved"] == len(answer.pods) > 0
    assert answer.running == (4, 4)


@pytest.mark.parametrize(
    ("budget", "allowed", "is_violated"),
    [
        pytest.param({"spec": {"minAvailable": 1}}, 1, True, id="counted from the spec"),
        pytest.param({"spec": {"maxUnavailable": "100%"}}, 2, False, id="a share"),
        pytest.param(
            {
                "spec": {"minAvailable": 1},
                "status": {"disruptionsAllowed": 2, "expectedPods": 3, "currentHealthy": 3},
            },
            1,
            True,
            id="a status that is out of date is computed again",
        ),
    ],
)
def test_budgets_are_counted(budget: dict[str, Any], allowed: int, is_violated: bool) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, **budget["spec"]}
    labels = {"app": "web"}
    objects = [
        make_node("a"),
        make_node("b"),
        make_owned("web-1", labels=labels, node_name="a"),
        make_owned("web-2", labels=labels, node_name="a"),
        make_object("PodDisruptionBudget", "web", **{**budget, "spec": spec}),
    ]

    answer = ask(objects, Delete(("node/a",)))

    (use,) = answer.budgets
    assert (use.allowed, use.is_violated) == (allowed, is_violated)
    assert answer.notes == [
        "deleting a node does not ask disruption budgets; drain it first to respect them"
    ]
    assert use.pods == ["default/web-1", "default/web-2"]


def test_added_nodes_take_pending_pods_and_get_their_daemons() -> None:
    spec = {
        "selector": {"matchLabels": {"app": "logs"}},
        "template": {
            "metadata": {"labels": {"app": "logs"}},
            "spec": {"containers": [{"name": "c"}]},
        },
    }
    objects = [
        make_node(
            "a", cpu="1", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"]
        ),
        make_pod("waits", cpu="1"),
        make_object("DaemonSet", "logs", spec=spec),
    ]

    answer = ask(objects, AddNodes(2, ("a",)))

    assert answer.nodes_added == ["a-new-1", "a-new-2"]
    found = places(answer)
    assert found.pop("waits")[1] in answer.nodes_added
    assert sorted(now for _, now in found.values()) == ["a-new-1", "a-new-2"]


def test_the_number_of_nodes_until_all_fit() -> None:
    waiting = [make_pod(f"p{i}", cpu="1") for i in range(9)]

    answer = fit_with_nodes([make_node("a", cpu="2"), *waiting], "a")

    assert answer.search is not None
    assert (answer.search.nodes, answer.search.hopeless) == (4, {})
    assert answer.pending_after == {}
    assert answer.search.tried[3] == 1


def test_pods_that_no_such_node_can_take_are_named_and_do_not_count() -> None:
    node, runs = make_node("a", cpu="2"), make_pod("runs", cpu="2", node_name="a")
    huge = make_pod("huge", cpu="3")

    answer = fit_with_nodes([node, runs, make_pod("fits", cpu="2"), huge], "a")

    assert answer.search is not None
    assert answer.search.nodes == 1
    assert list(answer.search.hopeless) == ["default/huge"]
    none = fit_with_nodes([node, runs, huge], "a")
    assert none.search is not None
    assert none.search.nodes is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(Cordon(("b",)), {}, id="cordon leaves pods that run"),
        pytest.param(
            AddTaint("b", ("x=y:NoExecute",)),
            {"other": ("b", "a")},
            id="NoExecute evicts pods that do not tolerate it",
        ),
        pytest.param(AddTaint("b", ("x=y:NoSchedule",)), {}, id="NoSchedule leaves running pods"),
        pytest.param(
            RemoveTaint("gpu", ("gpu",)),
            {"large": ("pending", "gpu")},
            id="a taint removed by its key",
        ),
        pytest.param(
            RemoveTaint("gpu", ("gpu=yes:NoSchedule-",)),
            {"large": ("pending", "gpu")},
            id="a taint removed in full, in kubectl's notation",
        ),
        pytest.param(Resize("a", {"cpu": "9"}), {"large": ("pending", "a")}, id="a larger node"),
        pytest.param(Uncordon(("c",)), {"large": ("pending", "c")}, id="uncordon"),
    ],
)
def test_a_change_of_a_node(change: ClusterChange, expected: dict[str, tuple[str, str]]) -> None:
    objects = [
        make_node("a"),
        make_node("b"),
        make_node("c", cpu="9", unschedulable=True),
        make_node("gpu", cpu="9", taints=["gpu=yes:NoSchedule"]),
        make_owned("other", cpu="1", node_name="b"),
        make_owned("tolerant", cpu="1", node_name="b", tolerations=["x=y:NoExecute"]),
        make_pod("large", cpu="8"),
    ]

    assert places(ask(objects, change)) == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            Drain(("node-33",)),
            'drain node-33: expected a node of the cluster; got "node-33"; did you mean node-3?',
            id="a similar name",
        ),
        pytest.param(
            Cordon(("x",)),
            'cordon x: expected a node of the cluster; got "x"; there are node-3',
            id="nothing near",
        ),
        pytest.param(
            AddTaint("node-3", ("gpu",)),
            "add-taint node-3 gpu: expected key=value:Effect or key:Effect with an effect of "
            'NoSchedule, PreferNoSchedule, NoExecute; got "gpu"',
            id="a taint without effect",
        ),
        pytest.param(
            RemoveTaint("node-3", ("gpu",)),
            'remove-taint node-3 gpu: expected a taint of node node-3; got "gpu"; its taints: none',
            id="a missing taint",
        ),
        pytest.param(
            Resize("node-3", {"cpus": "1"}),
            'resize node-3 cpus=1: expected a resource such as cpu, memory, pods; got "cpus"',
            id="an unknown resource",
        ),
    ],
)
def test_invalid_input_is_reported(change: ClusterChange, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        ask([make_node("node-3")], change)

    assert str(caught.value) == problem


def make_deployment(replicas: int, cpu: str = "1") -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return make_object("Deployment", "web", namespace="shop", spec=spec)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            Scale("deployment/web", 5),
            {"running": 4, "pending": 1, "newlyPending": 1},
            id="more than there is room for",
        ),
        pytest.param(Scale("deploy/shop/web", 1), {"running": 1, "deleted": 1}, id="fewer"),
        pytest.param(
            Resize("deployment/web", {"cpu": "3"}),
            {"running": 1, "pending": 1, "newlyPending": 1},
            id="larger pods",
        ),
        pytest.param(Delete(("deployment/web",)), {"running": 0, "deleted": 2}, id="deleted"),
        pytest.param(
            Delete(("node/n",)),
            {"running": 0, "pending": 2, "newlyPending": 2},
            id="its node is deleted",
        ),
    ],
)
def test_a_change_of_a_workload(change: ClusterChange, expected: dict[str, int]) -> None:
    objects = [make_node("n"), make_node("cordoned", unschedulable=True), make_deployment(2)]

    answer = ask(objects, change)

    said = answer.summary()
    counts = {"running": answer.running[1], "pending": len(answer.pending_after)}
    counts |= {name: said[name] for name in ("newlyPending", "deleted")}
    assert {name: count for name, count in counts.items() if count} == {
        name: count for name, count in expected.items() if count
    }


def test_a_deleted_pod_is_recreated_by_its_owner_under_another_name() -> None:
    objects = [make_node("n"), make_deployment(1)]
    (name,) = ask(objects, Delete(("deployment/web",))).pods

    (change,) = ask(objects, Delete((f"pod/{name.name}",))).pods

    assert (str(change.was), str(change.now)) == ("n", "n")
    assert change.successor not in ("", change.name)


def test_a_timeline_is_rejected() -> None:
    timeline = make_object("Timeline", "", events=[{"at": "1s", "remove": ["node/a"]}])

    with pytest.raises(InputError, match="expected a cluster at one moment"):
        ask([make_node("a"), timeline])


@st.composite
def clusters(draw: st.DrawFn) -> list[Any]:
    """A few nodes, pods on them and pods that wait."""
    nodes = draw(st.integers(1, 5))
    objects: list[Any] = [
        make_node(f"n{i}", cpu=str(draw(st.integers(1, 4)))) for i in range(nodes)
    ]
    for i in range(draw(st.integers(0, 10))):
        cpu, node = str(draw(st.integers(0, 3))), draw(st.integers(0, nodes - 1))
        objects.append(make_owned(f"on-{i}", cpu=cpu, node_name=f"n{node}"))
    for i in range(draw(st.integers(0, 6))):
        priority = draw(st.integers(0, 2))
        pod = make_owned(f"waits-{i}", cpu=str(draw(st.integers(1, 5))), priority=priority)
        objects.append(pod)
    return objects


@given(clusters())
@settings(max_examples=examples(20))
def test_nothing_changes_when_nothing_is_changed(objects: list[Any]) -> None:
    answer = ask(objects)

    assert answer.pods == []
    assert answer.pending_before == answer.pending_after


@given(clusters(), st.data())
@settings(max_examples=examples(30))
def test_no_pod_with_an_owner_is_lost_in_a_drain(objects: list[Any], data: st.DataObject) -> None:
    names = [obj.name for obj in objects if obj.kind == "Node"]
    drained = tuple(data.draw(st.sets(st.sampled_from(names), min_size=1)))

    answer = ask(objects, Drain(drained))

    after = answer.running[1] + len(answer.pending_after)
    assert after == sum(obj.kind == "Pod" for obj in objects)
    assert not {change.now.node for change in answer.pods} & set(drained)


@given(clusters())
@settings(max_examples=examples(15))
def test_the_number_of_nodes_is_enough_and_one_less_is_not(objects: list[Any]) -> None:
    answer = fit_with_nodes(objects, "n0")

    search = answer.search
    assert search is not None
    if search.nodes:
        assert set(answer.pending_after) <= set(search.hopeless)
        less = ask(objects, AddNodes(search.nodes - 1, ("n0",)))
        assert set(less.pending_after) - set(search.hopeless)
