"""JSON patch and JSON merge patch."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.apiserver.schema.json_patch import PatchError, json_patch, merge_patch

DOCUMENT = {"a": {"b": [1, 2, 3]}, "c~/d": "x"}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([], DOCUMENT, id="nothing to do"),
        pytest.param(
            [{"op": "add", "path": "/a/b/1", "value": 9}],
            {"a": {"b": [1, 9, 2, 3]}, "c~/d": "x"},
            id="added before an element",
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/-", "value": 9}],
            {"a": {"b": [1, 2, 3, 9]}, "c~/d": "x"},
            id="added at the end",
        ),
        pytest.param(
            [{"op": "remove", "path": "/a/b/0"}],
            {"a": {"b": [2, 3]}, "c~/d": "x"},
            id="an element removed",
        ),
        pytest.param(
            [{"op": "replace", "path": "/c~0~1d", "value": "y"}],
            {"a": {"b": [1, 2, 3]}, "c~/d": "y"},
            id="escaped name replaced",
        ),
        pytest.param(
            [{"op": "move", "from": "/a/b", "path": "/e"}],
            {"a": {}, "c~/d": "x", "e": [1, 2, 3]},
            id="moved",
        ),
        pytest.param(
            [{"op": "copy", "from": "/a/b/2", "path": "/a/x"}],
            {"a": {"b": [1, 2, 3], "x": 3}, "c~/d": "x"},
            id="copied",
        ),
        pytest.param(
            [{"op": "test", "path": "/a/b", "value": [1, 2, 3]}, {"op": "remove", "path": "/a"}],
            {"c~/d": "x"},
            id="test holds",
        ),
    ],
)
def test_json_patch(operations: list[dict[str, Any]], expected: Any) -> None:
    before = deepcopy(DOCUMENT)

    assert json_patch(before, operations) == expected
    assert before == DOCUMENT, "the document itself is left alone"


@pytest.mark.parametrize(
    ("operations", "unprocessable"),
    [
        pytest.param({"op": "add"}, False, id="no list"),
        pytest.param([1], False, id="no object"),
        pytest.param([{"op": "swap", "path": "/a"}], False, id="unknown operation"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], False, id="no pointer"),
        pytest.param([{"op": "add", "path": "/a/b"}], False, id="no value"),
        pytest.param([{"op": "remove", "path": "/x"}], True, id="nothing to remove"),
        pytest.param([{"op": "replace", "path": "/a/b/7", "value": 1}], True, id="no such element"),
        pytest.param([{"op": "add", "path": "/c~0~1d/x", "value": 1}], True, id="within a text"),
        pytest.param([{"op": "test", "path": "/a/b/0", "value": 2}], True, id="test fails"),
        pytest.param([{"op": "test", "path": "/a/b/0", "value": True}], True, id="true is not one"),
        pytest.param([{"op": "remove", "path": ""}], False, id="the whole document"),
    ],
)
def test_json_patch_refuses(operations: Any, unprocessable: bool) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(DOCUMENT, operations)

    assert caught.value.is_unprocessable is unprocessable


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({}, {"a": {"b": 1}, "c": [1]}, id="nothing"),
        pytest.param({"a": {"b": None}}, {"a": {}, "c": [1]}, id="null removes"),
        pytest.param({"a": {"d": 2}}, {"a": {"b": 1, "d": 2}, "c": [1]}, id="objects are merged"),
        pytest.param({"c": [2]}, {"a": {"b": 1}, "c": [2]}, id="lists are replaced"),
        pytest.param({"a": 5}, {"a": 5, "c": [1]}, id="an object replaced by a number"),
    ],
)
def test_merge_patch(patch: Any, expected: Any) -> None:
    assert merge_patch({"a": {"b": 1}, "c": [1]}, patch) == expected


TREES = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(TREES, TREES)
def test_merging_twice_is_merging_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)

    assert merge_patch(once, patch) == once
