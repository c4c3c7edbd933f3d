"""Carrying: a rule's changes of our form of an object, applied to the whole object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.wire.whole import carry_over


@pytest.mark.parametrize(
    ("whole", "before", "after", "expected"),
    [
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 2}, {"a": 2, "x": 9}, id="changed"),
        pytest.param({"x": 9}, {}, {"a": 2}, {"a": 2, "x": 9}, id="added"),
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {}, {"x": 9}, id="removed"),
        pytest.param(
            {"l": [{"n": 1, "x": 9}, {"n": 2}]},
            {"l": [{"n": 1}, {"n": 2}]},
            {"l": [{"n": 5}, {"n": 2}]},
            {"l": [{"n": 5, "x": 9}, {"n": 2}]},
            id="an element changed",
        ),
        pytest.param(
            {"l": [{"n": 1, "x": 9}]},
            {"l": [{"n": 1}]},
            {"l": [{"n": 1}, {"n": 2}]},
            {"l": [{"n": 1, "x": 9}, {"n": 2}]},
            id="an element added at the end",
        ),
        pytest.param(
            {"l": [{"n": 1, "x": 9}, {"n": 2}]},
            {"l": [{"n": 1}, {"n": 2}]},
            {"l": [{"n": 2}]},
            {"l": [{"n": 2}]},
            id="a list replaced",
        ),
        pytest.param(
            {"l": [{"name": "not ours"}]}, {}, {}, {"l": [{"name": "not ours"}]}, id="not ours"
        ),
    ],
)
def test_carry_over(whole: Any, before: Any, after: Any, expected: Any) -> None:
    assert carry_over(whole, before, after) == expected


TREES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.integers(0, 3), lambda t: st.dictionaries(st.sampled_from("abc"), t) | st.lists(t)
    ),
)


@given(TREES, TREES)
def test_on_the_decoded_form_it_gives_the_result_of_the_rule(before: Any, after: Any) -> None:
    assert carry_over(before, before, after) == after


@given(TREES, TREES, st.dictionaries(st.sampled_from("xyz"), st.integers()))
def test_fields_missing_from_our_form_stay(before: Any, after: Any, others: Any) -> None:
    assert carry_over({**before, **others}, before, after) == {**after, **others}
