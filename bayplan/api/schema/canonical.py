"""Canonical: built-in objects in the form in which kube-apiserver writes them.

kube-apiserver reads an object into the structs of its types and writes these. So a zero value that is equal to an
absent one is not written (`readOnly: false`, `env: []`), fields that are not optional are (`grpc.service`,
`lastProbeTime: null`), and quantities have one notation. The table of fields has both properties of a field. All
functions modify the given tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from ..text.quantity import NANO_PER_MILLI, ExactAmount
from .fields import FIELDS, Field, FieldType

Tree = dict[str, Any]
Visit = Callable[[Any], Any]
"""Returns the canonical value; None if the field is not written."""
Defaults = Mapping[str, bytes]
"""The default values of fields, as JSON."""

SCHEMA = "apiextensions.v1.JSONSchemaProps"
_SCHEMAS = frozenset({"additionalItems", "additionalProperties", "items"})
"""Fields of a schema that may be a schema themselves."""
_LONG = 1e21
"""Go writes numbers from this one on with an exponent."""
_ZEROS: Mapping[str, Any] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "number": 0,
    "intstr": 0,
    "bool": False,
    "quantity": "0",
}


class _Struct(NamedTuple):
    """The work on one type."""

    visits: Mapping[str, Visit | None]
    """By field; None if only null is replaced."""
    structs: Mapping[str, FieldType]
    """The fields with structs in them."""
    parts: tuple[str, ...]
    """The structs that every object has."""
    written: tuple[Field, ...]
    """The fields that every object has."""


class Canonical:
    """Gives objects their canonical form. `defaults` has the values of fields by type."""

    def __init__(self, defaults: Mapping[str, Defaults]) -> None:
        self._defaults = defaults
        self._of = cache(self._struct)

    def strip(self, tree: Any, type_name: str) -> None:
        """Remove zero values and unknown fields, and set the default values of the types.

        Structs that every object has are added, for their own default values.
        """
        if not isinstance(tree, dict):
            return
        work = self._of(type_name)
        visits = work.visits
        if not visits:
            return
        for name in work.parts:
            if tree.get(name) is None:
                tree[name] = {}
        for name in list(tree):
            value = tree[name]
            if value is None or name not in visits:
                del tree[name]
                continue
            visit = visits[name]
            if visit is not None:
                value = visit(value)
                if value is None:
                    del tree[name]
                else:
                    tree[name] = value
        for name, default in self._defaults.get(type_name, {}).items():
            if name not in tree:
                tree[name] = msgspec.json.decode(default)

    def complete(self, tree: Any, type_name: str) -> None:
        """Add the fields that every object of the type has."""
        if not isinstance(tree, dict):
            return
        work = self._of(type_name)
        for field in work.written:
            if field.name not in tree:
                tree[field.name] = _zero(field)
        for name, kind in work.structs.items():
            if name in tree:
                self._complete_value(tree[name], kind)

    def _complete_value(self, value: Any, kind: FieldType) -> None:
        if kind.form == "struct":
            self.complete(value, kind.name)
            return
        assert kind.item is not None
        for entry in (value.values() if isinstance(value, dict) else value) or ():
            self._complete_value(entry, kind.item)

    def _struct(self, type_name: str) -> _Struct:
        fields = FIELDS.of(type_name)
        is_schema = type_name == SCHEMA
        visits = {
            name: self._schema_or_more if is_schema and name in _SCHEMAS else self._visit(field)
            for name, field in fields.items()
        }
        structs = {name: field.type for name, field in fields.items() if _has_struct(field.type)}
        written = tuple(field for field in fields.values() if field.is_always_written)
        parts = tuple(f.name for f in written if f.type.form == "struct" and not f.is_pointer)
        return _Struct(visits, structs, parts, written)

    def _visit(self, field: Field) -> Visit | None:
        kind = field.type
        if kind.form == "struct":
            return self._visit_struct(kind.name)
        if kind.item is not None:
            return self._visit_entries(kind)
        if kind.name == "quantity":
            return quantity_text
        if kind.name == "number":
            return _number
        if field.is_pointer or kind.name not in _ZEROS or field.is_always_written:
            return None
        return lambda value: value or None

    def _visit_struct(self, type_name: str) -> Visit:
        def visit(value: Any) -> Any:
            self.strip(value, type_name)
            return value

        return visit

    def _visit_entries(self, kind: FieldType) -> Visit:
        """Visit a list or map, which is not written when it is empty."""
        item = kind.item
        assert item is not None
        if item.name == "quantity":
            return lambda value: _amounts(value) or None
        if kind.form == "map" and item.name == "string":
            return lambda value: _texts(value) or None
        if not _has_struct(item):
            return lambda value: value or None

        def visit(value: Any) -> Any:
            for entry in value.values() if isinstance(value, dict) else value:
                self._strip_value(entry, item)
            return value or None

        return visit

    def _strip_value(self, value: Any, kind: FieldType) -> None:
        if kind.form == "struct":
            self.strip(value, kind.name)
        elif kind.item is not None and value:
            for entry in value.values() if isinstance(value, dict) else value:
                self._strip_value(entry, kind.item)

    def _schema_or_more(self, value: Any) -> Any:
        for schema in value if isinstance(value, list) else (value,):
            self.strip(schema, SCHEMA)
        return value


def _has_struct(kind: FieldType) -> bool:
    return kind.form == "struct" or (kind.item is not None and _has_struct(kind.item))


def _zero(field: Field) -> Any:
    """The value of a field that is written and not set."""
    if field.is_pointer:
        return None
    return zero_value(field.type) if field.type.item is None else None


def zero_value(kind: FieldType) -> Any:
    """The value that null is read as in a list; None stays None for any value."""
    return {} if kind.form == "struct" else _ZEROS.get(kind.name)


def quantity_text(value: Any) -> Any:
    """A quantity in the notation that Kubernetes prints; one that cannot be read stays."""
    try:
        return str(ExactAmount.of(value))
    except ValueError:
        return value


def _number(value: Any) -> Any:
    """A number as Go writes it: one that is whole without a point."""
    is_whole = isinstance(value, float) and abs(value) < _LONG and value.is_integer()
    return int(value) if is_whole else value


def _texts(value: Any) -> Any:
    """Texts by name; null is the empty one."""
    if not isinstance(value, dict) or None not in value.values():
        return value
    return {name: "" if text is None else text for name, text in value.items()}


def _amounts(value: Any) -> Any:
    """Amounts of resources, rounded up to thousandths."""
    if not isinstance(value, dict):
        return value
    return {name: _rounded(amount) for name, amount in value.items()}


@lru_cache(maxsize=4096)
def _rounded(value: Any) -> Any:
    try:
        amount = ExactAmount.of(value)
    except ValueError:
        return value
    milli = -(-amount.nano // NANO_PER_MILLI)
    return str(ExactAmount(milli * NANO_PER_MILLI, amount.notation))
