"""NodeName: pods that name their node."""

import pytest

from bayplan.framework import SUCCESS, CycleState, Status, unresolvable
from bayplan.plugins.node_name import REASON, NodeName
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

NO = unresolvable("node(s) didn't match the requested node name")


@pytest.mark.parametrize(
    ("node_name", "expected"),
    [
        pytest.param("", [SUCCESS, SUCCESS], id="no name: anywhere"),
        pytest.param("b", [NO, SUCCESS], id="the named node only"),
        pytest.param("ghost", [NO, NO], id="a node that is not there"),
    ],
)
def test_filter(node_name: str, expected: list[Status]) -> None:
    table = make_table(make_node("a"), make_node("b"))

    verdict = NodeName().filter_rows(CycleState(), make_pod(node_name=node_name), table, ALL)

    assert [verdict.status(row) for row in range(2)] == expected
    assert NO.message == REASON


def test_conformance() -> None:
    pods = [make_pod("p"), make_pod("q", node_name="b"), make_pod("r", node_name="ghost")]

    check_conformance(NodeName, pods, make_table(make_node("a"), make_node("b"), make_node("c")))
