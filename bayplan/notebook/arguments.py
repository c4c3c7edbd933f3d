"""Arguments: errors about arguments of the wrong type, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def expect(
    where: str, name: str, given: Any, kinds: type | tuple[type, ...], expected: str
) -> None:
    """Raise TypeError unless `given` is of one of the types; a bool is not a number."""
    wants_bool = bool in (kinds if isinstance(kinds, tuple) else (kinds,))
    if not isinstance(given, kinds) or (isinstance(given, bool) and not wants_bool):
        raise TypeError(f"{where}: {name}: expected {expected}; got {shown(given)}")


def expect_number(where: str, name: str, given: Any, optional: bool = False) -> None:
    """Raise TypeError unless `given` is a whole number, or None where that is allowed."""
    if given is not None or not optional:
        expect(where, name, given, int, "a whole number")


def several(where: str, name: str, given: Any, kinds: tuple[type, ...], expected: str) -> list[Any]:
    """The things that were given: one stands for a list of one. Raises TypeError for anything else."""
    if isinstance(given, kinds):
        return [given]
    if isinstance(given, Mapping | str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{where}: {name}: expected {expected}; got {shown(given)}")
    found = list(given)
    for each in found:
        expect(where, name, each, kinds, expected)
    return found


def shown(given: Any) -> str:
    """The argument in a few words."""
    if isinstance(given, str | int | float | bool | Path | type(None) | type):
        text = repr(given)
        return text if len(text) <= 60 else f"{text[:56]} ..."
    name = type(given).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
