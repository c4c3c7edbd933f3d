"""Cheap, tested with Bayplan's tools for plugin authors."""

from bayplan_cheap import Cheap

from bayplan.framework import CycleState
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

TABLE = make_table(
    make_node("dear", labels={"example.com/price": "2.00"}),
    make_node("cheap", labels={"example.com/price": "0.50"}),
    make_node("between", labels={"example.com/price": "1.25"}),
    make_node("odd", labels={"example.com/price": "much"}),
    make_node("unknown"),
)


def test_cheaper_nodes_score_higher() -> None:
    plugin = Cheap()

    raw = plugin.score_rows(CycleState(), make_pod(), TABLE, ALL)

    assert raw.tolist() == [200, 50, 125, -1, -1]
    assert plugin.normalize(raw).tolist() == [0, 100, 50, 0, 0]


def test_conformance() -> None:
    check_conformance(Cheap, [make_pod()], TABLE)
    check_conformance(Cheap, [make_pod()], TABLE, {"label": "kubernetes.io/hostname"})
