"""DefaultPreemption of v1.37 for a pod without a group, where some of the victims leave only with their whole group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.cache.group_members import PodGroupIndex
from bayplan.framework import (
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Status,
    unschedulable,
)
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.interface import Preemption
from bayplan.plugins.default_preemption.by_amounts import NO_VICTIMS
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_object, make_pod, make_table
from tests.plugins.preemption import equip
from tests.rig.groups import make_member, make_pod_group

GATES = FeatureGates({"GenericWorkload": True}, release=find_release("1.37"))
ZONE_KEY = "topology.kubernetes.io/zone"


def whole(name: str = "g", priority: int = 1) -> Any:
    """A group whose pods leave only together."""
    return make_pod_group(name, spec={"priority": priority, "disruptionMode": {"all": {}}})


def member(name: str, node: str, group: str = "g", cpu: str = "2", **fields: Any) -> Pod:
    fields.setdefault("priority", 1)
    return make_member(name, group, node_name=node, cpu=cpu, **fields)


def lone(name: str, node: str, cpu: str = "2", **fields: Any) -> Pod:
    return make_pod(name, node_name=node, cpu=cpu, **fields)


def budget(app: str, allowed: int = 0) -> Any:
    spec = {"selector": {"matchLabels": {"app": app}}}
    status = {"disruptionsAllowed": allowed}
    return make_object("PodDisruptionBudget", app, namespace="default", spec=spec, status=status)


def preempt(
    pod: Pod, table: NodeTable, objects: Sequence[Any] = (), more: Sequence[FilterPlugin] = ()
) -> Preemption:
    """Let `pod` fit nowhere in `table`, and preempt; the account of the search."""
    handle = make_handle(table, objects)
    handle.feature_gates, index = GATES, PodGroupIndex()
    for row in range(len(table)):
        for placed in table.pods[row].values():
            index.set_pod(placed)
    handle.pod_groups = index
    plugin = DefaultPreemption.from_args(None, handle)
    filtering = equip(plugin, handle, [NodeResourcesFit(), InterPodAffinity(), *more])
    state, diagnosis = CycleState(), Diagnosis(table, node_count=table.node_count)
    assert filtering.run_pre_filters(state, pod, table).status.is_success
    filtering.diagnose(state, pod, table, ALL, diagnosis)
    assert (diagnosis.codes() != 0).all(), "the pod of such a test must fit nowhere"
    result, _ = plugin.post_filter(state, pod, diagnosis)
    assert result.preemption is not None
    return result.preemption


def candidates(account: Preemption) -> dict[str, list[str]]:
    """By node, the names of the pods that would have to leave."""
    return {
        name: [pod.name for pod in victims.pods] for name, victims in account.candidates.items()
    }


def wanted(cpu: str = "2", **fields: Any) -> Pod:
    return make_pod("wanted", cpu=cpu, priority=10, **fields)


@pytest.mark.parametrize(
    ("mode", "victims"),
    [
        pytest.param({"all": {}}, ["p", "q"], id="a group that leaves whole"),
        pytest.param({"single": {}}, ["q"], id="a group whose pods leave one by one"),
    ],
)
def test_who_leaves_a_node_that_lacks_the_room_of_one_pod(
    mode: dict[str, Any], victims: list[str]
) -> None:
    group = make_pod_group("g", spec={"priority": 1, "disruptionMode": mode})
    starts = {name: {"startTime": f"2026-01-0{i}T00:00:00Z"} for i, name in enumerate("pq", 1)}
    pods = [member(name, "a", status=start) for name, start in starts.items()]

    account = preempt(wanted(), make_table(make_node("a"), pods=pods), [group])

    assert candidates(account) == {"a": victims}


def test_members_on_other_nodes_leave_too() -> None:
    table = make_table(
        make_node("a"),
        make_node("b"),
        pods=[member("p", "a", cpu="4"), member("q", "b"), lone("high", "b", priority=50)],
    )

    account = preempt(wanted(cpu="4"), table, [whole()])

    assert candidates(account) == {"a": ["p", "q"]}
    assert account.rejected["b"].reasons == ("Insufficient cpu",)


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param(["one", "one"], {"a": ["p", "q"], "b": ["p", "q"]}, id="in one zone"),
        pytest.param(["one", "two"], {"b": ["p", "q"]}, id="in two zones"),
    ],
)
def test_a_member_on_another_node_is_missing_where_it_was(
    zones: list[str], expected: dict[str, list[str]]
) -> None:
    """The pod avoids those of the application in its zone; one of them cannot be preempted in zone `one`."""
    web = {"app": "web"}
    term = {"labelSelector": {"matchLabels": web}, "topologyKey": ZONE_KEY}
    avoiding = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    keep = [lone("high", "a", "1", priority=50, labels=web)] if zones[1] == "two" else []
    pods = [member("p", "a", cpu="1", labels=web), member("q", "b", cpu="1", labels=web), *keep]
    nodes = [make_node(name, zone=zone) for name, zone in zip("ab", zones, strict=True)]

    account = preempt(wanted(affinity=avoiding), make_table(*nodes, pods=pods), [whole()])

    assert candidates(account) == expected


@pytest.mark.parametrize(
    ("group_priority", "expected"),
    [
        pytest.param(1, {"a": ["p"]}, id="lower than the pod"),
        pytest.param(10, {}, id="equal to that of the pod"),
        pytest.param(20, {}, id="higher than the pod"),
    ],
)
def test_the_priority_of_the_group_decides_and_not_that_of_its_pod(
    group_priority: int, expected: dict[str, list[str]]
) -> None:
    table = make_table(make_node("a"), pods=[member("p", "a", cpu="4")])

    account = preempt(wanted(), table, [whole(priority=group_priority)])

    assert candidates(account) == expected
    reasons = {name: status.reasons for name, status in account.rejected.items()}
    assert reasons == ({} if expected else {"a": (NO_VICTIMS,)})


@pytest.mark.parametrize(
    ("cpu", "victims"),
    [
        pytest.param("1", ["lone"], id="the single pod is enough"),
        pytest.param("2", ["p", "q"], id="the group alone is enough"),
        pytest.param("3", ["p", "q", "lone"], id="both leave, the group as the more important"),
    ],
)
def test_units_that_need_not_leave_stay(cpu: str, victims: list[str]) -> None:
    """The node is full: two members with 1 CPU each, and a single pod with 1 CPU of the same priority."""
    pods = [
        lone("lone", "a", cpu="1", priority=1),
        *(member(name, "a", cpu="1") for name in "pq"),
    ]
    table = make_table(make_node("a", cpu="3"), pods=pods)

    account = preempt(wanted(cpu=cpu), table, [whole()])

    assert candidates(account) == {"a": victims}


def test_units_of_higher_priority_are_put_back_first() -> None:
    pods = [lone("low", "a", priority=1), member("p", "a", priority=5)]
    table = make_table(make_node("a"), pods=pods)

    account = preempt(wanted(), table, [whole(priority=5)])

    assert candidates(account) == {"a": ["low"]}


@pytest.mark.parametrize(
    ("allowed", "victims", "broken"),
    [
        pytest.param(0, ["free"], 0, id="the unit whose budget is used up stays"),
        pytest.param(2, ["guarded"], 0, id="a budget with enough left protects no one"),
    ],
)
def test_units_whose_budget_would_be_exceeded_are_put_back_first(
    allowed: int, victims: list[str], broken: int
) -> None:
    """Both have the room that the pod lacks; `guarded` is the less important one."""
    guarded = lone("guarded", "a", priority=1, labels={"app": "web"})
    free = member("free", "a", priority=5)
    table = make_table(make_node("a"), pods=[guarded, free])

    account = preempt(wanted(), table, [whole(priority=5), budget("web", allowed)])

    assert candidates(account) == {"a": victims}
    assert account.candidates["a"].pdb_violations == broken


@pytest.mark.parametrize(
    ("allowed", "broken"),
    [
        pytest.param(0, 2, id="none may be disrupted"),
        pytest.param(1, 1, id="one may be disrupted"),
        pytest.param(2, 0, id="both may be disrupted"),
    ],
)
def test_every_pod_of_a_unit_that_exceeds_a_budget_is_counted(allowed: int, broken: int) -> None:
    pods = [member(name, "a", labels={"app": "web"}) for name in "pq"]
    table = make_table(make_node("a"), pods=pods)

    account = preempt(wanted(cpu="4"), table, [whole(), budget("web", allowed)])

    assert account.candidates["a"].pdb_violations == broken


def test_victims_come_in_the_order_of_importance_also_beside_a_budget() -> None:
    pods = [
        lone("guarded", "a", priority=1, labels={"app": "web"}),
        member("free", "a", priority=5),
    ]
    table = make_table(make_node("a"), pods=pods)

    account = preempt(wanted(cpu="4"), table, [whole(priority=5), budget("web")])

    assert candidates(account) == {"a": ["free", "guarded"]}


class OnlyOnce(FilterPlugin):
    """Refuses every node the first time that it is asked about it."""

    name = "OnlyOnce"
    scope = NODE_OBJECT

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if node.name in self.asked:
            return SUCCESS
        self.asked.add(node.name)
        return unschedulable("not yet")


def test_a_node_on_which_no_unit_has_to_leave_is_no_candidate() -> None:
    table = make_table(make_node("a"), pods=[member("p", "a")])

    account = preempt(wanted(), table, [whole()], [OnlyOnce()])

    assert candidates(account) == {}
    assert account.rejected["a"].message == 'expected at least one victim pod on node "a"'
