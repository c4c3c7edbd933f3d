"""Versions: one version of a custom resource: its schema, columns, and the paths of its scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from ....api.rules.field_causes import Cause, invalid_value
from ....api.schema.fields import FIELDS, Field, FieldType
from ....api.text.json_path import JsonPath, parse_json_path
from .schema_expressions import has_rules, rule_causes
from .value_rules import (
    BLOCKING,
    LIST_KEYS,
    LIST_TYPE,
    NOWHERE,
    embedded_causes,
    list_type_causes,
    value_causes,
)
from .values import NO_SCHEMA, drop_nulls, make_integers, prune, schemas_below, set_defaults

Tree = dict[str, Any]

_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)
_STEP = "\n"
"""Between the steps of a path within a schema, where names can have any character of a line."""
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class CustomSchema:
    """A structural schema, and its effects on objects."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def has_defaults(self) -> bool:
        """Whether it sets fields."""
        return _has_default(self.tree)

    @cached_property
    def has_rules(self) -> bool:
        """Whether it has rules in CEL."""
        return has_rules(self.tree)

    def prune(self, tree: Tree) -> list[str]:
        """Drop the fields that the schema does not have; return their paths."""
        return prune(tree, self.tree)

    def complete(self, tree: Tree) -> None:
        """Drop unknown fields and nulls, and set defaults."""
        prune(tree, self.tree)
        drop_nulls(tree, self.tree)
        if self.has_defaults:
            set_defaults(tree, self.tree)
        make_integers(tree, self.tree)

    def null_causes(self, applied: Tree) -> list[Cause]:
        """The faults of an object that is applied, if it has nulls that must not be there.

        kube-apiserver drops such nulls from objects that are sent as a whole, not from those of server-side apply.
        """
        with_nulls = deepcopy(applied)
        prune(with_nulls, self.tree)
        set_defaults(with_nulls, self.tree)
        without = deepcopy(with_nulls)
        drop_nulls(without, self.tree)
        return [] if without == with_nulls else list(self.causes(with_nulls))

    def causes(self, tree: Tree, old: Tree | None = None) -> Iterator[Cause]:
        """Yield the faults of an object, or of its change."""
        found = [
            *value_causes(
                _with_metadata(tree),
                _without_metadata(self.tree),
                "",
                None if old is None else _with_metadata(old),
            ),
            *embedded_causes(tree, self.tree, ""),
        ]
        if old is None or not any(True for _ in list_type_causes(old, self.tree, "")):
            found += list_type_causes(tree, self.tree, "")
        yield from found
        yield from self._rule_causes(tree, old, found)

    def status_causes(self, tree: Tree, old: Tree) -> Iterator[Cause]:
        """Yield the faults of a status that a client wrote."""
        below = (self.tree.get("properties") or NO_SCHEMA).get("status")
        found: list[Cause] = []
        if below is not None and "status" in tree:
            found += value_causes(tree["status"], below, "status", old.get("status"))
            found += list_type_causes(tree["status"], below, "status")
        yield from found
        yield from self._rule_causes(tree, old, found)

    def _rule_causes(self, tree: Tree, old: Tree | None, found: list[Cause]) -> Iterator[Cause]:
        if not self.has_rules:
            return
        if any(cause.reason in BLOCKING for cause in found):
            yield invalid_value(NOWHERE, None, _UNCHECKED)
        else:
            yield from rule_causes(tree, old, self.tree)

    # The fields, for server-side apply

    def of(self, type_name: str) -> Mapping[str, Field]:
        """The fields of a type: of a built-in one, or the schema at that path; "" is the object."""
        if type_name and not type_name.startswith(_STEP):
            return FIELDS.of(type_name)
        schema: Any = self.tree
        for step in type_name.split(_STEP)[1:]:
            schema = schema[step] if isinstance(schema, dict) else NO_SCHEMA
        found = {}
        for name, below in (schema.get("properties") or NO_SCHEMA).items():
            found[name] = _field(name, below, _STEP.join((type_name, "properties", name)))
        if not type_name:
            found["metadata"] = Field("metadata", FieldType("struct", "meta.v1.ObjectMeta"))
        return found


def _field(name: str, schema: Tree, path: str) -> Field:
    keys: tuple[str, ...] | None = None
    match schema.get(LIST_TYPE):
        case "map":
            keys = tuple(schema.get(LIST_KEYS) or ())
        case "set":
            keys = ()
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return Field(name, _field_type(schema, path), list_keys=keys, is_atomic=is_atomic)


def _field_type(schema: Tree, path: str) -> FieldType:
    items, more = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        return FieldType("list", item=_field_type(items, f"{path}{_STEP}items"))
    if isinstance(more, dict):
        return FieldType("map", item=_field_type(more, f"{path}{_STEP}additionalProperties"))
    return FieldType("struct", path) if "properties" in schema else FieldType("scalar", "any")


def _has_default(schema: Tree) -> bool:
    is_set = schema.get("default") is not None
    return is_set or any(_has_default(below) for _, below in schemas_below(schema))


def _with_metadata(tree: Tree) -> Tree:
    """The object with the metadata that schemas may restrict."""
    metadata = tree.get("metadata") or {}
    return {**tree, "metadata": {k: metadata[k] for k in ("name", "generateName") if k in metadata}}


def _without_metadata(schema: Tree) -> Tree:
    """The schema without `apiVersion` and `kind`, which stored objects do not have."""
    wanted = [name for name in schema.get("required") or () if name not in ("apiVersion", "kind")]
    return {**schema, "required": wanted}


class PrinterColumn:
    """A column of `kubectl get`."""

    def __init__(self, tree: Tree) -> None:
        self.name = str(tree["name"])
        self.type = str(tree["type"])
        self.format = str(tree.get("format") or "")
        self.priority = int(tree.get("priority") or 0)
        path = str(tree["jsonPath"])
        self.description = str(tree.get("description") or f"The value at {path}")
        self.path: JsonPath = parse_json_path(path)


class CustomVersion:
    """A version of a definition."""

    def __init__(self, tree: Tree, names: Mapping[str, Any]) -> None:
        self.name = str(tree["name"])
        self.is_served = bool(tree.get("served"))
        self.singular = str(names.get("singular") or "")
        self.list_kind = str(names.get("listKind") or "")
        self.schema = CustomSchema((tree.get("schema") or {}).get("openAPIV3Schema") or {})
        subresources = tree.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self.scale: Mapping[str, str] | None = subresources.get("scale")
        self.columns = [
            PrinterColumn(column) for column in tree.get("additionalPrinterColumns") or [_AGE]
        ]
        self.fields = {
            str(one["jsonPath"]).removeprefix("."): parse_json_path(one["jsonPath"])
            for one in tree.get("selectableFields") or ()
        }
        self.is_terminating = False
        self.is_deprecated = bool(tree.get("deprecated"))
        self.deprecation = str(tree.get("deprecationWarning") or "") if self.is_deprecated else ""
        """The warning for clients that write objects in this version; empty without one."""
        self.stored_as: CustomSchema | None = None
        """The schema of the version in which objects are stored, if that version differs."""
