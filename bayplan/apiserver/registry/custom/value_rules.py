"""Value rules: the faults of an object by its schema, in kube-apiserver's words.

Mirrors k8s.io/kube-openapi/pkg/validation/validate and, of k8s.io/apiextensions-apiserver/pkg/apiserver, validation and
schema/listtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ....api.rules.field_causes import (
    Cause,
    duplicate,
    invalid_value,
    required,
    too_long,
    too_many,
)
from ....api.text.formats import has_format
from ....api.text.patterns import compile_pattern
from .values import EMBEDDED, NO_SCHEMA, below_of, walk

Tree = dict[str, Any]

INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
NOWHERE = "<nil>"
"""The path of a fault that has none."""
TYPE_INVALID = "FieldValueTypeInvalid"
BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        TYPE_INVALID,
    }
)
"""Reasons of faults after which rules are not checked."""
_FORMATS = {"integer": "int64", "number": "float64"}
"""The formats of values that have one."""
_INT32, _INT64 = 2**31, 2**63
_LIMITS = {
    "multipleOf": "MultipleOf",
    "minimum": "Minimum boundary",
    "maximum": "Maximum boundary",
}
_ENCODER = msgspec.json.Encoder(order="sorted")


def value_causes(value: Any, schema: Tree, path: str, old: Any = None) -> Iterator[Cause]:
    """Yield the faults of a value, except for parts that are unchanged from the `old` value (ratcheting)."""
    if value is None and schema.get("nullable"):
        return
    if old is not None and value == old:
        return
    yield from _type_causes(value, schema, path)
    yield from _alternative_causes(value, schema, path)
    if isinstance(value, str):
        yield from _text_causes(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_causes(value, schema, path)
    elif isinstance(value, list):
        yield from _list_causes(value, schema, path, old)
    if schema.get("enum") is not None and not _is_among(value, schema["enum"]):
        known = ", ".join(f'"{_plain(choice)}"' for choice in schema["enum"])
        message = f"Unsupported value: {_plain(value, quotes=True)}: supported values: {known}"
        yield Cause("FieldValueNotSupported", message, path)
    if isinstance(value, dict):
        yield from _object_causes(value, schema, path, old)


def _type_causes(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    found, wanted = _type_of(value), schema.get("type")
    if schema.get(INT_OR_STRING):
        if found not in ("integer", "string"):
            yield _wrong_type(path, "integer,string", found)
        return
    if not wanted or found == wanted or (wanted == "number" and found == "integer"):
        if found == "integer" and schema.get("format") == "int32" and not -_INT32 <= value < _INT32:
            problem = f"Checked value must be of type integer with format int32 in {path}"
            yield invalid_value(NOWHERE, "", problem)
        return
    format_name = str(schema.get("format") or "")
    if format_name and found not in ("string", "array", "null"):
        yield _wrong_type(path, format_name, _FORMATS.get(found, ""))
    else:
        yield _wrong_type(path, wanted, found)
    if found == "number" and wanted == "integer":
        form = f"with format {format_name}" if format_name else "(default format)"
        problem = f"Checked value must be of type integer {form} in {path}"
        yield invalid_value(NOWHERE, "", problem)


def _wrong_type(path: str, wanted: str, found: str) -> Cause:
    message = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    return Cause(TYPE_INVALID, message, path or NOWHERE)


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _alternative_causes(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults by anyOf, oneOf, allOf and not."""

    def tried(name: str) -> list[list[Cause]]:
        return [list(value_causes(value, one, path)) for one in schema.get(name) or ()]

    def fault(text: str) -> Cause:
        return invalid_value(NOWHERE, "", f'"{path}" must {text}')

    any_of, one_of, all_of = tried("anyOf"), tried("oneOf"), tried("allOf")
    if any_of and all(any_of):
        yield fault("validate at least one schema (anyOf)")
        yield from any_of[0]
    valid = sum(1 for causes in one_of if not causes)
    if one_of and valid != 1:
        count = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield fault(f"validate one and only one schema (oneOf). {count}")
        if not valid:
            yield from one_of[0]
    for causes in all_of:
        yield from causes
    if any(all_of):
        none = ". None validated" if all(all_of) else ""
        yield fault(f"validate all the schemas (allOf){none}")
    refused = schema.get("not")
    if refused is not None and not any(True for _ in value_causes(value, refused, path)):
        yield fault("not validate the schema (not)")


def _text_causes(value: str, schema: Tree, path: str) -> Iterator[Cause]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        problem = f"{path} in body should be at least {shortest} chars long"
        yield invalid_value(path, value, problem)
    elif pattern and not compile_pattern(pattern).search(value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    name = str(schema.get("format") or "")
    if name and schema.get("type") == "string" and not has_format(value, name):
        message = f'Invalid value: "{value}": {path} in body must be of type {name}: "{value}"'
        yield Cause(TYPE_INVALID, message, path)


def _number_causes(value: float, schema: Tree, path: str) -> Iterator[Cause]:
    yield from _boundary_causes(schema, path)
    factor = schema.get("multipleOf")
    if factor is not None:
        yield from _multiple_causes(value, factor, path)
    for name, word, sign in (("maximum", "less", 1), ("minimum", "greater", -1)):
        limit = schema.get(name)
        if limit is None:
            continue
        is_exclusive = bool(schema.get(f"exclusive{name.title()}"))
        beyond = (value - limit) * sign
        if beyond > 0 or (is_exclusive and beyond == 0):
            more = "" if is_exclusive else " or equal to"
            problem = f"{path} in body should be {word} than{more} {_plain(limit)}"
            yield invalid_value(path, value, problem)


def _boundary_causes(schema: Tree, path: str) -> Iterator[Cause]:
    """Yield the limits of an integer that are not integers, or out of the range of its format; kube-apiserver checks
    them with each value.
    """
    if schema.get("type") != "integer":
        return
    name = str(schema.get("format") or "")
    form = f"with format {name}" if name else "(default format)"
    top = _INT32 if name == "int32" else _INT64
    for field, word in _LIMITS.items():
        limit = schema.get(field)
        if limit is not None and not (-top <= limit < top and float(limit).is_integer()):
            problem = f"{word} value must be of type integer {form} in {path}"
            yield invalid_value(NOWHERE, "", problem)


def _multiple_causes(value: float, factor: float, path: str) -> Iterator[Cause]:
    if isinstance(value, int):  # kube-apiserver takes the factor as an integer, too
        factor = int(factor)
        if factor <= 0:
            problem = f"factor MultipleOf declared for {path} must be positive: {factor}"
            yield invalid_value(path, factor, problem)
            return
    if not float(value / factor).is_integer():
        yield invalid_value(path, value, f"{path} in body should be a multiple of {_plain(factor)}")


def _list_causes(value: list[Any], schema: Tree, path: str, old: Any) -> Iterator[Cause]:
    items = schema.get("items")
    if isinstance(items, dict):
        for i, item in enumerate(value):
            yield from value_causes(item, items, f"{path}[{i}]", same_item(item, old, schema))
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        yield invalid_value(path, len(value), f"{path} in body should have at least {fewest} items")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)


def same_item(item: Any, old: Any, schema: Tree) -> Any:
    """The old item with the same keys, in a list that is a map; None in other lists."""
    keys = schema.get(LIST_KEYS)
    if schema.get(LIST_TYPE) != "map" or not keys or not isinstance(old, list):
        return None
    if not isinstance(item, dict):
        return None
    wanted = [item.get(key) for key in keys]
    return next(
        (o for o in old if isinstance(o, dict) and [o.get(key) for key in keys] == wanted), None
    )


def _object_causes(value: Tree, schema: Tree, path: str, old: Any) -> Iterator[Cause]:
    before = old if isinstance(old, dict) else NO_SCHEMA
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        problem = f"{path} in body should have at least {fewest} properties"
        yield invalid_value(path, len(value), problem)
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    for key, item in value.items():
        below = below_of(schema, key)
        if below:
            where = f"{path}.{key}" if path else key
            yield from value_causes(item, below, where, before.get(key))
    for key in schema.get("required") or ():
        if key not in value:
            yield required(f"{path}.{key}" if path else key)


def embedded_causes(value: Any, schema: Tree | None, path: str) -> Iterator[Cause]:
    """Yield the fields that embedded objects lack."""
    for holder, own_schema, where in walk(value, schema, path):
        if isinstance(holder, dict) and own_schema.get(EMBEDDED):
            missing = [name for name in ("apiVersion", "kind") if not holder.get(name)]
            yield from (required(f"{where}.{name}") for name in missing)


def list_type_causes(value: Any, schema: Tree | None, path: str) -> Iterator[Cause]:
    """Yield the duplicates in lists that are sets or maps."""
    for items, own_schema, where in walk(value, schema, path):
        kind, keys = own_schema.get(LIST_TYPE), own_schema.get(LIST_KEYS) or ()
        if not isinstance(items, list) or kind not in ("set", "map"):
            continue
        odd = next((i for i, item in enumerate(items) if not isinstance(item, dict | None)), None)
        if kind == "set":
            yield from _duplicates(items, where)
        elif odd is not None:
            problem = "must be an object for an array of list-type map"
            yield invalid_value(f"{where}[{odd}]", items[odd], problem)
        else:
            known = [{key: item[key] for key in keys if key in (item or ())} for item in items]
            yield from _duplicates(known, where)


def _duplicates(entries: list[Any], path: str) -> Iterator[Cause]:
    """Yield the second appearance of each entry."""
    counts: dict[bytes, int] = {}
    for i, entry in enumerate(entries):
        mark = _ENCODER.encode(entry)
        counts[mark] = counts.get(mark, 0) + 1
        if counts[mark] == 2:
            yield duplicate(f"{path}[{i}]", entry)


def _is_among(value: Any, choices: list[Any]) -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in choices)


def _plain(value: Any, quotes: bool = False) -> str:
    if isinstance(value, str):
        return f'"{value}"' if quotes else value
    return msgspec.json.encode(value).decode()
