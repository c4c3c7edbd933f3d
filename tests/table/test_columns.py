"""Columns: they grow together; resources as columns and as plain numbers; priorities."""

import numpy as np

from bayplan.table import ALL, Column, ResourceColumns, Size
from bayplan.table.writer import FIRST_CAPACITY, TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table


def test_a_column_made_before_the_table_grew_has_its_fill_in_new_rows() -> None:
    size = Size(rows=2, capacity=2)
    column = Column(size, np.int64, fill=-1)
    column.data[:2] = [5, 6]

    size.grow(8)
    size.rows = 5

    assert column.view.tolist() == [5, 6, -1, -1, -1]


def test_every_column_grows_with_the_table() -> None:
    many = 3 * FIRST_CAPACITY
    table = make_table()
    writer = TableWriter(table)
    for i in range(many):
        writer.set_node(make_node(f"n{i}", cpu=str(i + 1), zone=f"z{i % 3}"))
        writer.add_pod(make_pod(f"p{i}", node_name=f"n{i}", cpu="1", priority=i % 2))

    assert len(table) == table.node_count == many
    assert table.allocatable["cpu"].tolist() == [1000 * (i + 1) for i in range(many)]
    assert table.requested["cpu"].tolist() == [1000] * many
    assert table.labels.has("topology.kubernetes.io/zone", ALL).all()
    assert table.priorities.below(1).tolist() == [1, 0] * (many // 2)
    assert table.live.all()


def test_a_resized_pod_counts_by_its_status_beside_others_of_its_spec() -> None:
    granted = {"name": "container-0", "resources": {"requests": {"cpu": "3"}}}
    table = make_table(make_node("a"))
    writer = TableWriter(table)
    pods = [
        make_pod("plain", node_name="a", cpu="1"),
        make_pod("resized", node_name="a", cpu="1", status={"containerStatuses": [granted]}),
        make_pod("another", node_name="a", cpu="1"),
    ]

    for pod in pods:
        writer.add_pod(pod)
    assert table.requested["cpu"].tolist() == [5000]
    for pod in pods[1:]:
        writer.remove_pod(pod)
    assert table.requested["cpu"].tolist() == [1000]


def test_a_resource_that_no_node_has_is_a_column_of_zeros() -> None:
    table = make_table(make_node("a"), make_node("b"))

    assert table.allocatable["example.com/gpu"].tolist() == [0, 0]
    assert "example.com/gpu" not in table.allocatable


def test_set_clears_what_is_no_longer_there() -> None:
    size = Size(rows=1, capacity=1)
    columns = ResourceColumns(size)

    columns.set(0, {"cpu": 5, "gpu": 2})
    columns.set(0, {"cpu": 7})

    assert (columns["cpu"].tolist(), columns["gpu"].tolist()) == ([7], [0])
    assert columns.at(0) == {"cpu": 7}


def test_the_amounts_of_a_row_are_those_of_the_columns_without_zeros() -> None:
    size = Size(rows=1, capacity=1)
    columns = ResourceColumns(size)

    columns.add(0, {"cpu": 5, "gpu": 2})
    columns.add(0, {"cpu": 1, "gpu": 2}, -1)

    assert columns.at(0) == {"cpu": 4}
    assert [columns.amount(name, 0) for name in ("cpu", "gpu", "none")] == [4, 0, 0]
    assert (columns["cpu"].tolist(), columns["gpu"].tolist()) == ([4], [0])


def test_priorities_count_pods_strictly_below() -> None:
    pods = [make_pod(f"p{i}", node_name="a", priority=i) for i in (-5, 0, 0, 10)]
    pods[2] = make_pod("none", node_name="a")
    table = make_table(make_node("a"), make_node("b"), pods=pods)

    assert table.priorities.below(10).tolist() == [3, 0]
    assert table.priorities.below(0).tolist() == [1, 0]
    assert table.priorities.below(11).tolist() == [4, 0]


def test_nodes_that_come_and_go_in_any_order_leave_the_rows_as_they_were() -> None:
    table = make_table(*(make_node(name) for name in "abcd"))
    writer = TableWriter(table)

    for name in "cab":
        writer.remove_node(name)
    for name in "xy":
        writer.set_node(make_node(name))

    assert table.row_of == {"d": 3, "x": 0, "y": 1}


def test_a_freed_row_is_taken_by_the_next_node_and_starts_clean() -> None:
    table = make_table(make_node("a", labels={"k": "v"}, images={"i:1": 5}), make_node("b"))
    writer = TableWriter(table)

    writer.remove_node("a")
    assert table.numbers(table.live_rows).tolist() == [1]
    writer.set_node(make_node("c", cpu="1"))

    assert table.row_of == {"c": 0, "b": 1}
    assert table.node_count == 2
    assert table.live_rows == ALL
    assert table.labels.has("k", ALL).tolist() == [False, False]
    assert table.allocatable["cpu"].tolist() == [1000, 4000]
    assert table.images.total(["i:1"], 2).tolist() == [0, 0]
