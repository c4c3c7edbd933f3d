"""DefaultPreemption: judged together, nodes get the answers they get one by one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
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
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.runtime.filter_plugins import Filtering
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_object, make_pod, make_table
from tests.plugins.preemption import equip
from tests.rig.random_examples import examples

PRIORITIES = st.sampled_from([-5, 0, 0, 10, 50, 100])
APPS = st.sampled_from([None, {"app": "a"}, {"app": "b"}])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[NodeTable, list[Any], dict[str, list[Pod]], Pod]:
    """A small, crowded cluster with budgets and nominated pods, and a pod of some importance."""
    nodes, pods = [], []
    for number in range(draw(st.integers(1, 5))):
        name = f"node-{number}"
        taints = draw(st.sampled_from([[], [], [], ["gpu:NoSchedule"]]))
        nodes.append(
            make_node(name, cpu="4", memory="8Gi", pods=draw(st.integers(1, 6)), taints=taints)
        )
        for index in range(draw(st.integers(0, 5))):
            start = draw(st.integers(0, 59))
            status = {"startTime": f"2024-01-01T00:{number:02d}:{start:02d}Z"}
            pods.append(
                make_pod(
                    f"p{number}-{index}",
                    node_name=name,
                    cpu=draw(st.sampled_from([None, "500m", "1", "2"])),
                    memory=draw(st.sampled_from([None, "1Gi", "4Gi"])),
                    priority=draw(PRIORITIES),
                    labels=draw(APPS),
                    status=status if draw(st.booleans()) else None,
                )
            )
    budgets = [
        make_object(
            "PodDisruptionBudget",
            f"pdb-{app}",
            spec={"selector": {"matchLabels": {"app": app}}},
            status={
                "disruptionsAllowed": draw(st.integers(0, 2)),
                "disruptedPods": draw(st.sampled_from([{}, {"p0-0": "2024-01-01T00:00:00Z"}])),
            },
        )
        for app in draw(st.sampled_from([(), ("a",), ("a", "b")]))
    ]
    rivals = {
        f"node-{number}": [make_pod(f"rival-{number}", cpu="1", priority=draw(PRIORITIES))]
        for number in draw(st.sets(st.integers(0, 4), max_size=2))
    }
    wanted = make_pod(
        "wanted",
        cpu=draw(st.sampled_from(["1", "3", "4", "9"])),
        memory=draw(st.sampled_from([None, "2Gi", "8Gi"])),
        priority=draw(st.sampled_from([1, 60, 200])),
    )
    return make_table(*nodes, pods=pods), budgets, rivals, wanted


def preempt(case: tuple[NodeTable, list[Any], dict[str, list[Pod]], Pod], together: bool) -> Any:
    """The decision; None when the pod fits somewhere."""
    table, budgets, rivals, pod = case
    handle = make_handle(table, budgets, nominated={name: list(p) for name, p in rivals.items()})
    plugin = DefaultPreemption(min_percentage=100, min_absolute=100)
    filtering = equip(plugin, handle, [TaintToleration(), NodeResourcesFit()])
    with patch.object(filtering, "demands", filtering.demands if together else lambda *_: None):
        state, diagnosis = CycleState(), Diagnosis(table, node_count=table.node_count)
        filtering.run_pre_filters(state, pod, table)
        filtering.diagnose(state, pod, table, ALL, diagnosis)
        if (diagnosis.codes() == 0).any():  # codes of nodes judged with nominated pods included
            return None
        result, status = plugin.post_filter(state, pod, diagnosis)
    statuses = [diagnosis.status_of(row) for row in range(len(table))]
    account = result.preemption
    assert account is not None
    chosen = account.chosen
    victims = None if chosen is None else ([p.name for p in chosen.pods], chosen.pdb_violations)
    return (
        result.nominated_node_name,
        status.code,
        status.reasons,
        account.reasons,
        victims,
        statuses,
    )


@settings(max_examples=examples(70), deadline=None)
@given(case=clusters())
def test_together_and_one_by_one_decide_alike(
    case: tuple[NodeTable, list[Any], dict[str, list[Pod]], Pod],
) -> None:
    assert preempt(case, together=True) == preempt(case, together=False)


class Picky(FilterPlugin):
    """Refuses some nodes by their objects, after the fit rule's plugin."""

    name = "Picky"
    scope = NODE_OBJECT

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if node.labels.get("disk") == "ssd" else unschedulable("no ssd")


@pytest.mark.parametrize("is_last", [True, False])
def test_a_node_that_another_filter_refuses_is_no_candidate(is_last: bool) -> None:
    """Also if that filter runs after the filter whose refusal is resolvable, so that the message does not name it."""
    pods = [make_pod(f"p{n}", node_name=f"n{n}", cpu="4", priority=n) for n in range(2)]
    nodes = [make_node("n0", cpu="4"), make_node("n1", cpu="4", labels={"disk": "ssd"})]
    table = make_table(*nodes, pods=pods)
    handle, picky, fit = make_handle(table), Picky(), NodeResourcesFit()
    filters = [fit, picky] if is_last else [picky, fit]
    for made in filters:
        made.handle = handle
    handle.filters = filtering = Filtering([fit], filters, (), handle.nominator)
    plugin = DefaultPreemption()
    plugin.handle = handle
    state, diagnosis = CycleState(), Diagnosis(table, node_count=2)
    wanted = make_pod("wanted", cpu="4", priority=9)
    filtering.run_pre_filters(state, wanted, table)
    filtering.diagnose(state, wanted, table, ALL, diagnosis)

    result, _ = plugin.post_filter(state, wanted, diagnosis)

    assert result.nominated_node_name == "n1", "the victim on n0 is less important"


def test_the_last_place_on_a_node_is_the_nominated_pods() -> None:
    """One pod more or less decides: a node for two pods, one there, one nominated."""
    there = make_pod("there", node_name="node-0", cpu="1", priority=500)
    table = make_table(make_node("node-0", cpu="4", pods=2), pods=[there])
    rivals = {"node-0": [make_pod("rival", cpu="1", priority=300)]}
    case: Any = (table, [], rivals, make_pod("wanted", cpu="1", priority=200))

    together = preempt(case, together=True)

    assert together is not None, "the pod must not fit"
    assert together == preempt(case, together=False)
