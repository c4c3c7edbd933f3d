"""JSON merge patch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.wire.whole import merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="added"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="deleted"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="made an object"),
    ],
)
def test_merge_patches(target: Any, patch: Any, merged: Any) -> None:
    assert merge_patch(target, patch) == merged


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
