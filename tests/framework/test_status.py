"""Status: reasons, text, and equality."""

import pytest

from bayplan.framework import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    failure,
    unresolvable,
    unschedulable,
    wait,
)
from bayplan.framework.status import pending


def test_codes_have_kube_scheduler_numbers() -> None:
    assert [(code.name, code.value) for code in Code] == [
        ("Success", 0),
        ("Error", 1),
        ("Unschedulable", 2),
        ("UnschedulableAndUnresolvable", 3),
        ("Wait", 4),
        ("Skip", 5),
        ("Pending", 6),
    ]


@pytest.mark.parametrize(
    ("status", "code", "rejected"),
    [
        pytest.param(SUCCESS, Code.Success, False, id="success"),
        pytest.param(SKIP, Code.Skip, False, id="skip"),
        pytest.param(failure("x"), Code.Error, False, id="an error says nothing about the pod"),
        pytest.param(wait("x"), Code.Wait, False, id="wait"),
        pytest.param(unschedulable("x"), Code.Unschedulable, True, id="unschedulable"),
        pytest.param(unresolvable("x"), Code.UnschedulableAndUnresolvable, True, id="unresolvable"),
        pytest.param(pending("x"), Code.Pending, True, id="pending"),
    ],
)
def test_kind_of_status(status: Status, code: Code, rejected: bool) -> None:
    assert status.code is code
    assert status.is_rejected is rejected
    assert status.is_success is (code is Code.Success)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param(SUCCESS, "", id="success says nothing"),
        pytest.param(unschedulable("a", "b"), "a, b", id="reasons in their order"),
        pytest.param(failure("broken"), "broken", id="an error given as text"),
        pytest.param(failure(ValueError("broken")), "broken", id="an error's own text"),
        pytest.param(
            Status(Code.Error, ("while binding",), error=ValueError("broken")),
            "broken, while binding",
            id="an error's text comes before the reasons",
        ),
    ],
)
def test_message(status: Status, message: str) -> None:
    assert status.message == message


def test_by_names_the_plugin_and_changes_nothing_else() -> None:
    cause = ValueError("broken")
    said = Status(Code.Error, ("reason",), error=cause)

    named = said.by("Fit")

    assert (named.code, named.reasons, named.error) == (said.code, said.reasons, cause)
    assert (named.plugin, said.plugin) == ("Fit", "")


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        pytest.param(SUCCESS, Status(Code.Success, ("odd",), "Fit"), True, id="all successes"),
        pytest.param(unschedulable("a"), unschedulable("a"), True, id="same code and reasons"),
        pytest.param(unschedulable("a"), unresolvable("a"), False, id="other code"),
        pytest.param(unschedulable("a"), unschedulable("b"), False, id="other reason"),
        pytest.param(unschedulable("a", "b"), unschedulable("b", "a"), False, id="other order"),
        pytest.param(unschedulable("a"), unschedulable("a").by("Fit"), False, id="other plugin"),
        pytest.param(failure(OSError("a")), failure(OSError("a")), False, id="other exception"),
        pytest.param(SUCCESS, SKIP, False, id="skip is not success"),
    ],
)
def test_equality(first: Status, second: Status, equal: bool) -> None:
    assert (first == second) is equal
    if equal and not first.is_success:
        assert hash(first) == hash(second)


def test_equality_with_something_else() -> None:
    assert SUCCESS != "Success"


def test_repr_says_who_and_why() -> None:
    assert repr(unschedulable("too small").by("Fit")) == "<Unschedulable by Fit: too small>"
    assert repr(SUCCESS) == "<Success>"
