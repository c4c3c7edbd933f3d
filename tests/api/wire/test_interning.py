"""Sharing: one object for equal values."""

import pytest

from bayplan.api.meta import NO_STRINGS
from bayplan.api.taints import Taint
from bayplan.api.wire.interning import shared, shared_map


def test_equal_values_become_one() -> None:
    first, second = Taint(key="one"), Taint(key="one")

    assert shared(first) is shared(second)
    assert shared(Taint(key="two")) is not shared(first)


def test_equal_maps_become_one() -> None:
    assert shared_map({"only": "here"}) is shared_map({"only": "here"})
    assert shared_map(None) is shared_map({}) is NO_STRINGS


def test_a_new_value_is_checked_once_and_not_stored_when_the_check_fails() -> None:
    def refuse(value: Taint) -> None:
        raise ValueError(value.key)

    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            shared(Taint(key="refused"), refuse)
    known = shared(Taint(key="known"))
    assert shared(Taint(key="known"), refuse) is known
