"""GoJson: JSON decoding that follows Go's encoding/json."""

from typing import Any

import pytest

from bayplan.api.wire.go_json import (
    decode_json,
    find,
    int_member,
    list_member,
    member,
    text_member,
    texts_by_name,
)
from bayplan.errors import DecodeError


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        pytest.param({"NodeNames": 1}, 1, id="as Go writes it"),
        pytest.param({"nodenames": 1}, 1, id="in another case"),
        pytest.param({"nodeNames": 1, "NODENAMES": 2}, 2, id="of two spellings the last"),
        pytest.param({"nodeNames": 1, "NodeNames": None}, 1, id="null counts as absent"),
        pytest.param({"names": 1}, None, id="absent"),
        pytest.param(None, None, id="null has no fields"),
    ],
)
def test_find(tree: Any, found: Any) -> None:
    assert find(tree, "NodeNames") == found


def test_absent_fields_are_empty() -> None:
    assert member({}, "a") == {}
    assert list_member({"a": None}, "a") == []
    assert text_member(None, "a") == ""
    assert int_member({}, "a") == 0
    assert texts_by_name({"A": {"x": "y", "z": None}}, "a") == {"x": "y", "z": ""}


@pytest.mark.parametrize(
    ("read", "tree", "problem"),
    [
        pytest.param(member, {"a": []}, "a: expected an object; got a list", id="no object"),
        pytest.param(list_member, {"a": "x"}, "a: expected a list; got a text", id="no list"),
        pytest.param(text_member, {"a": 1}, "a: expected a text; got a whole number", id="no text"),
        pytest.param(
            int_member, {"a": 1.5}, "a: expected a whole number; got a number", id="a fraction"
        ),
        pytest.param(
            int_member, {"a": True}, "a: expected a whole number; got true", id="a truth value"
        ),
        pytest.param(member, [], "expected an object; got a list", id="not even an object"),
        pytest.param(
            texts_by_name, {"a": {"x": 1}}, "x: expected a text; got a whole number", id="inside"
        ),
    ],
)
def test_a_type_mismatch_names_the_field(read: Any, tree: Any, problem: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read(tree, "a")

    assert str(raised.value) == problem


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff\xfe", b"nonsense" * 20])
def test_text_that_is_not_json_is_quoted_in_the_error(body: bytes) -> None:
    with pytest.raises(DecodeError, match="expected JSON; got"):
        decode_json(body)
