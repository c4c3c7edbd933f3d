"""Verdict: codes and reasons of many rows at once."""

import numpy as np
import pytest

from bayplan.framework import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from bayplan.framework.status import pending
from bayplan.table import ALL, Bools
from bayplan.testing.builders import make_node, make_table

U, UU = int(Code.Unschedulable), int(Code.UnschedulableAndUnresolvable)


def mask(*bits: int) -> Bools:
    return np.array(bits, dtype=np.bool_)


def test_accept_has_one_row_per_row_asked_for() -> None:
    table = make_table(make_node("a"), make_node("b"), make_node("c"))

    assert Verdict.accept(table, ALL).feasible.tolist() == [True, True, True]
    assert Verdict.accept(table, np.array([0, 2])).feasible.tolist() == [True, True]
    assert len(Verdict.accept(table, slice(0, 1))) == 1


@pytest.mark.parametrize(
    ("unresolvable_on", "codes"),
    [
        pytest.param(False, [U, 0, U], id="preemption may help"),
        pytest.param(True, [UU, 0, UU], id="preemption cannot help"),
        pytest.param(mask(1, 1, 0), [UU, 0, U], id="row by row, rows not refused left out"),
    ],
)
def test_reject_sets_codes_of_the_mask(unresolvable_on: bool | Bools, codes: list[int]) -> None:
    verdict = Verdict(3)

    verdict.reject(mask(1, 0, 1), "full", unresolvable=unresolvable_on)

    assert verdict.codes.tolist() == codes
    assert verdict.feasible.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([(False, "soft"), (True, "hard")], id="the harder one last"),
        pytest.param([(True, "hard"), (False, "soft")], id="the harder one first"),
        pytest.param([(mask(1), "hard"), (mask(0), "soft")], id="row by row, the harder one first"),
    ],
)
def test_the_harder_refusal_stays(order: list[tuple[bool | Bools, str]]) -> None:
    verdict = Verdict(1)

    for hard, reason in order:
        verdict.reject(mask(1), reason, unresolvable=hard)

    assert verdict.codes.tolist() == [UU]
    assert set(verdict.status(0).reasons) == {"hard", "soft"}


def test_rejecting_nothing_leaves_no_reason() -> None:
    verdict = Verdict(2)

    verdict.reject(mask(0, 0), "full")

    assert verdict.reasons == {}


def test_the_same_reason_twice_is_one_reason() -> None:
    verdict = Verdict(3)

    verdict.reject(mask(1, 0, 0), "full")
    verdict.reject(mask(1, 1, 0), "full")

    assert verdict.histogram() == {"full": 2}


def test_reject_keeps_its_own_copy_of_the_mask() -> None:
    verdict, column = Verdict(2), mask(1, 0)

    verdict.reject(column, "full")
    column[1] = True

    assert verdict.histogram() == {"full": 1}


def test_status_of_a_row_has_its_code_and_reasons() -> None:
    verdict = Verdict(3)
    verdict.reject(mask(1, 1, 0), "no cpu")
    verdict.reject(mask(0, 1, 0), "no memory", unresolvable=True)

    assert [verdict.status(row) for row in range(3)] == [
        unschedulable("no cpu"),
        unresolvable("no cpu", "no memory"),
        SUCCESS,
    ]


def test_histogram_counts_rows_per_reason_among_some() -> None:
    verdict = Verdict(3)
    verdict.reject(mask(1, 1, 0), "no cpu")
    verdict.reject(mask(0, 1, 0), "no memory")

    assert verdict.histogram() == {"no cpu": 2, "no memory": 1}
    assert verdict.histogram(mask(1, 0, 1)) == {"no cpu": 1}


def test_from_statuses_gives_the_statuses_back() -> None:
    statuses = [SUCCESS, unschedulable("a", "b"), unresolvable("b"), pending("c"), unschedulable()]

    verdict = Verdict.from_statuses(iter(statuses))

    assert [verdict.status(row) for row in range(5)] == statuses
    assert verdict.histogram() == {"a": 1, "b": 2, "c": 1}
    assert verdict.error is None


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(failure("broken"), id="an error"),
        pytest.param(SKIP, id="a status that Filter cannot give"),
    ],
)
def test_from_statuses_with_a_failure_fails_as_a_whole(status: Status) -> None:
    verdict = Verdict.from_statuses([SUCCESS, status, unschedulable("a")])

    assert verdict.error is status
    assert verdict.status(0) is status
