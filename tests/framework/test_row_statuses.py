"""RowStatuses: a status per row, each distinct one once."""

import numpy as np

from bayplan.framework import SUCCESS, Code, Status, Verdict, unresolvable, unschedulable
from bayplan.framework.row_statuses import RowStatuses
from bayplan.framework.status import pending
from bayplan.framework.verdict import MOST_REASONS

CPU, MEMORY = unschedulable("cpu").by("Fit"), unschedulable("memory").by("Fit")


def taken_over(*statuses: Status) -> RowStatuses:
    kept, rows = RowStatuses(), np.arange(len(statuses))
    kept.clear(len(statuses))
    kept.put_rows(rows, [(rows, Verdict.from_statuses(statuses), "Fit")])
    return kept


def test_rows_get_back_what_they_were_given() -> None:
    said = [SUCCESS, unschedulable("a", "b"), unresolvable("a"), unschedulable("a"), pending("c")]

    kept = taken_over(*said, said[1])

    assert [kept.at(row) for row in range(5)] == [SUCCESS, *(s.by("Fit") for s in said[1:])]
    assert kept.codes().tolist() == [0, 2, 3, 2, 6, 2]
    assert kept.histogram() == {"a": 4, "b": 2, "c": 1}
    assert kept.refused == 5
    assert len(kept.given()) == 4, "equal ones are one"


def test_a_verdict_with_a_reason_of_its_own_for_every_row() -> None:
    said = [unschedulable(f"node {number}") for number in range(2 * MOST_REASONS)]

    kept = taken_over(*said)

    assert [kept.at(row).reasons for row in range(len(said))] == [s.reasons for s in said]


def test_a_row_changes_its_mind() -> None:
    kept = taken_over(unschedulable("cpu"), unschedulable("cpu"))
    assert kept.histogram() == {"cpu": 2}

    kept.put(0, MEMORY)
    assert kept.histogram() == {"cpu": 1, "memory": 1}
    kept.put(1, SUCCESS)
    assert kept.histogram() == {"memory": 1}
    assert kept.refused == 1
    assert kept.has(Code.Unschedulable)
    assert not kept.has(Code.UnschedulableAndUnresolvable)


def test_what_was_cleared_is_forgotten() -> None:
    kept = taken_over(unschedulable("cpu"))
    assert kept.codes().tolist() == [2]

    kept.clear(2)
    kept.put(1, unresolvable("taint").by("Taints"))

    assert kept.codes().tolist() == [0, 3]
    assert kept.histogram() == {"taint": 1}


def test_statuses_with_their_positions_are_counted() -> None:
    made = RowStatuses.of([SUCCESS, CPU, MEMORY], np.array([1, 0, 2, 1], dtype=np.int32), [0, 2, 1])

    assert [made.at(row) for row in range(4)] == [CPU, SUCCESS, MEMORY, CPU]
    assert made.histogram() == {"cpu": 2, "memory": 1}
    assert made.is_refused.tolist() == [True, False, True, True]
    made.put(0, MEMORY)
    assert made.histogram() == {"cpu": 1, "memory": 2}
