"""Taints: when a toleration covers a taint."""

import pytest

from bayplan.api.taints import Taint, Toleration, find_untolerated, tolerated, tolerates

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration(key="gpu", value="yes", effect="NoSchedule"), True, id="equal"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="yes"), True, id="any effect"),
        pytest.param(Toleration(key="gpu", value="no"), False, id="other value"),
        pytest.param(Toleration(key="gpu"), False, id="empty value is a value"),
        pytest.param(Toleration(key="cpu", value="yes"), False, id="other key"),
        pytest.param(Toleration(key="gpu", value="yes", effect="NoExecute"), False, id="effect"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="exists ignores the value"),
        pytest.param(Toleration(operator="Exists"), True, id="exists without key covers all"),
        pytest.param(
            Toleration(operator="Exists", effect="NoExecute"), False, id="all of another effect"
        ),
        pytest.param(Toleration(value="yes"), True, id="no key: any key with that value"),
        pytest.param(Toleration(value="no"), False, id="no key and another value"),
        pytest.param(Toleration(key="gpu", operator="Like", value="yes"), False, id="unknown"),
    ],
)
def test_tolerates(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, GPU) is covers


@pytest.mark.parametrize(
    ("operator", "bound", "value", "covers"),
    [
        pytest.param("Gt", "5", "6", True, id="taint above the bound"),
        pytest.param("Gt", "5", "5", False, id="equal is not above"),
        pytest.param("Lt", "5", "4", True, id="taint below the bound"),
        pytest.param("Lt", "5", "5", False, id="equal is not below"),
        pytest.param("Lt", "0", "-3", True, id="negative"),
        pytest.param("Gt", "x", "6", False, id="bound is no number"),
        pytest.param("Gt", "5", "six", False, id="taint is no number"),
        pytest.param("Gt", "5", "06", False, id="leading zero is not canonical"),
        pytest.param("Gt", "5", str(2**63), False, id="beyond 64 bits"),
    ],
)
def test_tolerates_compares_numbers_behind_its_gate(
    operator: str, bound: str, value: str, covers: bool
) -> None:
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    toleration = Toleration(key="sla", operator=operator, value=bound)

    assert tolerates(toleration, taint, comparison_operators=True) is covers
    assert tolerates(toleration, taint) is False


def test_find_untolerated_returns_the_first_relevant_taint() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    old = Taint(key="old", effect="NoExecute")
    tolerations = (Toleration(key="gpu", operator="Exists"),)

    assert find_untolerated((soft, GPU, old), tolerations) == old
    assert find_untolerated((soft, GPU), tolerations) is None
    assert find_untolerated((soft, GPU), tolerations, {"PreferNoSchedule"}) == soft
    assert not tolerated(soft, tolerations)


def test_taints_and_tolerations_are_hashable() -> None:
    again = Taint(key="gpu", value="yes", effect="NoSchedule")

    assert {GPU: 1}[again] == 1
    assert len({Toleration(key="a"), Toleration(key="a"), Toleration(key="b")}) == 2
