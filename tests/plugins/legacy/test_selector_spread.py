"""SelectorSpread: the pods of a Service or controller over nodes and zones."""

from typing import Any

import pytest

from bayplan.api.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from bayplan.api.pod import Pod
from bayplan.framework import SKIP, SUCCESS, CycleState
from bayplan.plugins.legacy.selector_spread import SelectorSpread, zone_ids
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import (
    ObjectLister,
    make_handle,
    make_node,
    make_object,
    make_pod,
    make_table,
)
from bayplan.testing.conformance import check_conformance, check_rows_agree

APP = {"app": "web"}
SERVICE = make_object("Service", "web", namespace="default", spec={"selector": APP})


def spread_table(*counts: tuple[int, str | None]) -> NodeTable:
    """Nodes with so many pods of the app, each in a zone or in none."""
    nodes = [make_node(f"n{i}", zone=zone) for i, (_, zone) in enumerate(counts)]
    pods = [
        make_pod(f"p{i}-{j}", labels=APP, node_name=f"n{i}")
        for i, (count, _) in enumerate(counts)
        for j in range(count)
    ]
    return make_table(*nodes, pods=pods)


def raw_and_scores(
    pod: Pod, table: NodeTable, *objects: Any, rows: Any = ALL
) -> tuple[list[int], list[int]]:
    plugin, state = SelectorSpread(), CycleState()
    plugin.handle = make_handle(table, objects)
    assert plugin.pre_score(state, pod, table, rows) == SUCCESS
    raw = plugin.score_rows(state, pod, table, rows)
    check_rows_agree(plugin, pod, table)
    return raw.tolist(), plugin.normalize_rows(state, pod, table, rows, raw).tolist()


@pytest.mark.parametrize(
    ("counts", "scores"),
    [
        pytest.param([(1, "a"), (2, "a"), (0, "b"), (1, "b")], [16, 0, 77, 61], id="two zones"),
        pytest.param([(1, None), (3, None)], [66, 0], id="no zones"),
        pytest.param([(0, None), (0, None)], [100, 100], id="no pods"),
        pytest.param([(0, "a"), (0, "b")], [100, 100], id="no pods, but zones"),
        pytest.param([(1, "a"), (1, None)], [0, 0], id="a node without a zone goes by itself"),
        pytest.param([(0, "a"), (0, None), (2, None)], [100, 100, 0], id="an empty zone"),
        pytest.param([(2, "a"), (0, "a")], [0, 33], id="all in one zone"),
    ],
)
def test_scores(counts: list[tuple[int, str | None]], scores: list[int]) -> None:
    raw, normalized = raw_and_scores(make_pod(labels=APP), spread_table(*counts), SERVICE)

    assert raw == [count for count, _ in counts]
    assert normalized == scores


def test_only_the_scored_nodes_count_for_a_zone() -> None:
    table = spread_table((4, "a"), (0, "a"), (1, "b"))

    _, scores = raw_and_scores(make_pod(labels=APP), table, SERVICE, rows=table.numbers(ALL)[1:])

    assert scores == [100, 0]


def replica_set(selector: dict[str, Any]) -> Any:
    return make_object("ReplicaSet", "rs", namespace="default", spec={"selector": selector})


def controlled(**fields: Any) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    metadata = {"labels": APP, "ownerReferences": [owner], "namespace": "default"}
    pod: Pod = make_object("Pod", "p", metadata=metadata, spec={}, **fields)
    return pod


@pytest.mark.parametrize(
    ("pod", "objects", "counts"),
    [
        pytest.param(make_pod(labels=APP), [], [0, 0], id="nothing selects the pod"),
        pytest.param(make_pod(labels=APP), [SERVICE], [3, 1], id="a service"),
        pytest.param(make_pod(labels={"app": "db"}), [SERVICE], [0, 0], id="not its service"),
        pytest.param(
            make_pod(labels=APP, namespace="other"), [SERVICE], [0, 0], id="another namespace"
        ),
        pytest.param(
            controlled(), [replica_set({"matchLabels": {"tier": "x"}})], [1, 0], id="a controller"
        ),
        pytest.param(
            controlled(),
            [SERVICE, replica_set({"matchLabels": {"tier": "x"}})],
            [1, 0],
            id="what both select",
        ),
        pytest.param(
            make_pod(labels=APP),
            [make_object("Service", "none", namespace="default", spec={})],
            [0, 0],
            id="a service without a selector",
        ),
    ],
)
def test_which_pods_count(pod: Pod, objects: list[Any], counts: list[int]) -> None:
    table = make_table(
        make_node("a"),
        make_node("b"),
        pods=[
            make_pod("1", labels=APP, node_name="a"),
            make_pod("2", labels=APP, node_name="a"),
            make_pod("3", labels={**APP, "tier": "x"}, node_name="a"),
            make_pod("4", labels=APP, node_name="b"),
            make_pod("leaving", labels=APP, node_name="b", terminating=True),
            make_pod("elsewhere", labels=APP, node_name="b", namespace="other"),
        ],
    )

    assert raw_and_scores(pod, table, *objects)[0] == counts


def test_pods_with_constraints_of_their_own_are_not_its_business() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    pod, table = make_pod(labels=APP, spread=[spread]), spread_table((1, "a"))
    plugin = SelectorSpread.from_args(None, make_handle(table, [SERVICE]))

    assert plugin.pre_score(CycleState(), pod, table, ALL) == SKIP


def test_a_new_service_is_seen() -> None:
    table, pod = spread_table((1, None)), make_pod(labels=APP)
    handle = make_handle(table)
    plugin = SelectorSpread.from_args(None, handle)

    def counts() -> list[int]:
        state = CycleState()
        plugin.pre_score(state, pod, table, ALL)
        points: list[int] = plugin.score_rows(state, pod, table, ALL).tolist()
        return points

    assert counts() == [0]
    assert isinstance(handle.lister, ObjectLister)
    handle.lister.add(SERVICE)
    assert counts() == [1]


def test_zones_are_told_apart_by_region_and_zone_and_old_labels_win() -> None:
    table = make_table(
        make_node("none"),
        make_node("empty", labels={ZONE: "", REGION: ""}),
        make_node("a", labels={ZONE: "a"}),
        make_node("old-a", labels={BETA_ZONE: "a", ZONE: "b"}),
        make_node("a-of-r", labels={ZONE: "a", REGION: "r"}),
        make_node("old-a-of-r", labels={BETA_ZONE: "a", BETA_REGION: "r"}),
        make_node("r", labels={REGION: "r"}),
        make_node("emptied", labels={BETA_ZONE: "", ZONE: "a"}),
    )
    nodes = [node.node for node in table.nodes_at(ALL)]
    ids = zone_ids(table).tolist()

    assert [number > 0 for number in ids] == [bool(node.zone_key) for node in nodes]
    for first, second in zip(ids, nodes, strict=True):
        same = [other.zone_key == second.zone_key for other in nodes]
        assert [other == first for other in ids] == same


def test_conformance() -> None:
    table = spread_table((1, "a"), (2, "a"), (0, "b"), (1, None))
    check_conformance(
        SelectorSpread, [make_pod(labels=APP), make_pod("x")], table, objects=[SERVICE]
    )
