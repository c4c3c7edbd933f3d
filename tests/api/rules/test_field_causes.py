"""Field causes: a Part names the fields of its faults by their paths, and each rule refuses what it is for."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.api.rules.field_causes import Part


def not_a(text: str) -> tuple[str, ...]:
    return () if text == "a" else ("must be a",)


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        pytest.param("spec", "name", "spec.name", id="a field"),
        pytest.param("", "name", "name", id="a field of the object"),
        pytest.param("spec", "", "spec", id="the part itself"),
        pytest.param("data", "[key]", "data[key]", id="an entry"),
        pytest.param("spec", "hosts[1]", "spec.hosts[1]", id="an item of a list"),
    ],
)
def test_path(path: str, name: str, expected: str) -> None:
    part = Part({}, path)

    part.required(name)

    assert part.causes[0].field == expected


def test_faults_of_parts_below_are_those_of_the_object() -> None:
    pod = Part({"spec": {"containers": [{"name": "a"}, None], "volumes": [{}]}})

    for one in pod.below("spec").each("volumes", "containers"):
        one.needs("name")
    pod.below("status").required("phase")

    fields = ["spec.volumes[0].name", "spec.containers[1].name", "status.phase"]
    assert [cause.field for cause in pod.causes] == fields


@pytest.mark.parametrize(
    ("rule", "refused", "accepted"),
    [
        pytest.param(
            lambda p: p.needs("x"), [None, "", 0, []], ["a", 1], id="a field that is needed"
        ),
        pytest.param(lambda p: p.check("x", not_a), [None, "", "b"], ["a"], id="a text"),
        pytest.param(
            lambda p: p.text("x", not_a), ["b"], [None, "", "a"], id="a text, if not empty"
        ),
        pytest.param(lambda p: p.given("x", not_a), ["", "b"], [None, "a"], id="a text, if set"),
        pytest.param(
            lambda p: p.needs_text("x", not_a), [None, "", "b"], ["a"], id="a text that is needed"
        ),
        pytest.param(
            lambda p: p.choice("x", "a", "b"), ["", "c"], [None, "a"], id="a word, if set"
        ),
        pytest.param(
            lambda p: p.needs_choice("x", "a", "b"),
            [None, "", "c"],
            ["b"],
            id="a word that is needed",
        ),
        pytest.param(
            lambda p: p.limit("x", 1, 9, "must be 1 to 9"),
            [0, 10],
            [None, 1, 9],
            id="a number, if set",
        ),
        pytest.param(lambda p: p.not_negative("x"), [-1], [None, 0, 1], id="a number from 0 on"),
        pytest.param(
            lambda p: p.unique("x", {"a"}), ["a"], [None, "b"], id="a value that is unique"
        ),
    ],
)
def test_rule(rule: Callable[[Part], None], refused: list[Any], accepted: list[Any]) -> None:
    for value, count in [*((one, 1) for one in refused), *((one, 0) for one in accepted)]:
        part = Part({"x": value})
        rule(part)
        assert [cause.field for cause in part.causes] == ["x"] * count, value


def test_a_value_that_is_unique_is_noted() -> None:
    seen: set[str] = set()
    part = Part({"items": [{"name": "a"}, {"name": "a"}]}, "spec")

    for one in part.each("items"):
        one.unique("name", seen)

    assert [tuple(cause) for cause in part.causes] == [
        ("FieldValueDuplicate", 'Duplicate value: "a"', "spec.items[1].name")
    ]
