"""Equality: semantic comparison of parts of objects.

Mirrors the `Semantic` equalities of staging/src/k8s.io/apimachinery/pkg/api/equality/semantic.go:
an absent list or map equals an empty one. Quantities and times are compared as text; the API server
writes equal ones the same way.
"""

from typing import Any

from msgspec import Struct


def is_equal(first: Any, second: Any) -> bool:
    """Whether two decoded values are semantically equal, recursively."""
    if first is second or first == second:
        return True
    if first is None or second is None:
        present = second if first is None else first
        return isinstance(present, tuple | list | dict) and not present
    if isinstance(first, Struct):
        return type(first) is type(second) and all(
            is_equal(getattr(first, name), getattr(second, name))
            for name in first.__struct_fields__
        )
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_equal(first[k], second[k]) for k in first)
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return False
