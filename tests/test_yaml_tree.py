"""YAML tree: the meaning of scalars, and errors."""

from typing import Any

import pytest

from bayplan.yaml_tree import (
    MAX_ALIASED,
    RepeatedKey,
    YamlError,
    format_tree,
    iter_documents,
    iter_trees,
)


def read(text: str | bytes) -> Any:
    """The only document of `text`."""
    (tree,) = iter_trees(text)
    return tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("4", 4, id="an integer"),
        pytest.param("-4", -4, id="a negative integer"),
        pytest.param("0x1f", 31, id="hexadecimal"),
        pytest.param("0644", 420, id="a leading zero means octal"),
        pytest.param("0o644", 420, id="octal of YAML 1.2"),
        pytest.param("089", 89, id="no octal, so decimal"),
        pytest.param("1_0.5", 10.5, id="underscores in a number with a point"),
        pytest.param("-0x1F", -31, id="a negative hexadecimal"),
        pytest.param("3.0", 3, id="a whole number with a point is an integer in JSON"),
        pytest.param("1_000", 1000, id="underscores"),
        pytest.param("1.5", 1.5, id="a number with a point"),
        pytest.param("1e3", 1000.0, id="an exponent without a point"),
        pytest.param(
            "1e400", "1e400", id="a number that is too large stays a text, for an error about it"
        ),
        pytest.param("18446744073709551615", 2**64 - 1, id="an unsigned integer"),
        pytest.param("12345678901234567890123", 1.2345678901234568e22, id="beyond 64 bits"),
        pytest.param("500m", "500m", id="a quantity"),
        pytest.param("1Gi", "1Gi", id="a binary quantity"),
        pytest.param("true", True, id="true"),
        pytest.param("Off", False, id="a boolean of YAML 1.1"),
        pytest.param("y", True, id="y"),
        pytest.param("N", False, id="N"),
        pytest.param("~", None, id="null"),
        pytest.param("", None, id="nothing"),
        pytest.param("'4'", "4", id="a quoted number is text"),
        pytest.param('"null"', "null", id="a quoted null is text"),
        pytest.param("!!str 4", "4", id="a tag for text"),
        pytest.param('!!int "3"', 3, id="a tag for a number"),
        pytest.param("!!bool y", True, id="a tag for a boolean"),
        pytest.param("!foo bar", "bar", id="an unknown tag"),
        pytest.param("!!binary aGFsbG8=", "hallo", id="a tag for base64"),
        pytest.param("2026-03-01T10:11:12Z", "2026-03-01T10:11:12Z", id="a time is text"),
        pytest.param("2026-03-01", "2026-03-01", id="a date is text"),
        pytest.param("10:30", "10:30", id="base 60 is text"),
        pytest.param("|\n  a\n  b\n", "a\nb\n", id="a literal"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    assert read(f"a: {text}") == {"a": value}


def test_keys_are_text_as_json_spells_their_value() -> None:
    text = "1: a\ny: b\n0x10: c\n1.5: d\noff: e\n'on': f"

    assert read(text) == {"1": "a", "true": "b", "16": "c", "1.5": "d", "false": "e", "on": "f"}


def test_the_last_of_equal_keys_counts_where_they_are_reported() -> None:
    found: list[RepeatedKey] = []
    text = "a: 1\nb:\n- x: 1\n  x: 2\na: 3\n"

    assert list(iter_trees(text, found.append)) == [{"a": 3, "b": [{"x": 2}]}]
    assert found == [RepeatedKey(("b", 0, "x"), 4, False), RepeatedKey(("a",), 5, False)]


def test_a_merge_counts_more_than_what_stands_before_it() -> None:
    assert read("i: {a: 1, <<: {a: 2, b: 3}}") == {"i": {"a": 2, "b": 3}}
    assert read("i: {<<: [{a: 2, b: 3}, {a: 5}], a: 1}") == {"i": {"a": 1, "b": 3}}


def test_collections_in_both_styles() -> None:
    assert read("a:\n- b: [1, {c: d}]\n  e: {}\n- []\n") == {
        "a": [{"b": [1, {"c": "d"}], "e": {}}, []]
    }


def test_aliases_and_merges() -> None:
    text = "a: &a {x: 1, w: 2}\nb: *a\nc:\n  <<: *a\n  w: 3\nd:\n  <<: [{z: 4}, *a]\n"

    assert read(text) == {
        "a": {"x": 1, "w": 2},
        "b": {"x": 1, "w": 2},
        "c": {"x": 1, "w": 3},
        "d": {"z": 4, "x": 1, "w": 2},
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"a": 1}\n{"a": 2}{"a": 3}', id="JSON in a row"),
        pytest.param(b'\xef\xbb\xbf {"a": 1}\n---\na: 2\n---\n{a: 3}', id="YAML after JSON"),
        pytest.param(b"{a: 1}\n---\na: 2\n---\na: 3", id="YAML in flow style"),
        pytest.param(b"a: 1\n---\na: 2\n---\na: 3", id="YAML"),
    ],
)
def test_documents_of_both_formats(text: bytes) -> None:
    assert list(iter_documents(text)) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_after_two_json_documents_there_is_no_yaml() -> None:
    with pytest.raises(YamlError, match="document 3: expected JSON"):
        list(iter_documents(b'{"a": 1} {"a": 2}\n---\na: 3'))


def test_several_documents_one_of_them_empty() -> None:
    assert list(iter_trees("# note\n---\na: 1\n---\n---\nb: 2\n")) == [{"a": 1}, None, {"b": 2}]


def test_a_few_aliases_of_a_large_part_are_fine() -> None:
    large = ", ".join(["x"] * 1000)

    assert len(read(f"a: &a [{large}]\nb: [{', '.join(['*a'] * 50)}]")["b"]) == 50


def make_bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 10):
        below = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{below}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3", 3, 'expected the key "a" once; got it twice', id="key twice"
        ),
        pytest.param(
            "x:\n  a: 1\n  a: 1", 3, 'expected the key "a" once; got it twice', id="key twice below"
        ),
        pytest.param("a: [1", 2, "expected YAML; did not find expected ',' or ']'", id="open list"),
        pytest.param("a: *b", 1, 'expected an anchor "b" before its alias', id="unknown alias"),
        pytest.param("a: &a [*a]", 1, 'expected an anchor "a" before its alias', id="own alias"),
        pytest.param("a: .inf", 1, "expected a number that JSON has; got .inf", id="infinity"),
        pytest.param("a: !!int x", 1, "expected a value of its tag; got x", id="a wrong tag"),
        pytest.param("~: a", 1, "expected a key that is text; got null", id="null as key"),
        pytest.param("? [a]\n: b", 1, "expected a key that is text; got a collection", id="key"),
        pytest.param(
            "a: {<<: [1]}", 1, "expected a mapping to merge; got something else", id="merge"
        ),
        pytest.param("[" * 300, 1, "expected at most 200 levels", id="too deep"),
        pytest.param(
            make_bomb(),
            6,
            f"expected aliases for at most {MAX_ALIASED} values; got more",
            id="an alias bomb",
        ),
    ],
)
def test_invalid_yaml(text: str, line: int, problem: str) -> None:
    with pytest.raises(YamlError) as caught:
        list(iter_trees(text))

    assert (caught.value.line, caught.value.problem) == (line, problem)


def test_text_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(YamlError, match=r"^expected UTF-8 text; .* at byte 6$"):
        list(iter_trees(b"a: caf\xe9 "))


def test_written_text_is_read_as_the_same_data() -> None:
    tree = {
        "name": "n",
        "y": ["Y", "no", "1", 1, True, None, "ä", "a: b"],
        "deep": {"off": "1e3", "on": ["0o17", 1.0, "089"]},
    }

    assert read(format_tree(tree)) == tree
    assert 'name: "n"' in format_tree(tree).replace("'", '"')
