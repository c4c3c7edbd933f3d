"""PodTopologySpread: each rule of Filter and Score, and where default constraints come from."""

from typing import Any

import pytest

from bayplan.api.affinity import TopologySpreadConstraint
from bayplan.api.node import Node
from bayplan.api.pod import Pod, PodSpec
from bayplan.api.selectors import LabelSelector, Requirement
from bayplan.framework import SKIP, Code, CycleState, Status
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.table import ALL
from tests.plugins.spread_cluster import (
    ABC,
    APP_WEB,
    FITS,
    HOSTNAME,
    LACKING,
    SOFT,
    UNEVEN,
    ZONE,
    constraint,
    make_writer,
    web_pod,
    webs,
    zone_node,
)


def filtered(pod: Pod, nodes: list[Node], pods: list[Pod]) -> list[Status] | None:
    """The status of each node; None where the filter is skipped."""
    table, state = make_writer(nodes, pods).table, CycleState()
    if PLUGIN.pre_filter(state, pod, table) == SKIP:
        return None
    verdict = PLUGIN.filter_rows(state, pod, table, ALL)
    return [verdict.status(position) for position in range(len(nodes))]


PLUGIN = PodTopologySpread()  # one for all tests: its caches must not leak into the next pod


@pytest.mark.parametrize(
    ("pod", "counts", "expected"),
    [
        pytest.param(
            web_pod("p", "", constraint(1)),
            {"a": 3, "b": 1},
            [UNEVEN, UNEVEN, FITS],
            id="only the emptiest domain keeps the skew",
        ),
        pytest.param(
            web_pod("p", "", constraint(2)), {"a": 3, "b": 1}, [UNEVEN, FITS, FITS], id="skew 2"
        ),
        pytest.param(
            web_pod("p", "", constraint(1), metadata={"labels": {}}),
            {"a": 3, "b": 1},
            [UNEVEN, FITS, FITS],
            id="a pod that does not match itself adds nothing",
        ),
        pytest.param(
            web_pod("p", "", constraint(1, minDomains=4)),
            {"a": 1, "b": 1, "c": 1},
            [UNEVEN] * 3,
            id="with too few domains the minimum is 0",
        ),
        pytest.param(
            web_pod("p", "", constraint(1, minDomains=3)),
            {"a": 1, "b": 1, "c": 1},
            [FITS] * 3,
            id="with enough domains it is not",
        ),
        pytest.param(
            web_pod("p", "", {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": SOFT}),
            {"a": 3},
            None,
            id="soft constraints do not filter",
        ),
        pytest.param(
            web_pod("p", "", constraint(1, labelSelector={})),
            {"a": 3},
            [FITS] * 3,
            id="an empty selector counts no pod",
        ),
        pytest.param(
            web_pod("p", "", constraint(1, labelSelector=None)),
            {"a": 3},
            [FITS] * 3,
            id="without a selector no pod counts",
        ),
        pytest.param(
            web_pod("p", "", constraint(1, HOSTNAME), constraint(1)),
            {"a": 1, "b": 1},
            [UNEVEN, UNEVEN, FITS],
            id="two constraints",
        ),
    ],
)
def test_filter(pod: Pod, counts: dict[str, int], expected: list[Status] | None) -> None:
    assert filtered(pod, ABC, webs(counts)) == expected


def test_filter_counts_neither_other_namespaces_nor_pods_being_deleted() -> None:
    pods = webs({"a": 1}, metadata={"namespace": "other"})
    pods += webs({"b": 1}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert filtered(web_pod("p", "", constraint(1)), ABC, pods) == [FITS] * 3


def test_a_node_without_a_key_is_refused_and_counts_for_no_constraint() -> None:
    nodes = [zone_node("a", "a"), zone_node("b", "b"), zone_node("bare")]
    pods = webs({"a": 1, "b": 1, "bare": 3})

    both = filtered(web_pod("p", "", constraint(1, HOSTNAME), constraint(1)), nodes, pods)

    assert both == [FITS, FITS, LACKING], "bare is not the fullest host: it does not count"


def test_the_first_constraint_that_is_broken_gives_the_reason() -> None:
    racked = {"rack": "r"}
    nodes = [zone_node("a", "a", labels=racked), zone_node("b", "b", labels=racked)]
    nodes += [zone_node("x", "a")]
    zone, rack = constraint(1), constraint(9, "rack")

    for order, reason in (((zone, rack), UNEVEN), ((rack, zone), LACKING)):
        statuses = filtered(web_pod("p", "", *order), nodes, webs({"a": 2}))
        assert statuses == [UNEVEN, FITS, reason]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param({}, [FITS, FITS, UNEVEN], id="affinity honoured, taints ignored"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, [UNEVEN, UNEVEN, UNEVEN], id="both ignored"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, [FITS, FITS, FITS], id="both honoured"),
    ],
)
def test_inclusion_policies(policies: dict[str, str], expected: list[Status]) -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    nodes = [
        zone_node("a", "a", labels={"pool": "x"}),
        zone_node("b", "b", labels={"pool": "x"}),
        zone_node("c", "c", labels={"pool": "x"}, taints=[taint]),
        zone_node("d", "d"),
    ]
    pod = web_pod("p", "", constraint(1, **policies), nodeSelector={"pool": "x"})

    statuses = filtered(pod, nodes, webs({"a": 1, "b": 1, "c": 2}))

    assert statuses is not None
    assert statuses[:3] == expected


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(APP_WEB, id="not merged yet"),
        pytest.param(
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}],
            },
            id="merged by the API server",
        ),
    ],
)
def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(selector: Any) -> None:
    keyed = constraint(1, labelSelector=selector, matchLabelKeys=["hash", "absent"])
    new = {"labels": {"app": "web", "hash": "1"}}
    old = {"labels": {"app": "web", "hash": "0"}}
    pods = webs({"a": 3}, metadata=old) + webs({"b": 1}, metadata=new)

    assert filtered(web_pod("p", "", keyed, metadata=new), ABC, pods) == [FITS, UNEVEN, FITS]
    if selector is APP_WEB:
        assert filtered(web_pod("p", "", keyed, metadata=old), ABC, pods) == [UNEVEN, FITS, FITS]


def test_eligible_nodes_follow_changes_of_the_nodes() -> None:
    writer, pod = make_writer(ABC, webs({"a": 1, "b": 1})), web_pod("p", "", constraint(1))
    for node, feasible in ((ABC[2], [False, False, True]), (zone_node("c"), [True, True, False])):
        writer.set_node(node)
        state = CycleState()
        PLUGIN.pre_filter(state, pod, writer.table)
        assert PLUGIN.filter_rows(state, pod, writer.table, ALL).feasible.tolist() == feasible


def test_pre_filter_fails_on_a_selector_it_cannot_parse() -> None:
    selector = LabelSelector(match_expressions=(Requirement(key="app", operator="Near"),))
    bad = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=selector,
    )
    pod = Pod("p", spec=PodSpec(topology_spread_constraints=(bad,)))

    status = PodTopologySpread().pre_filter(CycleState(), pod, make_writer(ABC).table)

    assert isinstance(status, Status)
    assert status.code is Code.Error


@pytest.mark.parametrize(
    ("removed", "status"),
    [
        pytest.param([web_pod("a-0", "a")], FITS, id="a victim makes room"),
        pytest.param([web_pod("x", "a", metadata={"labels": {}})], UNEVEN, id="not matching"),
        pytest.param(
            [web_pod("x", "a", metadata={"namespace": "other"})], UNEVEN, id="other namespace"
        ),
        pytest.param(
            [web_pod("x", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            FITS,
            id="one being deleted was not counted, but is taken away",
        ),
    ],
)
def test_remove_pod(removed: list[Pod], status: Status) -> None:
    table, state = make_writer(ABC, webs({"a": 2, "b": 1, "c": 1})).table, CycleState()
    pod, plugin = web_pod("p", "", constraint(1)), PodTopologySpread()
    plugin.pre_filter(state, pod, table)
    node, what_if = table.fork_row(0).node_at(0), state.clone()

    for victim in removed:
        plugin.remove_pod(what_if, pod, victim, node)

    assert plugin.filter_node(what_if, pod, node) == status
    assert plugin.filter_rows(what_if, pod, node.table, ALL).status(0) == status
    assert plugin.filter_rows(state, pod, table, ALL).status(0) == UNEVEN


@pytest.mark.parametrize(
    ("selector", "status"),
    [
        pytest.param(APP_WEB, UNEVEN, id="a matching pod takes the room"),
        pytest.param({}, UNEVEN, id="an empty selector takes the pod in, and matches itself"),
        pytest.param(None, FITS, id="without a selector no pod matches"),
        pytest.param({"matchLabels": {"app": "db"}}, FITS, id="not matching"),
    ],
)
def test_add_pod(selector: Any, status: Status) -> None:
    table, state, plugin = make_writer(ABC).table, CycleState(), PodTopologySpread()
    pod = web_pod("p", "", constraint(1, labelSelector=selector))
    plugin.pre_filter(state, pod, table)
    node = table.fork_row(0).node_at(0)

    plugin.add_pod(state, pod, web_pod("nominated"), node)

    assert plugin.filter_node(state, pod, node) == status
