from typing import Any

import pytest

from bayplan.api.meta import is_equal
from bayplan.api.storage import (
    CSINodeAllocatable,
    TopologySelectorRequirement,
    TopologySelectorTerm,
)


def term(values: tuple[str, ...] | None) -> TopologySelectorTerm:
    requirement = TopologySelectorRequirement(key="zone", values=values)
    return TopologySelectorTerm(match_label_expressions=(requirement,))


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        pytest.param(None, (), True, id="no list and an empty one"),
        pytest.param(None, {}, True, id="no map and an empty one"),
        pytest.param(None, ("a",), False, id="no list and one with an entry"),
        pytest.param(None, 0, False, id="no number and zero"),
        pytest.param(None, CSINodeAllocatable(), False, id="nothing and something that is empty"),
        pytest.param(term(None), term(()), True, id="nested in a structure"),
        pytest.param((term(None),), (term(("a",)),), False, id="a nested difference"),
        pytest.param(("a", "b"), ("b", "a"), False, id="the order of a list matters"),
        pytest.param(
            {"a": (), "b": 1}, {"b": 1, "a": None}, True, id="the order of a map does not"
        ),
        pytest.param({"a": 1}, {"b": 1}, False, id="other keys"),
    ],
)
def test_is_equal(first: Any, second: Any, equal: bool) -> None:
    assert is_equal(first, second) is equal
    assert is_equal(second, first) is equal
