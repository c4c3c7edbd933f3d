"""Expression fields: the fields that a rule in CEL reads, checked against the schema of its value.

Mirrors, for selections of fields, what cel-go's checker does with the types of
k8s.io/apiserver/pkg/cel/common/schemas.go. Fields of a function's result are not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....api.cel.object_rules import shown_fault
from ....api.cel.syntax_tree import (
    CelCall,
    CelIdent,
    CelLiteral,
    CelLoop,
    CelNode,
    CelSelect,
    CelTree,
)

Tree = dict[str, Any]
Names = Mapping[str, Tree | None]
"""The schemas of names; None if unknown."""

_TEXT: Tree = {"type": "string"}
_METADATA: Tree = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}


class FieldChecker:
    """Checks the fields of one expression. `escape` gives the name of a field in CEL."""

    def __init__(self, text: str, tree: CelTree, escape: Callable[[str], str]) -> None:
        self._text = text
        self._tree = tree
        self._escape = escape
        self._faults: dict[int, str] = {}

    def faults(self, names: Names) -> str:
        """Problems of the expression, in kube-apiserver's words; empty if nothing is."""
        self._visit(self._tree.root, names)
        places = self._tree.positions
        found = sorted(self._faults.items(), key=lambda item: (places.get(item[0], 0), item[0]))
        shown = [shown_fault(self._text, places.get(number, 0), fault) for number, fault in found]
        return "\n".join(shown)

    def kind(self, names: Names) -> str:
        """The type of the expression, if it is a field with a plain type; empty if unknown."""
        schema = self._visit(self._tree.root, names)
        is_plain = schema is not None and not schema.get("format") and not _is_open(schema)
        return _SCALARS.get(str(schema.get("type")), "") if schema is not None and is_plain else ""

    def _visit(self, node: CelNode, names: Names) -> Tree | None:
        """The schema of a node's value; faults are recorded."""
        match node:
            case CelIdent():
                return names.get(node.name)
            case CelSelect():
                return self._field(node.number, self._visit(node.operand, names), node.field)
            case CelCall():
                return self._call(node, [self._visit(arg, names) for arg in node.args])
            case CelLoop():
                return self._loop(node, names)
            case CelLiteral():
                for part in node.parts:
                    self._visit(part, names)
        return None

    def _call(self, node: CelCall, schemas: list[Tree | None]) -> Tree | None:
        match node.function, schemas, node.args:
            case "_[_]", [dict() as over, _], _:
                return elements_of(over)
            case "_?._", [dict() as over, _], (_, CelLiteral(text=str() as field)):
                self._field(node.number, over, field)
            case "_?_:_", [_, one, other], _:
                return one if one is other else None
        return None

    def _loop(self, node: CelLoop, names: Names) -> Tree | None:
        over = self._visit(node.over, names)
        bound: dict[str, Tree | None] = dict.fromkeys(node.names)
        if (over is not None and over.get("type") == "array") or (
            over is not None and len(node.names) > 1
        ):
            bound[node.names[-1]] = elements_of(over)
        bound[node.result_name] = None
        for part in (node.start, *node.steps, node.result):
            self._visit(part, {**names, **bound})
        return None

    def _field(self, number: int, schema: Tree | None, field: str) -> Tree | None:
        if schema is None or _is_open(schema):
            return None
        kind = str(schema.get("type") or "")
        if kind in _SCALARS and not schema.get("format"):
            self._faults[number] = f"type '{_SCALARS[kind]}' does not support field selection"
        if kind != "object":
            return None
        if isinstance(schema.get("additionalProperties"), dict):
            return elements_of(schema)
        for name, below in (schema.get("properties") or {}).items():
            # A word of the language may be written as it is: `self.metadata.namespace`.
            if self._escape(name) in (field, f"__{field}__") and is_exposed(below):
                return as_root(below) if below.get("x-kubernetes-embedded-resource") else below
        self._faults[number] = f"undefined field '{field}'"
        return None


def _is_open(schema: Tree) -> bool:
    """Whether a value may be of several types."""
    return bool(schema.get("x-kubernetes-int-or-string"))


def as_root(schema: Tree) -> Tree:
    """The schema of a whole object: its metadata is as declared if the fields that each object has are, else only its
    name can be read."""
    if _declares_head(schema):
        return schema
    fields = {**(schema.get("properties") or {}), "apiVersion": _TEXT, "kind": _TEXT}
    return {**schema, "properties": {**fields, "metadata": _METADATA}}


def _declares_head(schema: Tree) -> bool:
    """Whether kind, version and name are among the declared fields."""
    fields = schema.get("properties") or {}
    metadata = fields.get("metadata") or {}
    named = metadata.get("properties") or {}
    texts = (*(fields.get(n) for n in ("kind", "apiVersion")), named.get("name"))
    return metadata.get("type") == "object" and all(
        (text or {}).get("type") == "string" for text in (*texts, named.get("generateName"))
    )


def elements_of(schema: Tree) -> Tree | None:
    """The schema of the items of a list or of the values of a map; None if unknown."""
    name = "items" if schema.get("type") == "array" else "additionalProperties"
    below = schema.get(name)
    if not isinstance(below, dict):
        return None
    return as_root(below) if below.get("x-kubernetes-embedded-resource") else below


def is_exposed(schema: Tree) -> bool:
    """Whether rules may read a value with this schema."""
    if _is_open(schema):
        return True
    match schema.get("type"):
        case "array":
            return isinstance(schema.get("items"), dict) and is_exposed(schema["items"])
        case "object":
            below = schema.get("additionalProperties")
            return not isinstance(below, dict) or is_exposed(below)
        case kind:
            return kind in _SCALARS
