"""Diagnosis: who refused which node, and the sentence people read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework import SUCCESS, Code, Status, Verdict, unresolvable, unschedulable
from bayplan.framework.diagnosis import Diagnosis, Judgement
from bayplan.framework.row_statuses import RowStatuses, no_node_available
from bayplan.framework.status import pending
from bayplan.table import Ints, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table

CPU, MEMORY = "Insufficient cpu", "Insufficient memory"


def nodes(count: int) -> NodeTable:
    return make_table(*(make_node(f"n{i:02}") for i in range(count)))


def judged(plugin: str, *statuses: Status, rows: Ints | None = None) -> Judgement:
    every = np.arange(len(statuses), dtype=np.int64)
    return every if rows is None else rows, Verdict.from_statuses(statuses), plugin


def diagnosed(table: NodeTable, *judgements: Judgement, every_reason: bool = False) -> Diagnosis:
    diagnosis = Diagnosis(table, node_count=table.node_count)
    diagnosis.add_judgements(judgements, every_reason=every_reason)
    return diagnosis


def test_every_reason_of_a_node_is_counted() -> None:
    refusals = unschedulable(CPU), unschedulable(CPU), unschedulable(CPU, MEMORY)

    diagnosis = diagnosed(nodes(3), judged("NodeResourcesFit", *refusals))

    expected = f"0/3 nodes are available: 1 {MEMORY}, 3 {CPU}."
    assert diagnosis.message() == diagnosis.fit_error() == expected


def test_parts_are_sorted_as_text() -> None:
    refusals = [unschedulable("A")] * 10 + [unschedulable("B")] * 2

    diagnosis = diagnosed(nodes(12), judged("Fit", *refusals))

    assert diagnosis.message() == "0/12 nodes are available: 10 A, 2 B."


def test_the_message_of_post_filter_follows() -> None:
    diagnosis = diagnosed(nodes(1), judged("Fit", unschedulable("A")))
    diagnosis.post_filter_message = "preemption: no."

    assert diagnosis.message() == "0/1 nodes are available: 1 A. preemption: no."
    assert diagnosis.fit_error() == "0/1 nodes are available: 1 A."


@pytest.mark.parametrize(
    ("count", "reasons", "expected"),
    [
        pytest.param(0, {}, "0/0 nodes are available:", id="no reasons, no full stop"),
        pytest.param(2, {"A": 2}, "0/2 nodes are available: 2 A.", id="one reason"),
        pytest.param(3, {"B": 1, "A": 1}, "0/3 nodes are available: 1 A, 1 B.", id="sorted"),
    ],
)
def test_no_node_available(count: int, reasons: dict[str, int], expected: str) -> None:
    assert no_node_available(count, reasons) == expected


def test_only_the_first_plugin_to_refuse_a_node_counts() -> None:
    first = judged("First", unschedulable("A"), SUCCESS, SUCCESS)
    second = judged("Second", unresolvable("B"), unresolvable("B"), SUCCESS)

    diagnosis = diagnosed(nodes(3), first, second)

    assert diagnosis.histogram() == {"A": 1, "B": 1}
    assert [diagnosis.status_of(row) for row in range(3)] == [
        unschedulable("A").by("First"),
        unresolvable("B").by("Second"),
        SUCCESS,
    ]
    assert diagnosis.codes().tolist() == [2, 3, 0]


def test_a_later_plugin_judges_only_the_rows_that_are_left() -> None:
    first = judged("First", unschedulable("A"), SUCCESS, SUCCESS)
    second = judged("Second", SUCCESS, unschedulable("B"), rows=np.array([1, 2]))

    diagnosis = diagnosed(nodes(3), first, second)

    assert diagnosis.status_of(1) == SUCCESS
    assert diagnosis.status_of(2) == unschedulable("B").by("Second")
    assert diagnosis.codes().tolist() == [2, 0, 2]
    assert diagnosis.histogram() == {"A": 1, "B": 1}


def test_pre_filter_that_refuses_the_pod_speaks_for_every_node() -> None:
    status = unresolvable("pod affinity terms conflict").by("NodeAffinity")
    diagnosis = diagnosed(nodes(3))

    diagnosis.refuse_all(status)

    assert diagnosis.message() == "0/3 nodes are available: pod affinity terms conflict."
    assert diagnosis.status_of(1) == status
    assert diagnosis.codes().tolist() == [3, 3, 3]
    assert diagnosis.unschedulable_plugins == {"NodeAffinity"}


def test_pre_filter_that_refuses_without_a_reason_refuses_all_the_same() -> None:
    diagnosis = diagnosed(nodes(2))

    diagnosis.refuse_all(unschedulable().by("Mine"))

    assert diagnosis.status_of(0).code is Code.Unschedulable
    assert diagnosis.codes().tolist() == [2, 2]


def test_nodes_outside_have_the_status_absent() -> None:
    diagnosis = diagnosed(nodes(3), judged("Fit", unschedulable("A"), rows=np.array([1])))
    diagnosis.outside = np.array([True, False, True])
    diagnosis.absent = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")

    assert [diagnosis.is_outside(row) for row in range(3)] == [True, False, True]
    assert diagnosis.status_of(0) == diagnosis.absent
    assert diagnosis.codes().tolist() == [3, 2, 3]
    assert diagnosis.message() == (
        "0/3 nodes are available: 1 A, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_nodes_that_were_not_reached_say_nothing() -> None:
    diagnosis = diagnosed(nodes(2), judged("Fit", unschedulable("A"), SUCCESS))
    diagnosis.outside = np.array([False, True])

    assert diagnosis.histogram() == {"A": 1}
    assert diagnosis.codes().tolist() == [2, 3]


def test_a_node_judged_alone_counts_instead_of_what_was_judged_before() -> None:
    diagnosis = diagnosed(nodes(2), judged("Fit", unschedulable("A"), unschedulable("A")))
    diagnosis.alone[1] = unresolvable("B").by("Ports")

    assert diagnosis.histogram() == {"A": 1, "B": 1}
    assert diagnosis.status_of(1) == unresolvable("B").by("Ports")
    assert diagnosis.codes().tolist() == [2, 3]


def test_rows_without_a_node_are_not_counted() -> None:
    table = nodes(3)
    TableWriter(table).remove_node("n01")
    diagnosis = diagnosed(table, judged("Fit", unschedulable("A"), rows=np.array([0])))
    diagnosis.outside = np.array([False, True, True])
    diagnosis.absent = unresolvable("B")

    assert diagnosis.histogram() == {"A": 1, "B": 1}


def test_rejectors_are_those_whose_refusal_counted() -> None:
    diagnosis = diagnosed(
        nodes(3),
        judged("First", unschedulable("A"), SUCCESS, SUCCESS),
        judged("Second", unschedulable("B"), SUCCESS, SUCCESS),
        judged("Third", SUCCESS, pending("C"), SUCCESS),
    )
    diagnosis.alone[2] = unschedulable("D").by("Alone")

    diagnosis.note_rejectors()

    assert diagnosis.unschedulable_plugins == {"First", "Third", "Alone"}
    assert diagnosis.pending_plugins == {"Third"}


STATUSES = st.sampled_from(
    [SUCCESS, unschedulable(CPU), unschedulable(CPU, MEMORY), unresolvable(MEMORY)]
)
ROWS = 6


@given(
    said=st.lists(st.lists(STATUSES, min_size=ROWS, max_size=ROWS), max_size=3),
    alone=st.dictionaries(st.integers(0, ROWS - 1), STATUSES, max_size=2),
    inside=st.none() | st.sets(st.integers(0, ROWS - 1)),
    every_reason=st.booleans(),
    is_kept=st.booleans(),
)
def test_groups_by_status_are_what_each_row_says(
    said: list[list[Status]],
    alone: dict[int, Status],
    inside: set[int] | None,
    every_reason: bool,
    is_kept: bool,
) -> None:
    table = nodes(ROWS)
    TableWriter(table).remove_node("n02")
    judgements = [judged(f"P{i}", *statuses) for i, statuses in enumerate(said)]
    diagnosis = diagnosed(table, *judgements, every_reason=every_reason)
    if is_kept:
        by_row = RowStatuses()
        by_row.clear(ROWS)
        for row, status in enumerate(said[0] if said else ()):
            by_row.put(row, status)
        diagnosis = Diagnosis.of_rows(table, by_row)
    diagnosis.alone = alone
    if inside is not None:
        diagnosis.inside = np.array(sorted(inside), dtype=np.int64)

    expected: dict[Status, list[int]] = {}
    for row in np.flatnonzero(table.live).tolist():
        status = diagnosis.status_of(row)
        if not status.is_success:
            expected.setdefault(status, []).append(row)

    assert {status: rows.tolist() for status, rows in diagnosis.by_status()} == expected


def test_with_every_reason_all_plugins_that_refuse_a_node_are_rejectors() -> None:
    first = judged("First", unschedulable("A"), SUCCESS, unschedulable("A"))
    second = judged("Second", unresolvable("B"), pending("C"), SUCCESS)
    diagnosis = diagnosed(nodes(3), first, second, every_reason=True)
    diagnosis.alone[1] = unschedulable("D").by("Alone")

    diagnosis.note_rejectors()

    assert diagnosis.status_of(0) == unresolvable("A", "B").by("First")
    assert diagnosis.histogram() == {"A": 2, "B": 1, "D": 1}
    assert diagnosis.unschedulable_plugins == {"First", "Second", "Alone"}
    assert not diagnosis.pending_plugins
