"""Set columns: taints and declared features, evaluated once per distinct set."""

import numpy as np

from bayplan.api.taints import Taint
from bayplan.table import ALL
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table

RED, BLUE = "red:NoSchedule", "blue:NoSchedule"


def test_count_asks_each_distinct_member_once() -> None:
    table = make_table(
        make_node("a", taints=[RED]),
        make_node("b", taints=[RED, BLUE]),
        make_node("c"),
        make_node("d", taints=[RED, BLUE]),
    )
    asked: list[str] = []

    def matters(taint: Taint) -> bool:
        asked.append(taint.key)
        return True

    assert table.taints.count(matters, ALL).tolist() == [1, 2, 0, 2]
    assert sorted(asked) == ["blue", "red"]


def test_count_leaves_out_what_does_not_matter_and_other_rows() -> None:
    table = make_table(make_node("a", taints=[RED, BLUE]), make_node("b", taints=[BLUE]))

    counted = table.taints.count(lambda taint: taint.key == "red", np.array([1, 0]))

    assert counted.tolist() == [0, 1]


def test_equal_sets_share_one_id() -> None:
    table = make_table(make_node("a", taints=[RED]), make_node("b", taints=[RED]), make_node("c"))

    assert table.taints.ids.tolist() == [1, 1, 0]
    assert len(table.taints.distinct) == 2


def test_contains_all_does_not_depend_on_the_order_of_features() -> None:
    table = make_table(
        make_node("a", features=["x", "y"]),
        make_node("b", features=["y", "x", "z"]),
        make_node("c", features=["x"]),
    )

    assert table.features.contains_all(frozenset({"x", "y"}), ALL).tolist() == [True, True, False]
    assert table.features.contains_all(frozenset(), ALL).tolist() == [True] * 3


def test_a_changed_node_has_its_new_set() -> None:
    table = make_table(make_node("a", taints=[RED]))
    writer = TableWriter(table)

    writer.set_node(make_node("a", taints=[BLUE]))
    assert [taint.key for taint in table.taints.distinct[table.taints.ids[0]]] == ["blue"]
    writer.remove_node("a")
    assert table.taints.distinct[table.taints.ids[0]] == ()
