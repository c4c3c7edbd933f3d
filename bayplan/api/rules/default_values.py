"""Default values: those that do not depend on other fields, as data.

`default_values.txt` has one per line: a type of the table of fields, a field of it and the value as JSON. The value is
set wherever an object of the type is.
"""

from __future__ import annotations

from importlib.resources import files

from ..schema.canonical import Canonical


def _read() -> dict[str, dict[str, bytes]]:
    table: dict[str, dict[str, bytes]] = {}
    text = files(__package__).joinpath("default_values.txt").read_text("utf-8")
    for line in text.splitlines():
        type_name, field, value = line.split(" ", 2)
        table.setdefault(type_name, {})[field] = value.encode()
    return table


CANONICAL = Canonical(_read())
"""The form of built-in objects, with these values."""
