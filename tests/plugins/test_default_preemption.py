"""DefaultPreemption: which pods are victims, where, and when no pod may be preempted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.workloads import PodDisruptionBudget
from bayplan.config.plugin_args import DefaultPreemptionArgs
from bayplan.framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PostFilterResult,
    Status,
    failure,
)
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.interface import Preemption
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import (
    make_handle,
    make_node,
    make_object,
    make_pod,
    make_table,
)
from tests.plugins.preemption import equip

PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
NEW_YEAR = "2024-01-01T00:00:00Z"
LATER = "2024-06-01T00:00:00Z"


@dataclass
class Outcome:
    result: PostFilterResult
    status: Status
    handle: Handle

    @property
    def client(self) -> Any:
        return self.handle.client

    @property
    def account(self) -> Preemption:
        assert self.result.preemption is not None
        self.result.preemption.complete()
        return self.result.preemption

    @property
    def victims(self) -> list[str]:
        """Names, the most important first."""
        assert self.account.chosen is not None
        return [pod.name for pod in self.account.chosen.pods]


def preempt(
    pod: Pod,
    table: NodeTable,
    objects: Sequence[Any] = (),
    nominated: Mapping[str, list[Pod]] | None = None,
    plugin: DefaultPreemption | None = None,
    more: Sequence[FilterPlugin] = (),
) -> Outcome:
    """Let `pod` fit nowhere in `table`, and preempt."""
    handle = make_handle(table, objects, nominated=nominated)
    preemption = plugin or DefaultPreemption()
    filters = TaintToleration(), NodePorts(), NodeResourcesFit(), InterPodAffinity()
    filtering = equip(preemption, handle, [*filters, *more])
    state, diagnosis = CycleState(), Diagnosis(table, node_count=table.node_count)
    assert filtering.run_pre_filters(state, pod, table).status.is_success
    filtering.diagnose(state, pod, table, ALL, diagnosis)
    assert (diagnosis.codes() != 0).all(), "the pod of such a test must fit nowhere"
    result, status = preemption.post_filter(state, pod, diagnosis)
    return Outcome(result, status, handle)


def on(node_name: str, name: str, priority: int = 0, cpu: str = "2", **fields: Any) -> Pod:
    """A pod that takes half of its node."""
    return make_pod(name, node_name=node_name, priority=priority, cpu=cpu, **fields)


def important(cpu: str = "2", **fields: Any) -> Pod:
    return make_pod("important", **{"priority": 100, "cpu": cpu, **fields})


def budget(allowed: int) -> PodDisruptionBudget:
    """A budget for pods labelled app=db."""
    made = make_object(
        "PodDisruptionBudget",
        "budget",
        spec={"selector": {"matchLabels": DB}},
        status={"disruptionsAllowed": allowed},
    )
    assert isinstance(made, PodDisruptionBudget)
    return made


DB = {"app": "db"}
A = make_node("a")

# Victims


@pytest.mark.parametrize(
    ("pods", "pod", "victims"),
    [
        pytest.param([on("a", "low", cpu="4")], important(), ["low"], id="the only one"),
        pytest.param(
            [on("a", "low", 1), on("a", "mid", 2)], important(), ["low"], id="the least important"
        ),
        pytest.param(
            [on("a", "mid", 2), on("a", "low", 1)],
            important("4"),
            ["mid", "low"],
            id="all of them, the most important first",
        ),
        pytest.param(
            [on("a", "old", start_time=NEW_YEAR), on("a", "young", start_time=LATER)],
            important(),
            ["young"],
            id="of equal priority the one that started last",
        ),
        pytest.param(
            [on("a", "new"), on("a", "young", start_time=LATER)],
            important(),
            ["new"],
            id="one that has not started is the youngest",
        ),
        pytest.param(
            [on("a", "small", 1, cpu="1"), on("a", "large", 2, cpu="3")],
            important("3"),
            ["large"],
            id="a less important one is kept when the more important one makes the room",
        ),
        pytest.param(
            [on("a", "peer", 100), on("a", "low", 99)],
            important(),
            ["low"],
            id="never one of equal priority",
        ),
        pytest.param(
            [on("a", "port", host_ports=[80], cpu="1"), on("a", "other", cpu="1")],
            important("1", host_ports=[80]),
            ["port"],
            id="the one that holds the port",
        ),
        pytest.param(
            [on("a", "none"), make_pod("zero", node_name="a")],
            important("4"),
            ["none"],
            id="one that takes nothing stays",
        ),
    ],
)
def test_victims(pods: list[Pod], pod: Pod, victims: list[str]) -> None:
    table = make_table(A, pods=pods)

    outcome = preempt(pod, table)

    assert outcome.status == SUCCESS
    assert outcome.result.nominated_node_name == "a"
    assert outcome.victims == victims
    assert [victim.name for victim in outcome.client.evicted] == victims


def test_the_table_stays_as_it_is() -> None:
    table = make_table(A, pods=[on("a", "low"), on("a", "mid")])
    version = table.row_changes.version

    preempt(important(), table)

    assert table.row_changes.version == version
    assert table.requested["cpu"].tolist() == [4000]


def test_anti_affinity_of_a_victim_goes_with_it() -> None:
    term = {"labelSelector": {"matchLabels": DB}, "topologyKey": "kubernetes.io/hostname"}
    apart = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    table = make_table(A, pods=[on("a", "loner", affinity=apart), on("a", "other", cpu="1")])

    outcome = preempt(important("1", labels=DB), table)

    assert outcome.victims == ["loner"]


# Disruption budgets


def test_a_budget_is_kept_at_the_cost_of_a_more_important_pod() -> None:
    table = make_table(A, pods=[on("a", "db", 1, labels=DB), on("a", "mid", 2)])

    assert preempt(important(), table).victims == ["db"]
    outcome = preempt(important(), table, [budget(0)])
    assert outcome.victims == ["mid"]
    assert outcome.account.candidates["a"].pdb_violations == 0


def test_victims_of_both_kinds_are_sorted_together() -> None:
    table = make_table(A, pods=[on("a", "db", 1, labels=DB), on("a", "mid", 2)])

    outcome = preempt(important("4"), table, [budget(0)])

    assert outcome.victims == ["mid", "db"]
    assert outcome.account.candidates["a"].pdb_violations == 1


# Where


def test_the_cheapest_node_is_nominated() -> None:
    table = make_table(
        make_node("a"),
        make_node("b"),
        make_node("c"),
        pods=[
            on("a", "mid", 50, cpu="4"),
            on("b", "low", 1, cpu="4"),
            on("c", "peer", 100, cpu="4"),
        ],
    )

    outcome = preempt(important(), table)

    assert outcome.result.nominated_node_name == "b"
    assert set(outcome.account.candidates) == {"a", "b"}


def test_the_search_ends_with_enough_candidates() -> None:
    nodes = [make_node(f"n{i}") for i in range(10)]
    table = make_table(*nodes, pods=[on(n.name, f"p-{n.name}", cpu="4") for n in nodes])

    def candidates(percentage: int, absolute: int) -> int:
        args = DefaultPreemptionArgs(percentage, absolute)
        plugin = DefaultPreemption.from_args(args, make_handle(table))
        return len(preempt(important(), table, plugin=plugin).account.candidates)

    assert candidates(0, 3) == 3
    assert candidates(50, 3) == 5
    assert candidates(10, 100) == 10


def test_the_search_goes_on_until_a_candidate_breaks_no_budget() -> None:
    nodes = [make_node(f"n{i}") for i in range(6)]
    protected = [on(n.name, f"p-{n.name}", cpu="4", labels=DB) for n in nodes[:5]]
    table = make_table(*nodes, pods=[*protected, on("n5", "free", 99, cpu="4")])
    plugin = DefaultPreemption(min_percentage=0, min_absolute=1)

    outcome = preempt(important(), table, [budget(0)], plugin=plugin)

    assert outcome.result.nominated_node_name == "n5"


# When preemption does not help

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("nodes", "pods", "reasons"),
    [
        pytest.param([A], [on("a", "peer", 100, cpu="4")], f"1 {NO_VICTIMS}", id="no lower pod"),
        pytest.param(
            [make_node("a", taints=["k:NoSchedule"]), make_node("b", cpu="1")],
            [on("a", "low"), on("b", "other")],
            f"2 {NOT_HELPFUL}",
            id="nodes that cannot be helped",
        ),
        pytest.param(
            [A],
            [on("a", "peer", 100, cpu="3"), on("a", "low", cpu="1")],
            "1 Insufficient cpu",
            id="not enough even without the lower pods",
        ),
        pytest.param(
            [A, make_node("b", taints=["k:NoSchedule"]), make_node("c")],
            [
                on("a", "peer", 100, cpu="4"),
                on("c", "peer2", 100, cpu="3"),
                on("c", "low", cpu="1"),
            ],
            f"1 Insufficient cpu, 1 {NO_VICTIMS}, 1 {NOT_HELPFUL}",
            id="each node says why",
        ),
    ],
)
def test_no_candidates(nodes: list[Any], pods: list[Pod], reasons: str) -> None:
    outcome = preempt(important(), make_table(*nodes, pods=pods))

    expected = f"preemption: 0/{len(nodes)} nodes are available: {reasons}."
    assert (outcome.status.code, outcome.status.message) == (Code.Unschedulable, expected)
    assert outcome.result.nominated_node_name == ""  # an old nomination is cleared
    assert outcome.client.evicted == []


def test_policy_never_preempts_no_pod() -> None:
    table = make_table(A, pods=[on("a", "low", cpu="4")])

    outcome = preempt(important(spec={"preemptionPolicy": "Never"}), table)

    assert outcome.status.code is Code.Unschedulable
    assert outcome.status.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert outcome.result.nominated_node_name is None  # an old nomination stays
    assert outcome.client.evicted == []


@pytest.mark.parametrize(
    ("leaving", "waits"),
    [
        pytest.param(
            on("a", "low", terminating=True, status={"conditions": [PREEMPTED]}),
            True,
            id="preempted and terminating",
        ),
        pytest.param(on("a", "low", terminating=True), False, id="deleted by another client"),
        pytest.param(
            on("a", "low", status={"conditions": [PREEMPTED]}), False, id="not on its way yet"
        ),
        pytest.param(
            on(
                "a",
                "low",
                terminating=True,
                status={"conditions": [{**PREEMPTED, "status": "False"}]},
            ),
            False,
            id="the condition is false",
        ),
        pytest.param(
            on(
                "a",
                "low",
                terminating=True,
                status={"conditions": [{**PREEMPTED, "reason": "EvictionByEvictionAPI"}]},
            ),
            False,
            id="another reason",
        ),
        pytest.param(
            on("a", "peer", 100, terminating=True, status={"conditions": [PREEMPTED]}),
            False,
            id="not of lower priority",
        ),
    ],
)
def test_a_victim_that_is_leaving_is_waited_for(leaving: Pod, waits: bool) -> None:
    table = make_table(A, pods=[leaving, on("a", "other")])

    outcome = preempt(important("4", nominated_node_name="a"), table)

    expected = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (outcome.status.message == expected) is waits
    assert (outcome.result.nominated_node_name is None) is waits


def test_terminating_pods_do_not_count_on_an_unresolvable_node() -> None:
    leaving = on("a", "low", terminating=True, status={"conditions": [PREEMPTED]})
    table = make_table(
        make_node("a", taints=["k:NoSchedule"]),
        make_node("b"),
        pods=[leaving, on("b", "other", cpu="4")],
    )

    outcome = preempt(important(nominated_node_name="a"), table)

    assert outcome.result.nominated_node_name == "b"


@pytest.mark.parametrize("nominated", ["ghost", "b"])
def test_a_nomination_to_another_node_does_not_matter(nominated: str) -> None:
    leaving = on("a", "low", cpu="4", terminating=True, status={"conditions": [PREEMPTED]})
    table = make_table(
        make_node("a"), make_node("b"), pods=[leaving, on("b", "peer", 100, cpu="4")]
    )

    outcome = preempt(important(nominated_node_name=nominated), table)

    assert outcome.result.nominated_node_name == "a"


# Effects


def test_a_victim_that_is_leaving_is_not_evicted_again() -> None:
    table = make_table(A, pods=[on("a", "leaving", terminating=True), on("a", "low", 1)])

    outcome = preempt(important("4"), table)

    assert set(outcome.victims) == {"leaving", "low"}
    assert [victim.name for victim in outcome.client.evicted] == ["low"]


def test_less_important_pods_lose_their_nomination_to_the_node() -> None:
    low, peer = make_pod("low", priority=1), make_pod("peer", priority=100)
    elsewhere = make_pod("elsewhere", priority=1)
    table = make_table(A, make_node("b"), pods=[on("a", "x", cpu="4"), on("b", "y", 100, cpu="4")])

    outcome = preempt(important(), table, nominated={"a": [low, peer], "b": [elsewhere]})

    assert outcome.account.cleared == outcome.client.cleared == [low]
    assert outcome.handle.nominator.nominated_pods("a") == [peer]
    assert outcome.handle.nominator.nominated_pods("b") == [elsewhere]


def test_nominations_stay_when_every_victim_is_leaving_already() -> None:
    rival = make_pod("rival", priority=1)
    table = make_table(A, pods=[on("a", "leaving", cpu="4", terminating=True)])

    outcome = preempt(important(), table, nominated={"a": [rival]})

    assert outcome.result.nominated_node_name == "a"
    assert outcome.client.cleared == []
    assert outcome.client.evicted == []


def test_pods_nominated_to_the_node_keep_their_place() -> None:
    nominated = make_pod("nominated", priority=100, cpu="2")
    table = make_table(A, pods=[on("a", "low"), on("a", "mid", 2)])

    outcome = preempt(important(), table, nominated={"a": [nominated]})

    assert set(outcome.victims) == {"low", "mid"}  # room for both


# When a filter fails


class FailsOn(FilterPlugin):
    """A filter that works at first, and fails in the dry run on some nodes."""

    name = "FailsOn"

    def __init__(self, *names: str) -> None:
        self._names = names

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        is_copy = node.table is not self.handle.table
        if not is_copy or node.name not in self._names:
            return SUCCESS
        return failure("broken" if node.name in "ab" else f"broken on {node.name}")


FULL = make_table(
    make_node("a"), make_node("b"), pods=[on("a", "x", cpu="4"), on("b", "y", 9, cpu="4")]
)


def test_an_error_on_one_node_leaves_the_others() -> None:
    outcome = preempt(important(), FULL, more=[FailsOn("a")])

    assert outcome.status == SUCCESS
    assert outcome.result.nominated_node_name == "b"


def test_errors_on_all_nodes_are_an_error() -> None:
    outcome = preempt(important(), FULL, more=[FailsOn("a", "b")])

    assert outcome.status.code is Code.Error
    text = 'running "FailsOn" filter plugin: broken'
    assert outcome.status.message == f"preemption: {text}"
    assert outcome.client.evicted == []
    account = outcome.result.preemption
    assert account is not None
    rejected = Status(Code.Error, (text,), "FailsOn")
    assert account.rejected == {"a": rejected, "b": rejected}


def test_different_errors_are_told_together() -> None:
    table = make_table(
        *(make_node(name) for name in "abcd"), pods=[on(name, name, cpu="4") for name in "abcd"]
    )

    outcome = preempt(important(), table, more=[FailsOn("a", "b", "c", "d")])

    told = outcome.status.message.removeprefix("preemption: [").removesuffix("]").split(", ")
    text = 'running "FailsOn" filter plugin: broken'
    assert sorted(told) == [text, f"{text} on c", f"{text} on d"]
