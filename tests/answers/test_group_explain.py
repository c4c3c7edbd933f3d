"""Explanations of pod groups: members, placements, preemption, and ways that let the group run."""

from typing import Any

import pytest

from bayplan.answers import apply_changes, explain, explain_group, find_group
from bayplan.answers.account import PodVerdict
from bayplan.answers.group_account import GroupVerdict, MemberState, PodGroupExplanation
from bayplan.answers.stage import Stage
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.errors import InputError
from bayplan.sim import Simulation
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_gang, make_node, make_object, make_pod
from bayplan.trials import TrialCluster
from tests.rig.groups import ALL_GROUP_GATES, TWO_ZONES

ZONE = "topology.kubernetes.io/zone"


def view_of(*objects: Any, gates: dict[str, bool] = ALL_GROUP_GATES) -> TrialCluster:
    return Stage(objects, Settings(feature_gates=gates), as_is=True).view()


def ask(*objects: Any) -> PodGroupExplanation:
    return explain_group(view_of(*objects), "default", "red")


def states(account: PodGroupExplanation) -> list[str]:
    return sorted(member.state.value for member in account.members)


def test_a_group_that_fits_has_a_node_for_each_member_and_the_scores_of_its_placements() -> None:
    account = ask(*TWO_ZONES, *make_gang("red", 3, topology_key=ZONE, cpu="1"))

    assert (account.verdict, account.cause, account.ways) == (GroupVerdict.FITS, "", [])
    assert states(account) == ["fits"] * 3
    assert [p.name for p in account.placements] == ["one", "two"]
    assert all(p.total is not None and p.scores for p in account.placements)
    assert list(account.domains.values()) == [3]
    assert sum(p.chosen for p in account.placements) == 1


def test_a_group_that_does_not_fit_names_the_member_and_what_it_lacks() -> None:
    account = ask(*TWO_ZONES, *make_gang("red", 3, cpu="4"))

    assert account.verdict is GroupVerdict.UNSCHEDULABLE
    assert account.cause == "2 of 3 members fit; red-1 lacks cpu on every node"
    assert states(account) == ["fits", "fits", "refused"]
    (refused,) = (m for m in account.members if m.state is MemberState.REFUSED)
    assert [(r.reason, r.nodes) for r in refused.refusals] == [("Insufficient cpu", 2)]
    assert account.preemption is not None
    assert not account.preemption.helps


def test_members_with_nodes_count() -> None:
    group, *pods = make_gang("red", 2, cpu="1")

    account = ask(*TWO_ZONES, group, *(pod.with_node("a") for pod in pods))

    assert (account.verdict, states(account)) == (GroupVerdict.PLACED, ["placed", "placed"])


def test_preemption_for_the_group_names_its_victims() -> None:
    high = make_object("PriorityClass", "high", value=10)
    group, *pods = make_gang("red", 2, cpu="4", priority=10)
    group = decode_object({**to_dict(group), "spec": {**to_dict(group)["spec"], "priority": 10}})
    victim = make_pod("victim", cpu="1", node_name="a")

    account = ask(*TWO_ZONES, high, victim, group, *pods)

    assert account.verdict is GroupVerdict.PREEMPTS
    assert account.preemption is not None
    assert account.preemption.helps
    assert [pod.name for pod in account.preemption.victims] == ["victim"]


WAYS = [
    pytest.param(
        [*TWO_ZONES, *make_gang("red", 4, cpu="4")],
        ["add 2 nodes like a", "add 2 nodes like b"],
        id="nodes are added",
    ),
    pytest.param(
        [
            make_node("a", cpu="4", zone="one"),
            make_node("b", cpu="4", zone="one"),
            make_node("c", cpu="4", zone="two"),
            *make_gang("red", 3, topology_key=ZONE, cpu="4"),
        ],
        [
            "add 1 node like a",
            f"let members have different values of {ZONE}",
            "let the gang begin with 2 members",
        ],
        id="nodes are added where most members are",
    ),
    pytest.param(
        [*TWO_ZONES, make_pod("old", cpu="1", node_name="a"), *make_gang("red", 2, cpu="4")],
        ["free 1 cpu on a"],
        id="a pod is moved",
    ),
    pytest.param(
        [*TWO_ZONES, *make_gang("red", 2, min_count=3, cpu="1")],
        ["let the gang begin with 2 members"],
        id="the gang is too small",
    ),
    pytest.param(
        [*TWO_ZONES, *make_gang("red", 2, topology_key="rack", cpu="1")],
        ["let members have different values of rack"],
        id="no node has the label",
    ),
]


@pytest.mark.parametrize(("objects", "goals"), WAYS)
def test_what_would_let_the_group_run(objects: list[Any], goals: list[str]) -> None:
    account = ask(*objects)

    assert set(goals) <= {way.goal for way in account.ways}


@pytest.mark.parametrize(("objects", "goals"), WAYS)
def test_each_way_lets_the_group_run_in_a_new_simulation(
    objects: list[Any], goals: list[str]
) -> None:
    account = ask(*objects)

    for way in account.ways:
        changed = apply_changes([to_dict(obj) for obj in objects], way.changes)
        changed_objects: Any = [decode_object(tree) for tree in changed]
        (group,) = Simulation(changed_objects, feature_gates=ALL_GROUP_GATES).run().groups
        assert group.has_started, way.goal


def test_one_node_less_is_not_enough() -> None:
    objects = [*TWO_ZONES, *make_gang("red", 4, cpu="4")]
    way = next(way for way in ask(*objects).ways if way.goal == "add 2 nodes like a")

    fewer = apply_changes([to_dict(obj) for obj in objects], way.changes[1:])

    fewer_objects: Any = [decode_object(tree) for tree in fewer]
    (group,) = Simulation(fewer_objects, feature_gates=ALL_GROUP_GATES).run().groups
    assert not group.has_started


def test_asking_leaves_the_view_as_it_was() -> None:
    view = view_of(
        *TWO_ZONES, make_pod("old", cpu="1", node_name="a"), *make_gang("red", 2, cpu="4")
    )

    first = explain_group(view, "default", "red")
    second = explain_group(view, "default", "red")

    assert (first.verdict, first.ways[0]) == (second.verdict, second.ways[0])
    assert view.node_names() == ["a", "b"]
    assert sorted((pod.name, pod.node_name) for pod in view.pods()) == [
        ("old", "a"),
        ("red-0", ""),
        ("red-1", ""),
    ]
    assert not view.scheduler.queue.nominator


def test_a_member_names_the_cause_of_its_group() -> None:
    view = view_of(*TWO_ZONES, *make_gang("red", 3, cpu="4"))
    pod = next(pod for pod in view.pods() if pod.name == "red-0")

    account = explain(view, pod)

    assert account.group is not None
    assert account.group.cause == "2 of 3 members fit; red-1 lacks cpu on every node"
    assert (account.verdict, account.node) == (PodVerdict.UNSCHEDULABLE, None)
    assert account.message.startswith("pod group is unschedulable")
    assert account.counterfactuals == []


def test_a_member_of_a_group_that_fits_has_the_node_that_the_group_gives_it() -> None:
    view = view_of(*TWO_ZONES, *make_gang("red", 2, cpu="4"))

    accounts = [explain(view, pod) for pod in view.pods()]

    assert {account.node for account in accounts} == {"a", "b"}
    assert [account.verdict for account in accounts] == [PodVerdict.FITS] * 2


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        pytest.param(
            make_gang("red", 2)[1:],
            'waiting for pods\'s pod group "red" to appear in scheduling queue '
            "(there is no such PodGroup)",
            id="the object is missing",
        ),
        pytest.param(
            make_gang("red", 2, min_count=5),
            "waiting for minCount pods from a gang to appear in scheduling queue (2 of 5 exist)",
            id="members are missing",
        ),
    ],
)
def test_a_group_that_is_held_back_says_why(objects: list[Any], cause: str) -> None:
    account = ask(*TWO_ZONES, *objects)

    assert (account.verdict, account.cause) == (GroupVerdict.GATED, cause)


def test_a_group_without_members_is_empty() -> None:
    assert ask(*TWO_ZONES, make_gang("red", 2)[0]).verdict is GroupVerdict.EMPTY


def test_members_of_two_schedulers_are_an_error() -> None:
    group, first, second = make_gang("red", 2)
    other = make_pod(
        "red-1", spec={"schedulingGroup": {"podGroupName": "red"}, "schedulerName": "second"}
    )
    del second
    view = view_of(*TWO_ZONES, group, first, other)

    account = explain_group(view, "default", "red")

    assert account.verdict is GroupVerdict.ERROR
    assert "should have the same .spec.schedulerName" in account.cause


def test_without_the_gate_groups_cannot_be_asked_about() -> None:
    view = view_of(*TWO_ZONES, *make_gang("red", 2), gates={})

    with pytest.raises(InputError, match="feature-gates=GenericWorkload=true"):
        explain_group(view, "default", "red")


@pytest.mark.parametrize(
    ("target", "namespace", "found"),
    [
        pytest.param("podgroup/red", None, ("default", "red"), id="by its name"),
        pytest.param("podgroups/default/red", None, ("default", "red"), id="with a namespace"),
        pytest.param("PodGroup/red", "default", ("default", "red"), id="in a namespace"),
        pytest.param("pod/red", None, None, id="a pod"),
        pytest.param("podgroup", None, None, id="a pod of that name"),
    ],
)
def test_groups_are_found(target: str, namespace: str | None, found: Any) -> None:
    view = view_of(*TWO_ZONES, *make_gang("red", 2))

    assert find_group(view, target, namespace) == found


def test_a_wrong_name_is_answered_with_a_similar_one() -> None:
    view = view_of(*TWO_ZONES, *make_gang("training", 2))

    with pytest.raises(InputError, match="such as training"):
        find_group(view, "podgroup/trainin")


def test_every_placement_is_told_however_many_there_are() -> None:
    nodes = [make_node(f"n{i}", zone=f"z{i}", cpu=str(2 + i)) for i in range(6)]

    account = ask(*nodes, *make_gang("red", 4, topology_key=ZONE, cpu="2"))

    assert [(p.name, p.members) for p in account.placements] == [
        ("z0", 1),
        ("z1", 1),
        ("z2", 2),
        ("z3", 2),
        ("z4", 3),
        ("z5", 3),
    ]
    assert account.cause.startswith(f"3 of 4 members fit in {ZONE} z4, the best of 6; red-2 lacks")
