"""Schema rules: the faults of the schema of a definition, in kube-apiserver's words.

Mirrors k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go (a schema must be structural) and
ValidateCustomResourceDefinitionOpenAPISchema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....api.cel.device_expressions import CelError
from ....api.cel.object_rules import UnavailableError, compile_rule
from ....api.rules.field_causes import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from ....api.text.patterns import PatternError, compile_pattern
from .expression_fields import FieldChecker, Names, as_root
from .schema_expressions import RULES, escape, kind_of
from .value_rules import INT_OR_STRING, LIST_KEYS, LIST_TYPE, value_causes
from .values import EMBEDDED, NO_SCHEMA, PRESERVE

Tree = dict[str, Any]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
MAP_TYPE = "x-kubernetes-map-type"
_JUNCTIONS = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_NOT_SUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
NO_BOOL = "cel expression must evaluate to a bool"
NO_STRING = "must evaluate to a string"
_EMPTY = "must be empty to be structural"
_UNDEFINED = "must be undefined to be structural"
_FALSE = "must be false to be structural"
_NOT_NESTED = {
    "type": _EMPTY,
    "additionalProperties": _UNDEFINED,
    "default": _UNDEFINED,
    "title": _EMPTY,
    "description": _EMPTY,
    "nullable": _FALSE,
    PRESERVE: _FALSE,
    EMBEDDED: _FALSE,
    INT_OR_STRING: _FALSE,
    LIST_KEYS: _EMPTY,
    LIST_TYPE: _UNDEFINED,
    MAP_TYPE: _UNDEFINED,
    RULES: _EMPTY,
}
"""Keywords that are not allowed within allOf, anyOf, oneOf and not."""
_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def schema_causes(schema: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the schema of a version."""
    if schema.get("nullable"):
        yield forbidden_field(f"{path}.nullable", "nullable cannot be true at the root")
    structural: list[Cause] = []
    if not _is_unsupported(schema):
        structural += sorted(_structural_causes(schema, ROOT, path), key=lambda c: c.field)
    if not structural:
        structural = list(_default_causes(schema, path))
    yield from structural
    found = list(_standard_causes(schema, path))
    yield from found
    if not structural and not found:
        yield from _expression_causes(schema, path, is_root=True)


def _below(schema: Tree, path: str) -> Iterator[tuple[Tree, str, str]]:
    """Yield the schemas of fields, entries and items, with their level and path."""
    for key, below in (schema.get("properties") or NO_SCHEMA).items():
        if isinstance(below, dict):
            yield below, FIELD, f"{path}.properties[{key}]"
    more, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(more, dict):
        yield more, FIELD, f"{path}.additionalProperties"
    if isinstance(items, dict):
        yield items, ITEM, f"{path}.items"


def _is_unsupported(schema: Tree) -> bool:
    """Whether something stands in it after which its structure is not judged."""
    return any(schema.get(name) for name in _NOT_SUPPORTED) or any(
        _is_unsupported(below) for below, _, _ in _below(schema, "")
    )


# Structure


def _structural_causes(schema: Tree, level: str, path: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    for below, below_level, where in _below(schema, path):
        yield from _structural_causes(below, below_level, where)
    if level == ROOT and schema.get("additionalProperties") is not None:
        yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get(INT_OR_STRING):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                problem = f"must be false if {INT_OR_STRING} is true"
                yield invalid_value(f"{path}.{name}", True, problem)
    yield from _junction_causes(schema, path)
    is_object = f"must be object if {EMBEDDED} is true"
    if schema.get(EMBEDDED) and kind != "object":
        where = f"{path}.type"
        yield invalid_value(where, kind, is_object) if kind else required(where, is_object)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(f"{path}.type", f"must not be empty {level}")
    if level == ROOT and kind and kind != "object":
        yield invalid_value(f"{path}.type", kind, "must be object at the root")
    yield from _metadata_causes(schema, level, path)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        problem = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(f"{path}.properties", problem)


def _metadata_causes(schema: Tree, level: str, path: str) -> Iterator[Cause]:
    fields = schema.get("properties") or NO_SCHEMA
    if level != ROOT and not schema.get(EMBEDDED):
        return
    for name in ("kind", "apiVersion"):
        if name in fields and fields[name].get("type") != "string":
            where = f"{path}.properties[{name}].type"
            yield invalid_value(where, fields[name].get("type") or "", "must be string")
    metadata = fields.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid_value(f"{where}.type", metadata.get("type") or "", "must be object")
    others = {
        key for key in metadata if key not in ("type", "properties", "description", "default")
    }
    given = set(metadata.get("properties") or ()) - {"name", "generateName"}
    if level == ROOT and (given or others):
        problem = (
            "must not specify anything other than name and generateName, but metadata is implicitly"
            " specified"
        )
        yield forbidden_field(where, problem)


def _junction_causes(schema: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults within allOf, anyOf, oneOf and not, and of the pattern."""
    is_number_or_text = bool(schema.get(INT_OR_STRING))
    for name in _JUNCTIONS:
        nested = schema.get(name) or ()
        if name == "anyOf" and nested == _INT_OR_STRING and is_number_or_text:
            continue
        for i, one in enumerate(nested):
            if isinstance(one, dict):
                skips = is_number_or_text and name == "allOf" and one.get("anyOf") == _INT_OR_STRING
                yield from _nested_causes({} if skips else one, f"{path}.{name}[{i}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested_causes(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(str(pattern))
        except PatternError as error:
            problem = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{path}.pattern", pattern, problem)


def _nested_causes(schema: Tree, path: str) -> Iterator[Cause]:
    yield from _junction_causes(schema, path)
    for name, problem in _NOT_NESTED.items():
        if schema.get(name):
            yield forbidden_field(f"{path}.{name}", problem)
    if "metadata" in (schema.get("properties") or NO_SCHEMA):
        where = f"{path}.properties[metadata]"
        yield forbidden_field(where, "must not be specified in a nested context")
    for key, below in (schema.get("properties") or NO_SCHEMA).items():
        yield from _nested_causes(below, f"{path}.properties[{key}]")
    if isinstance(schema.get("items"), dict):
        yield from _nested_causes(schema["items"], f"{path}.items")


# Standard rules


def _standard_causes(schema: Tree, path: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    if kind and kind not in TYPES:
        yield unsupported_value(f"{path}.type", kind, TYPES)
    for name in _NOT_SUPPORTED:
        if schema.get(name):
            yield forbidden_field(f"{path}.{name}", f"{name} is not supported")
    if schema.get("uniqueItems"):
        problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", problem)
    more = schema.get("additionalProperties")
    if more is not None and schema.get("properties") and more is not True:
        problem = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{path}.additionalProperties", problem)
    if schema.get(PRESERVE) is False:
        yield invalid_value(f"{path}.{PRESERVE}", False, "must be true or undefined")
    yield from _list_causes(schema, path)
    yield from _map_causes(schema, path)
    yield from _rule_causes(schema, path)
    for below, _, where in _below(schema, path):
        yield from _standard_causes(below, where)
    for name in _JUNCTIONS:
        for i, one in enumerate(schema.get(name) or ()):
            if isinstance(one, dict):
                yield from _standard_causes(one, f"{path}.{name}[{i}]")
    if isinstance(schema.get("not"), dict):
        yield from _standard_causes(schema["not"], f"{path}.not")


def _map_causes(schema: Tree, path: str) -> Iterator[Cause]:
    form, kind = schema.get(MAP_TYPE), schema.get("type") or ""
    if form is None:
        return
    if kind != "object":
        problem = f"must be object if {MAP_TYPE} is specified"
        where = f"{path}.type"
        yield invalid_value(where, kind, problem) if kind else required(where, problem)
    if form not in ("atomic", "granular"):
        yield unsupported_value(f"{path}.{MAP_TYPE}", str(form), ("atomic", "granular"))


def _list_causes(schema: Tree, path: str) -> Iterator[Cause]:
    form, kind, keys = schema.get(LIST_TYPE), schema.get("type") or "", schema.get(LIST_KEYS)
    if form is not None and kind != "array":
        problem, where = f"must be array if {LIST_TYPE} is specified", f"{path}.type"
        yield invalid_value(where, kind, problem) if kind else required(where, problem)
    if form is not None and form not in ("atomic", "set", "map"):
        yield unsupported_value(f"{path}.{LIST_TYPE}", str(form), ("atomic", "set", "map"))
    if keys and form != "map":
        problem, where = f"must be map if {LIST_KEYS} is non-empty", f"{path}.{LIST_TYPE}"
        yield required(where, problem) if form is None else invalid_value(where, form, problem)
    items = schema.get("items")
    if form in ("set", "map") and isinstance(items, dict):
        yield from _item_causes(str(form), items, path)
    if form == "map":
        yield from _key_causes(keys or [], items, path)


def _item_causes(form: str, items: Tree, path: str) -> Iterator[Cause]:
    if items.get("nullable"):
        problem = f"cannot be nullable when {LIST_TYPE} is {form}"
        yield forbidden_field(f"{path}.items.nullable", problem)
    if form != "set":
        return
    problem = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        yield invalid_value(f"{path}.items.{LIST_TYPE}", items[LIST_TYPE], problem)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield invalid_value(f"{path}.items.{MAP_TYPE}", items.get(MAP_TYPE), problem)


def _key_causes(keys: list[str], items: Any, path: str) -> Iterator[Cause]:
    if not keys:
        yield required(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if not isinstance(items, dict):
        yield required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        problem = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid_value(f"{path}.items.type", items.get("type") or "", problem)
        return
    fields = items.get("properties") or NO_SCHEMA
    for key in keys:
        field, where = fields.get(key), f"{path}.items.properties[{key}]"
        if field is None:
            problem = "entries must all be names of item properties"
            yield invalid_value(f"{path}.{LIST_KEYS}", keys, problem)
            continue
        if field.get("type") in ("array", "object"):
            problem = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield invalid_value(f"{where}.type", items["type"], problem)
        if key not in (items.get("required") or ()) and field.get("default") is None:
            problem = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            yield required(f"{where}.default", problem)
        if field.get("nullable"):
            problem = f"this property is in {LIST_KEYS}, so it cannot be nullable"
            yield forbidden_field(f"{where}.nullable", problem)


def _rule_causes(schema: Tree, path: str) -> Iterator[Cause]:
    for i, rule in enumerate(schema.get(RULES) or ()):
        where, message = f"{path}.{RULES}[{i}]", str(rule.get("message") or "")
        if not str(rule.get("rule") or "").strip():
            yield required(f"{where}.rule", "rule is not specified")
        elif "message" in rule and message and not message.strip():
            yield invalid_value(f"{where}.message", message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield invalid_value(f"{where}.message", message, "must not contain line breaks")
        elif "\n" in str(rule["rule"]).strip() and not message:
            problem = "message must be specified if rule contains line breaks"
            yield required(f"{where}.message", problem)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield unsupported_value(f"{where}.reason", str(reason), _REASONS)


def _default_causes(schema: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of default values."""
    default = schema.get("default")
    if default is not None:
        for cause in value_causes(default, schema, ""):
            place = cause.field if cause.field not in ("", "<nil>") else ""
            yield cause._replace(field=f"{path}.default" + (f".{place}" if place else ""))
    for below, _, where in _below(schema, path):
        yield from _default_causes(below, where)


def _expression_causes(schema: Tree, path: str, is_root: bool = False) -> Iterator[Cause]:
    """Yield the rules that cannot be compiled."""
    whole = as_root(schema) if is_root or schema.get(EMBEDDED) else schema
    for i, rule in enumerate(schema.get(RULES) or ()):
        names = {"self": whole, "oldSelf": None if rule.get("optionalOldSelf") else whole}
        for name, prefix in (("rule", ""), ("messageExpression", "messageExpression ")):
            problem = _expression_problem(str(rule.get(name) or ""), names, name, kind_of(schema))
            if problem:
                yield invalid_value(f"{path}.{RULES}[{i}].{name}", rule, prefix + problem)
    for below, _, where in _below(schema, path):
        yield from _expression_causes(below, where)


def _expression_problem(text: str, names: Names, name: str, value_kind: str) -> str:
    """The problem of a rule, or of the expression of its message; empty if nothing is."""
    if not text:
        return ""
    try:
        rule = compile_rule(text, value_kind)
    except UnavailableError:
        return ""  # with a warning
    except CelError as error:
        return f"compilation failed: {error}"
    checker = FieldChecker(text, rule.tree, escape)
    faults = checker.faults(names)
    if faults:
        return f"compilation failed: {faults}"
    kinds = (checker.kind(names), rule.kind.lower())
    if name == "rule":
        return "" if kinds[0] in ("", "bool") and kinds[1] in ("dyn", "bool") else NO_BOOL
    return "" if kinds[0] in ("", "string") and kinds[1] in ("dyn", "string") else NO_STRING
