"""Label columns: codes, every operator, values that are added later."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.selectors import Requirement
from bayplan.table import ABSENT, ALL, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table

TIERS = {"a": {"tier": "3"}, "b": {"tier": "10"}, "c": {}, "d": {"tier": "gold"}}


def tiers() -> NodeTable:
    return make_table(*(make_node(name, labels=labels) for name, labels in TIERS.items()))


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        pytest.param("In", ("3", "gold"), "ad", id="in picks the values named"),
        pytest.param("In", ("7",), "", id="in with a value no node has"),
        pytest.param("NotIn", ("3", "7"), "bcd", id="not in also picks nodes without the key"),
        pytest.param("Exists", (), "abd", id="exists"),
        pytest.param("DoesNotExist", (), "c", id="does not exist"),
        pytest.param("Gt", ("3",), "b", id="gt compares numbers, not texts, and not itself"),
        pytest.param("Lt", ("10",), "a", id="lt leaves out words and absent keys"),
        pytest.param("Gt", ("gold",), "", id="gt of a word matches nothing"),
        pytest.param("Like", ("3",), "", id="unknown operator matches nothing"),
    ],
)
def test_match_says_what_the_operator_means(
    operator: str, values: tuple[str, ...], matching: str
) -> None:
    requirement = Requirement(key="tier", operator=operator, values=values)

    matched = tiers().labels.match(requirement, ALL)

    assert [name for name, hit in zip(TIERS, matched, strict=True) if hit] == list(matching)


def test_match_answers_for_some_rows_in_their_order() -> None:
    rows = np.array([1, 2], dtype=np.int64)

    matched = tiers().labels.match(Requirement(key="tier", operator="Exists"), rows)

    assert matched.tolist() == [True, False]


def test_equal_and_has() -> None:
    labels = tiers().labels

    assert labels.equal("tier", "3", ALL).tolist() == [True, False, False, False]
    assert labels.equal("tier", "unknown", ALL).tolist() == [False] * 4
    assert labels.equal("no-such-key", "3", ALL).tolist() == [False] * 4
    assert labels.has("tier", ALL).tolist() == [True, True, False, True]


def test_codes_of_a_key_are_absent_where_the_node_lacks_it() -> None:
    column = tiers().labels.column("tier")

    assert column.codes.tolist() == [0, 1, ABSENT, 2]
    assert column.values == ["3", "10", "gold"]
    assert column.code_of("10") == 1
    assert column.code_of("unknown") == ABSENT


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        pytest.param("In", "new", [False, True], id="in"),
        pytest.param("NotIn", "new", [True, False], id="not in"),
        pytest.param("Gt", "5", [False, False], id="gt of a word"),
    ],
)
def test_match_includes_values_that_came_after_the_first_call(
    operator: str, value: str, expected: list[bool]
) -> None:
    table = make_table(make_node("a", labels={"k": "old"}), make_node("b"))
    requirement = Requirement(key="k", operator=operator, values=(value,))
    table.labels.match(requirement, ALL)

    TableWriter(table).set_node(make_node("b", labels={"k": "new"}))

    assert table.labels.match(requirement, ALL).tolist() == expected


def test_domains_version_changes_when_a_value_gets_its_first_row_or_loses_its_last() -> None:
    table = make_table(make_node("a", labels={"k": "1"}), make_node("b", labels={"k": "2"}))
    writer, column = TableWriter(table), table.labels.column("k")
    versions = [column.domains_version]

    for node in (
        make_node("a", labels={"k": "1", "other": "x"}),
        make_node("c", labels={"k": "2"}),
        make_node("a", labels={"k": "2"}),
        make_node("a", labels={"k": "1"}),
        make_node("c", labels={}),
    ):
        writer.set_node(node)
        versions.append(column.domains_version)

    first, relabelled, joined, left, back, unlabelled = versions
    assert first == relabelled == joined
    assert joined < left < back == unlabelled


def test_a_column_made_late_equals_one_made_early() -> None:
    early = make_table()
    early.labels.column("tier")
    writer = TableWriter(early)
    for name, labels in TIERS.items():
        writer.set_node(make_node(name, labels=labels))

    assert early.labels.codes("tier").tolist() == tiers().labels.codes("tier").tolist()


def test_columns_cannot_be_written_by_readers() -> None:
    codes = tiers().labels.codes("tier")

    with pytest.raises(ValueError, match="read-only"):
        codes[0] = 7


VALUES = st.sampled_from(["1", "2", "9", "-3", "x", ""])
REQUIREMENTS = st.builds(
    Requirement,
    key=st.just("k"),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    values=st.lists(VALUES, max_size=2).map(tuple),
)


@given(
    st.lists(st.lists(st.none() | VALUES, min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(REQUIREMENTS, min_size=1, max_size=4),
)
def test_match_follows_label_changes(
    rounds: list[list[str | None]], requirements: list[Requirement]
) -> None:
    table = make_table()
    writer = TableWriter(table)
    for values in rounds:
        for i, value in enumerate(values):
            writer.set_node(make_node(f"n{i}", labels={} if value is None else {"k": value}))
        for requirement in requirements:
            expected = [requirement.matches_value(value) for value in values]
            assert table.labels.match(requirement, ALL).tolist() == expected


def test_a_label_says_whether_every_row_has_a_value_of_its_own() -> None:
    table = make_table(make_node("a"), make_node("b"), make_node("c"))
    column = table.labels.column("rack")
    seen = []
    for row, value in ((0, "x"), (1, "y"), (2, "x"), (0, "z"), (1, "x"), (2, None), (2, None)):
        column.set(row, value)
        seen.append((column.is_unique, column.labelled))

    assert seen == [
        (True, 1),
        (True, 2),
        (False, 3),
        (True, 3),
        (False, 3),
        (True, 2),
        (True, 2),
    ]
