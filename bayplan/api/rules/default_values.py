"""Default values: those that do not depend on other fields, as data.

`default_values.txt` has one per line: the name under which objects are stored, a path and the value as JSON. `[]` is
every item of a list. The value is set where what contains it is there, in the order of the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

Tree = dict[str, Any]
Default = tuple[tuple[str, ...], str, str]
"""The steps to the container, the name of the field, and its value as JSON."""


def set_values(storage: str, tree: Tree) -> None:
    """Set the fields that are not set."""
    for steps, name, value in _table().get(storage, ()):
        for holder in _reach(tree, steps):
            if holder.get(name) is None:
                holder[name] = msgspec.json.decode(value)


def _reach(value: Any, steps: tuple[str, ...]) -> Iterator[Tree]:
    """Yield the objects at the end of the steps."""
    if not steps:
        if isinstance(value, dict):
            yield value
        return
    if not isinstance(value, dict):
        return
    found = value.get(steps[0].removesuffix("[]"))
    items = found if steps[0].endswith("[]") and isinstance(found, list) else [found]
    for item in items:
        yield from _reach(item, steps[1:])


@cache
def _table() -> dict[str, list[Default]]:
    table: dict[str, list[Default]] = {}
    text = files(__package__).joinpath("default_values.txt").read_text("utf-8")
    for line in text.splitlines():
        storage, path, value = line.split(" ", 2)
        *steps, name = path.split(".")
        table.setdefault(storage, []).append((tuple(steps), name, value))
    return table
