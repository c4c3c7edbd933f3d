"""Difference: apply the difference between two decoded forms of an object to the object itself.

Our types omit fields that do not affect placement. So a rule that works on them does not write its
result, but carries its difference over to the whole object.
"""

from __future__ import annotations

from typing import Any


def carry_over(whole: Any, before: Any, after: Any) -> Any:
    """`whole` with the difference between `before` and `after` applied; a changed copy, or `whole` itself.

    Lists of equal length are handled item by item; appended items are appended; any other list is
    replaced.
    """
    if before == after:
        return whole
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(whole, dict):
        return _carry_map(whole, before, after)
    if isinstance(after, list) and isinstance(before, list) and isinstance(whole, list):
        if len(whole) == len(before) == len(after):
            return [carry_over(*entries) for entries in zip(whole, before, after, strict=True)]
        if len(whole) == len(before) and after[: len(before)] == before:
            return [*whole, *after[len(before) :]]
    return after


def _carry_map(whole: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> Any:
    carried = dict(whole)
    for key in before:
        if key not in after:
            carried.pop(key, None)
    for key, value in after.items():
        if key not in before:
            carried[key] = value
        elif before[key] != value:
            carried[key] = carry_over(whole.get(key), before[key], value)
    return carried
