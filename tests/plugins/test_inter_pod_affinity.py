"""InterPodAffinity: each rule of Filter and Score."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Affinity, Pod, PodAffinityTerm, PodAntiAffinity, PodSpec
from bayplan.api.selectors import LabelSelector, Requirement
from bayplan.config.plugin_args import InterPodAffinityArgs
from bayplan.framework import SKIP, CycleState, Handle, Status, unresolvable, unschedulable
from bayplan.plugins.inter_pod_affinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_object, make_pod

AFFINITY = unresolvable(REASON_AFFINITY)
ANTI_AFFINITY = unschedulable(REASON_ANTI_AFFINITY)
EXISTING = unschedulable(REASON_EXISTING_ANTI_AFFINITY)
FITS = Status()

APP_DB = {"matchLabels": {"app": "db"}}
APP_WEB = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMESPACES: dict[str, dict[str, str]] = {"default": {}, "blue": {"team": "blue"}, "bare": {}}


def labelled_node(name: str, **labels: str) -> Node:
    node: Node = make_object("Node", name, metadata={"labels": labels})
    return node


def affine_pod(
    name: str,
    node: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    **kinds: list[dict[str, Any]],
) -> Pod:
    """A pod; `kinds` are affinity, anti_affinity, preferred, preferred_anti: lists of terms."""
    wishes = {
        "podAffinity": {
            REQUIRED: kinds.get("affinity", []),
            PREFERRED: kinds.get("preferred", []),
        },
        "podAntiAffinity": {
            REQUIRED: kinds.get("anti_affinity", []),
            PREFERRED: kinds.get("preferred_anti", []),
        },
    }
    return make_pod(
        name,
        node_name=node,
        namespace=namespace,
        uid=name,
        labels=labels,
        affinity=wishes if kinds else None,
    )


def term(selector: Any = None, key: str = "zone", **fields: Any) -> dict[str, Any]:
    given_selector = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": key, **given_selector, **fields}


def wish(weight: int, selector: Any = None, key: str = "zone", **fields: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(selector, key, **fields)}


def make_writer(nodes: Iterable[Node], pods: Iterable[Pod]) -> TableWriter:
    writer = TableWriter(NodeTable())
    for node in nodes:
        writer.set_node(node)
    for pod in pods:
        writer.add_pod(pod)
    for name, labels in NAMESPACES.items():
        writer.set_namespace(name, labels)
    return writer


NODES = [
    labelled_node("a1", zone="a", host="a1"),
    labelled_node("a2", zone="a", host="a2"),
    labelled_node("b1", zone="b", host="b1"),
    labelled_node("c1", host="c1"),
]
DB_ON_A1 = affine_pod("db", "a1", labels={"app": "db"})


def filtered(pod: Pod, *others: Pod) -> list[Status]:
    """The status of each node; a skipped filter lets every node pass."""
    table, state, plugin = make_writer(NODES, others).table, CycleState(), InterPodAffinity()
    if plugin.pre_filter(state, pod, table) == SKIP:
        return [FITS] * len(NODES)
    verdict = plugin.filter_rows(state, pod, table, ALL)
    rows = np.array([1, 3], dtype=np.int64)
    some = plugin.filter_rows(state, pod, table, rows)
    assert [some.status(i) for i in range(2)] == [verdict.status(1), verdict.status(3)]
    statuses = [verdict.status(position) for position in range(len(NODES))]
    one_by_one = [plugin.filter_node(state, pod, table.node_at(i)) for i in range(len(NODES))]
    assert one_by_one == statuses
    return statuses


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(
            affine_pod("p", affinity=[term(APP_DB)]),
            [DB_ON_A1],
            [FITS, FITS, AFFINITY, AFFINITY],
            id="affinity is met in the whole domain of a matching pod, not without the key",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "db"}, affinity=[term(APP_DB)]),
            [],
            [FITS, FITS, FITS, AFFINITY],
            id="the first of a group may go anywhere that has the key",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "db"}, affinity=[term(APP_DB)]),
            [affine_pod("db", "ghost", labels={"app": "db"})],
            [FITS, FITS, FITS, AFFINITY],
            id="a matching pod on a node that is not there does not count",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "db"}, affinity=[term(APP_DB)]),
            [DB_ON_A1],
            [FITS, FITS, AFFINITY, AFFINITY],
            id="the second of a group is not free",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "db"}, affinity=[term(APP_DB), term(APP_DB, "host")]),
            [affine_pod("db", "c1", labels={"app": "db"})],
            [AFFINITY, AFFINITY, AFFINITY, AFFINITY],
            id="a match counted for one key only ends the exception too",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "web"}, affinity=[term(APP_DB)]),
            [],
            [AFFINITY] * 4,
            id="a pod that does not match its own term is not the first of a group",
        ),
        pytest.param(
            affine_pod("p", affinity=[term(APP_DB), term({"matchLabels": {"tier": "x"}})]),
            [DB_ON_A1, affine_pod("x", "a1", labels={"tier": "x"})],
            [AFFINITY] * 4,
            id="two pods that match one term each do not make a match",
        ),
        pytest.param(
            affine_pod("p", affinity=[term(APP_DB), term({"matchLabels": {"tier": "x"}}, "host")]),
            [affine_pod("both", "a1", labels={"app": "db", "tier": "x"})],
            [FITS, AFFINITY, AFFINITY, AFFINITY],
            id="one pod that matches both terms does",
        ),
        pytest.param(
            affine_pod("p", affinity=[term({}, namespaces=[n]) for n in ("blue", "bare")]),
            [affine_pod("o", "a1", "blue")],
            [AFFINITY] * 4,
            id="one pod must be in the namespaces of both terms",
        ),
        pytest.param(
            affine_pod("p", anti_affinity=[term(APP_DB)]),
            [DB_ON_A1],
            [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS],
            id="anti-affinity refuses the domain, a node without the key passes",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "web"}),
            [affine_pod("db", "a1", anti_affinity=[term(APP_WEB)])],
            [EXISTING, EXISTING, FITS, FITS],
            id="the anti-affinity of a pod already there is respected",
        ),
        pytest.param(
            affine_pod("p", labels={"app": "web"}, anti_affinity=[term(APP_DB, "host")]),
            [affine_pod("db", "a1", labels={"app": "db"}, anti_affinity=[term(APP_WEB)])],
            [ANTI_AFFINITY, EXISTING, FITS, FITS],
            id="the pod's own anti-affinity is named before that of others",
        ),
        pytest.param(
            affine_pod("p", affinity=[term(APP_WEB)], anti_affinity=[term(APP_DB)]),
            [DB_ON_A1],
            [AFFINITY] * 4,
            id="affinity is named before anti-affinity",
        ),
        pytest.param(
            affine_pod("p", anti_affinity=[term(None)]), [DB_ON_A1], [FITS] * 4, id="no selector"
        ),
        pytest.param(
            affine_pod("p", anti_affinity=[term({})]),
            [DB_ON_A1],
            [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS],
            id="an empty selector selects every pod of the namespace",
        ),
        pytest.param(
            affine_pod("p", anti_affinity=[term(APP_DB)]),
            [affine_pod("db", "a1", "blue", {"app": "db"})],
            [FITS] * 4,
            id="without namespaces a term speaks of its own namespace",
        ),
    ],
)
def test_filter(pod: Pod, others: list[Pod], expected: list[Status]) -> None:
    assert filtered(pod, *others) == expected


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({}, {"default"}, id="nothing said: the pod's own namespace"),
        pytest.param({"namespaces": ["blue"]}, {"blue"}, id="a list replaces it"),
        pytest.param(
            {"namespaceSelector": {}}, {"default", "blue", "bare"}, id="empty selector: all"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "blue"}}}, {"blue"}, id="by label"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "blue"}}, "namespaces": ["bare"]},
            {"blue", "bare"},
            id="list and selector add up",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]
                }
            },
            {"default", "blue", "bare"},
            id="a selector of absences alone means every namespace",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "team", "operator": "Exists"},
                        {"key": "team", "operator": "NotIn", "values": ["red"]},
                    ]
                }
            },
            {"blue"},
            id="a selector with a presence is resolved",
        ),
    ],
)
def test_namespaces_of_the_incoming_pod(fields: dict[str, Any], seen: set[str]) -> None:
    pod = affine_pod("p", anti_affinity=[term({}, **fields)])

    hit = {ns for ns in NAMESPACES if filtered(pod, affine_pod("o", "a1", ns))[0] == ANTI_AFFINITY}

    assert hit == seen


def test_terms_of_existing_pods_use_the_labels_of_the_incoming_pods_namespace() -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    other = affine_pod("o", "a1", "bare", anti_affinity=[term({}, namespaceSelector=selector)])

    assert filtered(affine_pod("p", namespace="blue"), other)[0] == FITS
    assert filtered(affine_pod("p", namespace="default"), other)[0] == EXISTING


def test_namespaces_are_resolved_again_when_they_change() -> None:
    selector = {"matchLabels": {"team": "blue"}}
    pod = affine_pod("p", anti_affinity=[term({}, namespaceSelector=selector)])
    writer, plugin = make_writer(NODES, [affine_pod("o", "a1", "bare")]), InterPodAffinity()

    def refused() -> bool:
        state = CycleState()
        plugin.pre_filter(state, pod, writer.table)
        return not plugin.filter_rows(state, pod, writer.table, ALL).feasible[0]

    assert not refused()
    writer.set_namespace("bare", {"team": "blue"})
    assert refused()


@pytest.mark.parametrize(
    ("pod", "others", "skipped"),
    [
        pytest.param(affine_pod("p"), [DB_ON_A1], True, id="no pod has terms"),
        pytest.param(affine_pod("p", preferred=[wish(1, APP_DB)]), [], True, id="only preferences"),
        pytest.param(affine_pod("p", affinity=[term(APP_DB)]), [], False, id="own affinity"),
        pytest.param(
            affine_pod("p", anti_affinity=[term(None)]), [], False, id="own anti-affinity"
        ),
        pytest.param(
            affine_pod("p"),
            [affine_pod("o", "a1", anti_affinity=[term({})])],
            False,
            id="an existing pod objects",
        ),
        pytest.param(
            affine_pod("p"),
            [affine_pod("o", "c1", anti_affinity=[term({})])],
            True,
            id="an existing pod objects on a node without the key",
        ),
    ],
)
def test_pre_filter_skip(pod: Pod, others: list[Pod], skipped: bool) -> None:
    table = make_writer(NODES, others).table

    assert (InterPodAffinity().pre_filter(CycleState(), pod, table) == SKIP) is skipped


def test_pre_filter_refuses_a_selector_it_cannot_parse() -> None:
    selector = LabelSelector(match_expressions=(Requirement(key="app", operator="Near"),))
    anti = PodAntiAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(label_selector=selector, topology_key="zone"),
        )
    )
    pod = Pod("p", spec=PodSpec(affinity=Affinity(pod_anti_affinity=anti)))

    status = InterPodAffinity().pre_filter(CycleState(), pod, make_writer(NODES, []).table)

    assert isinstance(status, Status)
    assert status.code == AFFINITY.code
    assert status.message.startswith("parsing pod: ")


def test_removing_the_last_match_makes_the_pod_first_of_its_group() -> None:
    pod = affine_pod("p", labels={"app": "db"}, affinity=[term(APP_DB)])
    table, plugin, state = make_writer(NODES, [DB_ON_A1]).table, InterPodAffinity(), CycleState()
    plugin.pre_filter(state, pod, table)
    fork = table.fork_row(table.row_of["b1"])
    what_if = state.clone()

    plugin.remove_pod(what_if, pod, DB_ON_A1, table.fork_row(0).node_at(0))

    assert plugin.filter_node(what_if, pod, fork.node_at(0)) == FITS
    assert plugin.filter_rows(what_if, pod, fork, ALL).status(0) == FITS
    assert plugin.filter_rows(state, pod, table, ALL).status(2) == AFFINITY


def test_removing_the_avoided_pod_makes_room() -> None:
    pod = affine_pod("p", anti_affinity=[term(APP_DB)])
    table, plugin, state = make_writer(NODES, [DB_ON_A1]).table, InterPodAffinity(), CycleState()
    plugin.pre_filter(state, pod, table)
    node = table.fork_row(0).node_at(0)

    plugin.remove_pod(state, pod, DB_ON_A1, node)

    assert plugin.filter_node(state, pod, node) == FITS


def test_a_pod_added_in_a_what_if_objects_by_the_labels_of_the_namespace() -> None:
    selector = {"matchLabels": {"team": "blue"}}
    added = affine_pod("o", "a1", anti_affinity=[term({}, namespaceSelector=selector)])
    pod = affine_pod("p", namespace="blue", anti_affinity=[term(None)])
    table, plugin, state = make_writer(NODES, []).table, InterPodAffinity(), CycleState()
    plugin.pre_filter(state, pod, table)
    node = table.fork_row(0).node_at(0)

    plugin.add_pod(state, pod, added, node)

    assert plugin.filter_node(state, pod, node) == EXISTING


def scored(plugin: InterPodAffinity, pod: Pod, *others: Pod) -> list[int] | None:
    """Raw scores, or None when Score is skipped."""
    table, state = make_writer(NODES, others).table, CycleState()
    if plugin.pre_score(state, pod, table, ALL) == SKIP:
        return None
    points: list[int] = plugin.score_rows(state, pod, table, ALL).tolist()
    return points


WEB = affine_pod("p", labels={"app": "web"})


@pytest.mark.parametrize(
    ("pod", "others", "raw"),
    [
        pytest.param(WEB, [DB_ON_A1], None, id="no preference anywhere"),
        pytest.param(
            affine_pod("p", preferred=[wish(7, APP_DB)]), [], None, id="nothing to be near to"
        ),
        pytest.param(
            affine_pod("p", preferred=[wish(7, APP_DB)]),
            [DB_ON_A1, affine_pod("db2", "a2", labels={"app": "db"})],
            [14, 14, 0, 0],
            id="each pod in the domain counts",
        ),
        pytest.param(
            affine_pod("p", preferred=[wish(7, APP_DB)], preferred_anti=[wish(3, APP_DB, "host")]),
            [DB_ON_A1],
            [4, 7, 0, 0],
            id="anti-affinity takes away, keys add up",
        ),
        pytest.param(
            WEB,
            [affine_pod("o", "b1", affinity=[term(APP_WEB)])],
            [0, 0, 1, 0],
            id="required affinity of an existing pod has the hard weight",
        ),
        pytest.param(
            WEB,
            [affine_pod("o", "a1", preferred=[wish(5, APP_WEB)])],
            [5, 5, 0, 0],
            id="preferred affinity of an existing pod",
        ),
        pytest.param(
            WEB,
            [affine_pod("o", "a1", preferred_anti=[wish(5, APP_WEB, "host")])],
            [-5, 0, 0, 0],
            id="preferred anti-affinity of an existing pod",
        ),
        pytest.param(
            WEB,
            [affine_pod("o", "a1", anti_affinity=[term(APP_WEB)])],
            None,
            id="required anti-affinity does not score",
        ),
        pytest.param(
            WEB,
            [
                affine_pod("o", "a1", preferred=[wish(5, APP_WEB)]),
                affine_pod("u", "a1", preferred_anti=[wish(5, APP_WEB)]),
            ],
            [0, 0, 0, 0],
            id="wishes that cancel out are not the same as none",
        ),
        pytest.param(
            WEB,
            [affine_pod("o", "c1", preferred=[wish(5, APP_WEB)])],
            None,
            id="a carrier on a node without the key says nothing",
        ),
    ],
)
def test_score(pod: Pod, others: list[Pod], raw: list[int] | None) -> None:
    assert scored(InterPodAffinity(), pod, *others) == raw


def test_hard_weight_and_ignoring_existing_preferences() -> None:
    others = [
        affine_pod("o", "a1", affinity=[term(APP_WEB)]),
        affine_pod("u", "b1", preferred=[wish(5, APP_WEB)]),
    ]
    wishing = affine_pod("p", labels={"app": "web"}, preferred=[wish(2, {})])
    args = InterPodAffinityArgs(10, True)
    ignoring = InterPodAffinity.from_args(args, Handle(NodeTable()))

    assert scored(InterPodAffinity(10), WEB, *others) == [10, 10, 5, 0]
    assert scored(InterPodAffinity(0), WEB, *others) == [0, 0, 5, 0]
    assert scored(ignoring, WEB, *others) is None
    assert scored(ignoring, wishing, *others) == [12, 12, 7, 0]


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        pytest.param([5, -3, 0], [100, 0, 37], id="stretched and cut"),
        pytest.param([2, 2], [0, 0], id="no difference"),
        pytest.param([], [], id="no nodes"),
    ],
)
def test_normalize(raw: list[int], normalized: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)

    assert InterPodAffinity().normalize(scores).tolist() == normalized
