"""The change log: which rows changed since a moment."""

from typing import Any

import pytest

from bayplan.table import RowLog, changes
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table


def test_since_lists_each_changed_row_once_in_order() -> None:
    log = RowLog()
    log.mark(3)
    before = log.version
    for row in (5, 1, 5, 2):
        log.mark(row)

    assert log.since(before) == [1, 2, 5]
    assert log.since(0) == [1, 2, 3, 5]
    assert log.since(log.version) == []
    assert log.since(log.version - 1) == [2]


def test_since_a_moment_too_long_ago_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "KEEP", 4)
    log = RowLog()
    for row in range(70):
        log.mark(row)
        assert log.since(row + 1 - min(row + 1, 4)) == list(range(max(row - 3, 0), row + 1))

    assert log.version == 70
    assert log.since(60) is None
    assert log.rows_since(60) is None
    assert log.since(-1) is None


def test_rows_since_keeps_the_order_and_the_repetitions() -> None:
    log = RowLog()
    for row in (5, 1, 5, 2):
        log.mark(row)

    found = log.rows_since(1)

    assert found is not None
    assert found.tolist() == [1, 5, 2]


def test_a_pod_changes_its_row_and_a_node_both_logs() -> None:
    table = make_table(make_node("a"), make_node("b"))
    writer = TableWriter(table)
    rows, nodes = table.row_changes.version, table.node_changes.version

    writer.add_pod(make_pod(node_name="b"))
    assert table.row_changes.since(rows) == [1]
    assert table.node_changes.since(nodes) == []

    rows = table.row_changes.version
    writer.set_node(make_node("a", cpu="8"))
    assert table.row_changes.since(rows) == [0]
    assert table.node_changes.since(nodes) == [0]


def test_a_pod_replaced_by_one_that_counts_the_same_changes_no_row() -> None:
    old = make_pod(node_name="a", cpu="1")
    table = make_table(make_node("a"), pods=[old])
    version = table.row_changes.version

    new = make_pod(node_name="a", cpu="1", status={"phase": "Running"})
    TableWriter(table).replace_pod(old, new)

    assert table.pods[0] == {old.uid: new}
    assert table.row_changes.version == version


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"terminating": True}, id="terminating"),
        pytest.param({"cpu": "2"}, id="requests"),
        pytest.param({"priority": 3}, id="priority"),
    ],
)
def test_a_pod_replaced_by_another_changes_its_row(changed: dict[str, Any]) -> None:
    old = make_pod(node_name="a", uid="u")
    table = make_table(make_node("a"), pods=[old])
    version = table.row_changes.version

    TableWriter(table).replace_pod(old, make_pod(node_name="a", uid="u", **changed))

    assert table.row_changes.since(version) == [0]


def test_a_pod_whose_explicit_zero_became_known_is_counted_again() -> None:
    """A container without a cpu request scores as 100m; one that was given zero cpu scores as none."""
    old = make_pod(node_name="a", uid="u")
    zero = {"name": "container-0", "resources": {"requests": {"cpu": "0"}}}
    new = make_pod(node_name="a", uid="u", status={"containerStatuses": [zero]})
    table = make_table(make_node("a"), pods=[old])
    assert table.scoring_usage["cpu"].tolist() == [100]

    TableWriter(table).replace_pod(old, new)

    assert old.usage == new.usage
    assert table.scoring_usage["cpu"].tolist() == [0]
