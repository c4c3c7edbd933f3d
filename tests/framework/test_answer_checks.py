"""Each check passes correct input, and names expectation and finding of the rest."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayplan.framework import SUCCESS, Code, Status, Verdict
from bayplan.framework.answer_checks import (
    WrongAnswerError,
    check_each_score,
    check_nothing,
    check_pair,
    check_scores,
    check_status,
    check_type,
    check_verdict,
)

SCORES = np.array([1, 2], dtype=np.int64)
REFUSAL = Status(Code.Unschedulable, ("no",))


async def waits() -> None: ...


def verdict(reason: Any, mask: Any) -> Verdict:
    made = Verdict(2)
    made.reasons[reason] = mask
    return made


def with_error(error: Any) -> Verdict:
    made = Verdict(2)
    made.error = error
    return made


def pair(answer: Any) -> Any:
    return check_pair(answer, Status, (int, float), "a Status and a number")


def of_two(answer: Any) -> Any:
    return check_verdict(answer, 2)


def two_scores(answer: Any) -> Any:
    return check_scores(answer, 2)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        pytest.param(check_status, SUCCESS, id="success"),
        pytest.param(check_status, REFUSAL, id="a refusal"),
        pytest.param(pair, (REFUSAL, 3), id="a pair"),
        pytest.param(of_two, Verdict(2), id="a verdict"),
        pytest.param(of_two, verdict("no", np.array([True, False])), id="a verdict with a reason"),
        pytest.param(of_two, with_error(REFUSAL), id="a verdict with an error"),
        pytest.param(two_scores, SCORES, id="scores"),
    ],
)
def test_what_is_right_is_passed_on(check: Callable[[Any], Any], answer: Any) -> None:
    assert check(answer) is answer


@pytest.mark.parametrize(
    ("check", "answer", "expected"),
    [
        pytest.param(check_status, None, "a Status; got None", id="no status"),
        pytest.param(check_status, Status(1), "a Status with a Code; got 1", id="no code"),  # type: ignore[arg-type]  # wrong on purpose
        pytest.param(
            check_status,
            Status(Code.Error, ["no"]),  # type: ignore[arg-type]
            "a Status whose reasons are a tuple of strings; got a list",
            id="reasons in a list",
        ),
        pytest.param(
            check_status,
            Status(Code.Error, (b"no",)),  # type: ignore[arg-type]
            "a Status whose reasons are a tuple of strings; got (a bytes)",
            id="reasons that are bytes",
        ),
        pytest.param(pair, [REFUSAL, 3], "a Status and a number; got a list", id="a list of two"),
        pytest.param(
            pair, (REFUSAL, 3, 4), "and a number; got (a Status, 3, 4)", id="a tuple of three"
        ),
        pytest.param(pair, (3, REFUSAL), "got (3, a Status)", id="the other way round"),
        pytest.param(
            pair, tuple(range(6)), "got (0, 1, 2, 3, ...)", id="a long tuple is not written out"
        ),
        pytest.param(pair, (Status(1), 3), "a Status with a Code", id="a wrong status in a pair"),  # type: ignore[arg-type]  # wrong on purpose
        pytest.param(of_two, SUCCESS, "a Verdict about 2 nodes; got a Status", id="no verdict"),
        pytest.param(of_two, Verdict(1), "about 2 nodes; got one about 1 node", id="too short"),
        pytest.param(
            of_two, verdict(7, np.zeros(2, bool)), "a reason that is a string; got 7", id="a number"
        ),
        pytest.param(
            of_two, verdict("no", [True, False]), 'reason "no"; got a list', id="a mask as a list"
        ),
        pytest.param(
            of_two,
            verdict("no", np.zeros(2, np.int64)),
            'a bool for each of 2 nodes with reason "no"; got an array of int64 with shape (2,)',
            id="a mask of numbers",
        ),
        pytest.param(
            of_two,
            verdict("no", np.zeros(3, bool)),
            "with shape (3,)",
            id="a mask that is too long",
        ),
        pytest.param(of_two, with_error("x"), "a Status; got 'x'", id="an error that is a text"),
        pytest.param(
            two_scores, SCORES.astype(np.int32), "with 2 scores, one per node; got", id="int32"
        ),
        pytest.param(two_scores, SCORES[:1], "int64 with shape (1,)", id="one score too few"),
        pytest.param(
            two_scores, SCORES.reshape(1, 2), "int64 with shape (1, 2)", id="two dimensions"
        ),
        pytest.param(check_each_score, [1, 2.5], "an int as score; got 2.5", id="a float"),
        pytest.param(check_each_score, [True], "an int as score; got True", id="a bool"),
        pytest.param(
            lambda answer: check_type(answer, str, "a name"), {}, "a name; got a dict", id="a dict"
        ),
        pytest.param(
            check_status, "x" * 90, f"got '{'x' * 55} ...", id="a long text is cut in the message"
        ),
    ],
)
def test_what_is_wrong_is_named(check: Callable[[Any], Any], answer: Any, expected: str) -> None:
    with pytest.raises(WrongAnswerError, match=re.escape(expected)):
        check(answer)


def test_scores_given_one_by_one_become_an_array() -> None:
    scores = check_each_score([1, np.int64(2)])

    assert scores.dtype == np.int64
    assert scores.tolist() == [1, 2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("check", [check_nothing, check_status])
def test_a_coroutine_is_refused_and_closed(check: Callable[[Any], Any]) -> None:
    with pytest.raises(WrongAnswerError, match=r"got a coroutine \(the method is async\)"):
        check(waits())


def test_a_method_without_a_result_may_return_anything_else() -> None:
    check_nothing(None)
    check_nothing(5)
