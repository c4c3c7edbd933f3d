"""Depth: how deeply objects may be nested, so that no recursive function on them fails."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
"""Levels of the body of a request."""
MAX_STORED_DEPTH = MAX_DEPTH + 10
"""Levels of an object, which records in some of its own the fields that managers own."""


def is_deeper(tree: Any, levels: int) -> bool:
    """Whether lists and objects are nested more deeply than that."""
    below = [tree] if isinstance(tree, dict | list) else []
    for _ in range(levels):
        if not below:
            return False
        below = [
            item
            for holder in below
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
    return bool(below)
