"""ServiceAffinity: pods of a service where the first of them went, spread over other labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.config.plugin_args import ServiceAffinityArgs
from bayplan.framework import SKIP, SUCCESS, CycleState, Status, unschedulable
from bayplan.plugins.legacy.service_affinity import NODE_NOT_FOUND, REASON, ServiceAffinity
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_object, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree
from tests.rig.scenarios import Scenario

APP = {"app": "web"}
SERVICE = make_object("Service", "web", namespace="default", spec={"selector": APP})
REGION = ServiceAffinityArgs(affinity_labels=("region",))
NODES = (
    make_node("r1a", labels={"region": "r1", "rack": "a"}),
    make_node("r1b", labels={"region": "r1", "rack": "b"}),
    make_node("r2", labels={"region": "r2", "rack": "a"}),
    make_node("bare"),
)


def on(node_name: str, name: str = "there", **fields: Any) -> Pod:
    return make_pod(name, node_name=node_name, **{"labels": APP, **fields})


def make_plugin(args: ServiceAffinityArgs, table: NodeTable, *objects: Any) -> ServiceAffinity:
    return ServiceAffinity.from_args(args, make_handle(table, objects or [SERVICE]))


def filtered(plugin: ServiceAffinity, pod: Pod, table: NodeTable) -> list[Status]:
    state = CycleState()
    assert plugin.pre_filter(state, pod, table) == SUCCESS
    check_rows_agree(plugin, pod, table)
    verdict = plugin.filter_rows(state, pod, table, ALL)
    return [verdict.status(row) for row in range(len(table))]


@pytest.mark.parametrize(
    ("pod", "pods", "feasible"),
    [
        pytest.param(make_pod(labels=APP), [], "1111", id="the first pod goes anywhere"),
        pytest.param(make_pod(labels=APP), [on("r1a")], "1100", id="then where the first went"),
        pytest.param(make_pod(labels=APP), [on("bare")], "1111", id="whose node lacks the label"),
        pytest.param(
            make_pod(labels=APP), [on("r2", "2"), on("r1a", "1")], "1100", id="first by node order"
        ),
        pytest.param(
            make_pod(labels=APP, node_selector={"region": "r2"}),
            [on("r1a")],
            "0010",
            id="the pod's own selector goes before",
        ),
        pytest.param(make_pod(labels={"x": "y"}), [on("r1a")], "1111", id="not in the service"),
        pytest.param(
            make_pod(labels={**APP, "x": "y"}), [on("r1a")], "1111", id="pods must have all labels"
        ),
        pytest.param(
            make_pod(labels=APP), [on("r1a", labels={**APP, "x": "y"})], "1100", id="or more"
        ),
        pytest.param(
            make_pod(labels=APP), [on("r1a", namespace="other")], "1111", id="other namespaces"
        ),
        pytest.param(
            make_pod(labels=APP), [on("r2", terminating=True)], "0010", id="leaving pods count"
        ),
    ],
)
def test_filter(pod: Pod, pods: list[Pod], feasible: str) -> None:
    table = make_table(*NODES, pods=pods)

    statuses = filtered(make_plugin(REGION, table), pod, table)

    assert statuses == [SUCCESS if letter == "1" else unschedulable(REASON) for letter in feasible]


@pytest.mark.parametrize(
    ("selector", "feasible"),
    [
        pytest.param({}, [True, False, False, False], id="both from the first pod's node"),
        pytest.param({"rack": "b"}, [False, True, False, False], id="one given, one taken over"),
    ],
)
def test_labels_that_the_pod_does_not_name_are_taken_over(
    selector: dict[str, str], feasible: list[bool]
) -> None:
    table = make_table(*NODES, pods=[on("r1a")])
    args = ServiceAffinityArgs(affinity_labels=("region", "rack"))

    statuses = filtered(
        make_plugin(args, table), make_pod(labels=APP, node_selector=selector), table
    )

    assert [status.is_success for status in statuses] == feasible


def test_without_affinity_labels_it_does_not_filter() -> None:
    table = make_table(*NODES)

    plugin = make_plugin(ServiceAffinityArgs(), table)

    assert plugin.pre_filter(CycleState(), make_pod(labels=APP), table) == SKIP


def test_the_first_node_is_the_first_in_the_snapshots_order() -> None:
    table = make_table(*NODES, pods=[on("r1a", "1"), on("r2", "2")])
    plugin = make_plugin(REGION, table)
    plugin.handle = replace(plugin.handle, node_order=lambda: np.array([3, 2, 1, 0]))

    statuses = filtered(plugin, make_pod(labels=APP), table)

    assert [status.is_success for status in statuses] == [False, False, True, False]


class WhatIf:
    """The plugin's state for one pod, with pods taken away and put back."""

    def __init__(self, *pods: Pod) -> None:
        self.table = make_table(*NODES, pods=pods)
        self.plugin = make_plugin(REGION, self.table)
        self.pod = make_pod(labels=APP)
        self.state = CycleState()
        self.plugin.pre_filter(self.state, self.pod, self.table)

    def remove(self, pod: Pod) -> None:
        node = self.table.node_at(0)
        assert self.plugin.remove_pod(self.state, self.pod, pod, node) == SUCCESS

    def add(self, pod: Pod) -> None:
        node = self.table.node_at(0)
        assert self.plugin.add_pod(self.state, self.pod, pod, node) == SUCCESS

    def feasible(self) -> str:
        verdict = self.plugin.filter_rows(self.state, self.pod, self.table, ALL)
        return "".join("01"[bool(fits)] for fits in verdict.feasible)


def test_a_pod_that_is_taken_away_no_longer_decides() -> None:
    what_if = WhatIf(on("r1a", "1"), on("r2", "2"))
    before = what_if.state.clone()

    what_if.remove(on("r1a", "1"))
    assert what_if.feasible() == "0010"
    what_if.remove(on("r2", "2"))
    assert what_if.feasible() == "1111"

    what_if.state = before
    assert what_if.feasible() == "1100", "a clone keeps what it had"


def test_a_pod_that_is_put_back_stands_last() -> None:
    what_if = WhatIf(on("r1a", "1"), on("r2", "2"))

    what_if.remove(on("r1a", "1"))
    what_if.add(on("r1a", "1"))
    assert what_if.feasible() == "0010"
    what_if.remove(on("r2", "2"))
    assert what_if.feasible() == "1100"
    what_if.remove(on("r1a", "1"))
    assert what_if.feasible() == "1111"


def test_pods_that_are_not_alike_make_no_difference() -> None:
    what_if = WhatIf(on("r1a", "1"))

    what_if.remove(on("r1a", "other", labels={"x": "y"}))
    what_if.add(on("r2", "third", namespace="other"))

    assert what_if.feasible() == "1100"


def test_a_pod_that_names_no_node_is_an_error() -> None:
    what_if = WhatIf()
    what_if.add(make_pod("nominated", labels=APP))

    verdict = what_if.plugin.filter_rows(what_if.state, what_if.pod, what_if.table, ALL)

    assert verdict.error is not None
    assert verdict.error.message == NODE_NOT_FOUND


@pytest.mark.parametrize(
    ("labels", "pods", "scores"),
    [
        pytest.param((), "r1a r1b", [0, 0, 0, 0], id="no label to spread over"),
        pytest.param(("region",), "", [100, 100, 100, 0], id="no pods: all nodes with the label"),
        pytest.param(("region",), "r1a r1b r2", [33, 33, 66, 0], id="by region"),
        pytest.param(("region",), "r1a bare", [50, 50, 100, 0], id="pods outside count in all"),
        pytest.param(("region", "rack"), "r1a", [0, 50, 50, 0], id="the mean of two labels"),
        pytest.param(
            ("region", "rack"), "r1a r1b r2", [33, 49, 49, 0], id="thirds that just miss 50"
        ),
    ],
)
def test_score(labels: tuple[str, ...], pods: str, scores: list[int]) -> None:
    there = [on(node, f"p{i}") for i, node in enumerate(pods.split())]
    table = make_table(
        *NODES,
        pods=[
            *there,
            on("r2", "leaving", terminating=True),
            on("r2", "elsewhere", namespace="other"),
        ],
    )
    plugin = make_plugin(ServiceAffinityArgs((), labels), table)
    pod, state = make_pod(labels={**APP, "more": "x"}), CycleState()

    raw = plugin.score_rows(state, pod, table, ALL)

    assert plugin.normalize_rows(state, pod, table, ALL, raw).tolist() == scores
    check_rows_agree(plugin, pod, table)


def test_only_the_first_service_counts() -> None:
    table = make_table(*NODES, pods=[on("r1a")])
    first = make_object("Service", "a", namespace="default", spec={"selector": {"x": "y"}})
    plugin = make_plugin(REGION, table, first, SERVICE)
    pod = make_pod(labels={**APP, "x": "y"})

    assert plugin.score_rows(CycleState(), pod, table, ALL).tolist() == [0, 0, 0, 0]


def test_a_whole_service_ends_in_one_region() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "ServiceAffinity"}]}}
    args = {"affinityLabels": ["region"], "antiAffinityLabelsPreference": ["rack"]}
    config = [{"name": "ServiceAffinity", "args": args}]
    scenario = Scenario(SERVICE, *NODES[:3], profile={"plugins": plugins, "pluginConfig": config})
    scenario.add(*(make_pod(f"p{i}", labels=APP, cpu="1") for i in range(4)))

    placed = [attempt.node_name for attempt in scenario.run()]

    assert sorted(placed) == ["r1a", "r1a", "r1b", "r1b"]


def test_conformance() -> None:
    table = make_table(*NODES, pods=[on("r1a"), on("r2", "2")])
    pods = [make_pod(labels=APP), make_pod("x"), make_pod("y", node_selector={"region": "r2"})]
    args = ServiceAffinityArgs(("region",), ("rack", "region"))
    check_conformance(ServiceAffinity, pods, table, args, [SERVICE])
