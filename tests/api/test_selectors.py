"""Selectors: the meaning of each operator, and equality of selectors."""

import pytest

from bayplan.api.selectors import (
    NAME_FIELD,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    matches_map,
)
from bayplan.errors import InputError


def make_requirement(operator: str, *values: str, key: str = "k") -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("requirement", "value", "matches"),
    [
        pytest.param(make_requirement("In", "a", "b"), "b", True, id="In, one of them"),
        pytest.param(make_requirement("In", "a"), "b", False, id="In, another"),
        pytest.param(make_requirement("In", "a"), None, False, id="In, absent"),
        pytest.param(make_requirement("In", ""), "", True, id="In, the empty value"),
        pytest.param(make_requirement("NotIn", "a"), "b", True, id="NotIn, another"),
        pytest.param(make_requirement("NotIn", "a"), "a", False, id="NotIn, that one"),
        pytest.param(make_requirement("NotIn", "a"), None, True, id="NotIn, absent"),
        pytest.param(make_requirement("Exists"), "", True, id="Exists, even empty"),
        pytest.param(make_requirement("Exists"), None, False, id="Exists, absent"),
        pytest.param(make_requirement("DoesNotExist"), None, True, id="DoesNotExist, absent"),
        pytest.param(make_requirement("DoesNotExist"), "", False, id="DoesNotExist, empty"),
        pytest.param(make_requirement("Gt", "5"), "6", True, id="Gt, above"),
        pytest.param(make_requirement("Gt", "5"), "5", False, id="Gt, equal"),
        pytest.param(make_requirement("Gt", "5"), "x6", False, id="Gt, value is no integer"),
        pytest.param(make_requirement("Gt", "x"), "6", False, id="Gt, bound is no integer"),
        pytest.param(make_requirement("Gt", "5"), None, False, id="Gt, absent"),
        pytest.param(make_requirement("Gt", "5"), "6.5", False, id="Gt, fraction"),
        pytest.param(make_requirement("Gt", "5"), "007", True, id="Gt, leading zeros"),
        pytest.param(make_requirement("Gt", "5"), str(2**63), False, id="Gt, beyond 64 bits"),
        pytest.param(make_requirement("Lt", "5"), "4", True, id="Lt, below"),
        pytest.param(make_requirement("Lt", "5"), "5", False, id="Lt, equal"),
        pytest.param(make_requirement("Lt", "5"), None, False, id="Lt, absent"),
        pytest.param(make_requirement("Lt", "5", "9"), "4", False, id="Lt, two bounds"),
        pytest.param(make_requirement("Like", "a"), "a", False, id="unknown operator"),
    ],
)
def test_requirement(requirement: Requirement, value: str | None, matches: bool) -> None:
    labels = {} if value is None else {"k": value}

    assert requirement.matches_value(value) is matches
    assert requirement.matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param(LabelSelector(), True, id="empty picks all"),
        pytest.param(LabelSelector.of({"app": "web"}), True, id="labels"),
        pytest.param(LabelSelector.of({"app": "db"}), False, id="other labels"),
        pytest.param(
            LabelSelector.of({"app": "web"}).with_requirement("tier", "Exists", ()),
            False,
            id="all conditions must hold",
        ),
        pytest.param(
            LabelSelector.of({"app": "web"}).with_requirement("tier", "NotIn", ["back"]),
            True,
            id="an absent key is not in the values",
        ),
    ],
)
def test_label_selector(selector: LabelSelector, matches: bool) -> None:
    assert selector.matches({"app": "web", "x": "y"}) is matches


def test_label_selectors_with_equal_requirements_are_equal() -> None:
    by_map = LabelSelector(match_labels={"b": "2", "a": "1"})
    by_expressions = LabelSelector(
        match_expressions=(
            make_requirement("In", "1", key="a"),
            make_requirement("In", "2", "2", key="b"),
        )
    )

    assert by_map == by_expressions
    assert {by_map: "found"}[by_expressions] == "found"
    assert by_map != LabelSelector.of({"a": "1"})
    assert LabelSelector() == LabelSelector.of(None)
    assert LabelSelector().is_empty


def test_label_selector_requirements_are_sorted() -> None:
    selector = LabelSelector(
        match_labels={"z": "1"}, match_expressions=(make_requirement("NotIn", "d", "c", key="a"),)
    )

    assert selector.requirements == (
        make_requirement("NotIn", "c", "d", key="a"),
        make_requirement("In", "1", key="z"),
    )


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        pytest.param(
            make_requirement("Gt", "1"),
            'matchExpressions[0].operator: expected In, NotIn, Exists or DoesNotExist; got "Gt"',
            id="operator of node selectors only",
        ),
        pytest.param(
            make_requirement("In"),
            "matchExpressions[0].values: expected at least one for operator In; got none",
            id="In without values",
        ),
        pytest.param(
            make_requirement("Exists", "a"),
            "matchExpressions[0].values: expected none for operator Exists; got 1",
            id="Exists with a value",
        ),
        pytest.param(
            make_requirement("Exists", key="-bad"),
            'matchExpressions[0].key: expected a label key; got "-bad"',
            id="no label key",
        ),
        pytest.param(
            make_requirement("In", "a b"),
            'matchExpressions[0].values: expected label values; got "a b"',
            id="no label value",
        ),
    ],
)
def test_label_selector_validate(requirement: Requirement, message: str) -> None:
    with pytest.raises(InputError) as caught:
        LabelSelector(match_expressions=(requirement,)).validate()

    assert str(caught.value) == message


def test_label_selector_validate_checks_the_map() -> None:
    with pytest.raises(InputError, match=r"^matchLabels\.app: expected label values; got \"a/b\"$"):
        LabelSelector.of({"app": "a/b"}).validate()
    LabelSelector.of({"example.com/app": "ok"}).validate()


LABELS = {"zone": "a", "cores": "16"}
ZONE_A = make_requirement("In", "a", key="zone")
ZONE_B = make_requirement("In", "b", key="zone")
MANY_CORES = make_requirement("Gt", "8", key="cores")
BROKEN = make_requirement("Gt", "many", key="cores")


def make_term(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param((), False, id="no term picks nothing"),
        pytest.param((make_term(),), False, id="an empty term picks nothing"),
        pytest.param((make_term(ZONE_A),), True, id="one condition"),
        pytest.param((make_term(ZONE_A, MANY_CORES),), True, id="all conditions hold"),
        pytest.param((make_term(ZONE_B, MANY_CORES),), False, id="one condition fails"),
        pytest.param((make_term(ZONE_B), make_term(ZONE_A)), True, id="terms are alternatives"),
        pytest.param((make_term(BROKEN), make_term(ZONE_A)), True, id="a broken term is skipped"),
        pytest.param((make_term(BROKEN, ZONE_A),), False, id="a broken condition breaks its term"),
        pytest.param(
            (make_term(make_requirement("NotIn", "-5", key="zone")),),
            False,
            id="a value that no label can have breaks its term",
        ),
    ],
)
def test_node_selector(terms: tuple[NodeSelectorTerm, ...], matches: bool) -> None:
    assert NodeSelector(node_selector_terms=terms).matches(LABELS, "n1") is matches


@pytest.mark.parametrize(
    ("field", "matches"),
    [
        pytest.param(make_requirement("In", "n1", key=NAME_FIELD), True, id="that name"),
        pytest.param(make_requirement("In", "n2", key=NAME_FIELD), False, id="another name"),
        pytest.param(make_requirement("NotIn", "n2", key=NAME_FIELD), True, id="not that name"),
        pytest.param(
            make_requirement("NotIn", "n1", key=NAME_FIELD), False, id="all names but that one"
        ),
        pytest.param(
            make_requirement("In", "n1", "n2", key=NAME_FIELD), False, id="two names are too many"
        ),
        pytest.param(make_requirement("Exists", key=NAME_FIELD), False, id="other operator"),
        pytest.param(make_requirement("In", "n1", key="metadata.uid"), False, id="other field"),
    ],
)
def test_node_selector_fields(field: Requirement, matches: bool) -> None:
    assert make_term(fields=(field,)).matches(LABELS, "n1") is matches


def test_node_selector_lists_its_usable_terms() -> None:
    good = make_term(ZONE_A)
    selector = NodeSelector(node_selector_terms=(make_term(), make_term(BROKEN), good))

    assert selector.usable_terms == (good,)
    assert list(selector.problems()) == [
        (
            "nodeSelectorTerms[1].matchExpressions[0].values",
            "expected one integer for operator Gt",
        )
    ]
    assert {selector: 1}[NodeSelector(node_selector_terms=selector.terms)] == 1


def test_matches_map() -> None:
    assert matches_map({"zone": "a"}, LABELS)
    assert matches_map(None, LABELS)
    assert not matches_map({"zone": "a", "disk": "ssd"}, LABELS)
