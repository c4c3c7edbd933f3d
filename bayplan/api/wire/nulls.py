"""Nulls: the meaning of null in a manifest, as Go reads it into the types of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schema.canonical import zero_value
from ..schema.fields import FIELDS, FieldType
from ..schema.unknown import schema_type

ZEROS: Mapping[str, str] = {
    **dict.fromkeys(("labels", "annotations", "nodeSelector", "matchLabels"), ""),
    **dict.fromkeys(("requests", "limits"), "0"),
}
"""Values of null in maps, by the field."""
REMOVED: Mapping[str, str] = {}
"""In a manifest that is applied to an existing object, null removes entries of maps, too."""


def without_nulls(tree: Any, zeros: Mapping[str, str] = ZEROS, field: str = "") -> Any:
    """The tree of a field without nulls: those of objects are absent, those of maps the zero values of their types."""
    if isinstance(tree, Mapping):
        zero = zeros.get(field)
        return {
            key: zero if value is None else without_nulls(value, zeros, key)
            for key, value in tree.items()
            if value is not None or zero is not None
        }
    if isinstance(tree, list | tuple):
        return [without_nulls(value, zeros) for value in tree]
    return tree


def read_nulls(tree: Any, api_version: str, kind: str) -> Any:
    """The tree of an object without nulls; in lists of built-in types a null is a zero value, too."""
    found = without_nulls(tree)
    _fill(found, FieldType("struct", schema_type(api_version, kind)))
    return found


def _fill(value: Any, kind: FieldType) -> None:
    if kind.form == "struct" and isinstance(value, dict):
        fields = FIELDS.of(kind.name)
        for name in value.keys() & fields.keys():
            _fill(value[name], fields[name].type)
    elif kind.item is not None and isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if item is None:
                value[key] = zero_value(kind.item)
            _fill(item, kind.item)
