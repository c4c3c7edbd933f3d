"""Values: the effects of a structural schema on an object: unknown fields and nulls are dropped, defaults are set.

Mirrors k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}. All functions modify the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Tree = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
NO_SCHEMA: Tree = {}


def below_of(schema: Tree, key: str) -> Tree | None:
    """The schema of a field or entry; None if it has none."""
    found = (schema.get("properties") or NO_SCHEMA).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    if isinstance(found, dict):
        return found
    return NO_SCHEMA if found else None


def schemas_below(schema: Tree) -> Iterator[tuple[str, Tree]]:
    """The schemas of fields, items and entries, each with its step."""
    for key, below in (schema.get("properties") or NO_SCHEMA).items():
        yield f".{key}", below
    for name, step in (("items", "[]"), ("additionalProperties", "[*]")):
        if isinstance(schema.get(name), dict):
            yield step, schema[name]


def walk(value: Any, schema: Tree | None, path: str = "") -> Iterator[tuple[Any, Tree, str]]:
    """The objects and lists in a value that have a schema, with it and their path; outer ones first."""
    if schema is None:
        return
    if isinstance(value, dict):
        yield value, schema, path
        for key, item in value.items():
            yield from walk(item, below_of(schema, key), f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield value, schema, path
        for i, item in enumerate(value):
            yield from walk(item, schema.get("items"), f"{path}[{i}]")


def prune(tree: Tree, schema: Tree) -> list[str]:
    """Drop the fields that the schema does not have; return their paths."""
    unknown: list[str] = []
    _prune(tree, {**schema, EMBEDDED: True}, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Tree | None, path: str, unknown: list[str]) -> None:
    """A schema of None has no fields."""
    if isinstance(value, list):
        items = (schema or NO_SCHEMA).get("items")
        keeps = bool((schema or NO_SCHEMA).get(PRESERVE))
        for i, item in enumerate(value):
            if items is not None or not keeps:
                _prune(item, items, f"{path}[{i}]", unknown)
    elif isinstance(value, dict):
        _prune_fields(value, schema or NO_SCHEMA, path, unknown)


def _prune_fields(value: Tree, schema: Tree, path: str, unknown: list[str]) -> None:
    keeps = bool(schema.get(PRESERVE))
    for key in list(value):
        if schema.get(EMBEDDED) and key in META_FIELDS:
            continue
        where = f"{path}.{key}" if path else key
        below = below_of(schema, key)
        if below is not None:
            _prune(value[key], below or None, where, unknown)
        elif not keeps:
            unknown.append(where)
            del value[key]


def drop_nulls(tree: Tree, schema: Tree | None) -> None:
    """Drop nulls of fields that must not be null and have no default."""
    for holder, own_schema, _ in walk(tree, schema):
        for key in list(holder) if isinstance(holder, dict) else ():
            below = below_of(own_schema, key)
            is_refused = below and not below.get("nullable") and "default" not in below
            if is_refused and holder[key] is None:
                del holder[key]


def set_defaults(tree: Tree, schema: Tree | None) -> None:
    """Set fields that are not set to their defaults."""
    for holder, own_schema, _ in walk(tree, schema):
        fields = own_schema.get("properties") if isinstance(holder, dict) else None
        for key, below in (fields or NO_SCHEMA).items():
            default = below.get("default")
            if default is not None and (
                key not in holder or (holder[key] is None and not below.get("nullable"))
            ):
                holder[key] = deepcopy(default)


def make_integers(tree: Tree, schema: Tree | None) -> None:
    """Make whole numbers integers where the schema has integers."""
    for holder, own_schema, _ in walk(tree, schema):
        is_list = isinstance(holder, list)
        for key, item in list(enumerate(holder) if is_list else holder.items()):
            below = own_schema.get("items") if is_list else below_of(own_schema, key)
            is_integer = below is not None and below.get("type") == "integer"
            if is_integer and isinstance(item, float) and item.is_integer():
                holder[key] = int(item)
