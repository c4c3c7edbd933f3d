"""Interning: one object for equal values, so that a hundred thousand pods stay small."""

import sys
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ..meta import NO_STRINGS

T = TypeVar("T", bound=Hashable)

_LIMIT = 1 << 16
_VALUES: dict[Any, Any] = {}
_MAPS: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}


def shared(value: T, check: Callable[[T], None] | None = None) -> T:
    """Return the first value that equals this one; `check` gets a new value before it is stored."""
    found = _VALUES.get(value)
    if found is not None:
        assert type(found) is type(value), "equal values of different types must not be shared"
        return found
    if check is not None:
        check(value)
    if len(_VALUES) >= _LIMIT:
        _VALUES.clear()  # bounds memory; equal values are no longer shared, which is harmless
    _VALUES[value] = value
    return value


def shared_map(values: dict[str, str] | None) -> dict[str, str]:
    """Return one map for equal maps such as labels; callers must not modify it."""
    if not values:
        return NO_STRINGS
    if len(_MAPS) >= _LIMIT:
        _MAPS.clear()
    return _MAPS.setdefault(tuple(values.items()), values)


shared_text = sys.intern
"""Returns one text for equal texts that occur often, such as node names."""
