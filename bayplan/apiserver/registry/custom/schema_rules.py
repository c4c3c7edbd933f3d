"""Schema rules: the faults of the schema of a definition, in kube-apiserver's words.

Mirrors k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go (a schema must be structural) and
ValidateCustomResourceDefinitionOpenAPISchema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....api.cel.device_expressions import CelError
from ....api.cel.object_rules import UnavailableError, compile_rule
from ....api.rules.field_causes import Part
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
    *("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"),
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
    *("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
)


def check_schema(schema: Part) -> None:
    """Check the schema of a version."""
    if schema.get("nullable"):
        schema.forbidden("nullable", "nullable cannot be true at the root")
    structure, rest = (Part(schema.tree, schema.path) for _ in range(2))
    if not _is_unsupported(schema):
        _check_structure(structure, ROOT)
        structure.causes.sort(key=lambda cause: cause.field)
    if not structure.causes:
        _check_defaults(structure)
    _check_standard(rest)
    found = [*structure.causes, *rest.causes]
    schema.causes.extend(found)
    if not found:
        _check_expressions(schema, is_root=True)


def _below(schema: Part) -> Iterator[tuple[Part, str]]:
    """The schemas of fields, entries and items, with their level."""
    for key, below in (schema.get("properties") or NO_SCHEMA).items():
        if isinstance(below, dict):
            yield schema.below(f"properties[{key}]", below), FIELD
    for name, level in (("additionalProperties", FIELD), ("items", ITEM)):
        if isinstance(schema.get(name), dict):
            yield schema.below(name), level


def _alternatives(schema: Part) -> Iterator[tuple[Part, str]]:
    """The schemas within allOf, anyOf, oneOf and not, with the keyword."""
    for name in _JUNCTIONS:
        for where, one in schema.items(name):
            if isinstance(one, dict):
                yield schema.below(where, one), name
    if isinstance(schema.get("not"), dict):
        yield schema.below("not"), "not"


def _is_unsupported(schema: Part) -> bool:
    """Whether the schema has a part because of which its structure is not checked."""
    return any(schema.get(name) for name in _NOT_SUPPORTED) or any(
        _is_unsupported(below) for below, _ in _below(schema)
    )


# Structure


def _needs_type(schema: Part, name: str, wanted: str, problem: str) -> None:
    """Refuse a field that is absent or not `wanted`."""
    if schema.get(name) != wanted and schema.needs(name, problem=problem):
        schema.invalid(name, problem)


def _check_structure(schema: Part, level: str) -> None:
    kind = schema.get("type") or ""
    if kind == "array" and not isinstance(schema.get("items"), dict):
        schema.required("items", "must be specified")
    for below, below_level in _below(schema):
        _check_structure(below, below_level)
    if level == ROOT and schema.has("additionalProperties"):
        schema.forbidden("additionalProperties", "must not be used at the root")
    if schema.get(INT_OR_STRING):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                schema.invalid(name, f"must be false if {INT_OR_STRING} is true")
    _check_alternatives(schema)
    if schema.get(EMBEDDED) and kind != "object":
        _needs_type(schema, "type", "object", f"must be object if {EMBEDDED} is true")
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        schema.required("type", f"must not be empty {level}")
    if level == ROOT and kind and kind != "object":
        schema.invalid("type", "must be object at the root")
    _check_metadata(schema, level)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE):
        problem = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        schema.needs("properties", problem=problem)


def _check_metadata(schema: Part, level: str) -> None:
    fields = schema.get("properties") or NO_SCHEMA
    if level != ROOT and not schema.get(EMBEDDED):
        return
    for name in ("kind", "apiVersion"):
        if name in fields and fields[name].get("type") != "string":
            where = f"properties[{name}].type"
            schema.invalid(where, "must be string", fields[name].get("type") or "")
    metadata = fields.get("metadata")
    if metadata is None:
        return
    where = "properties[metadata]"
    if metadata.get("type") != "object":
        schema.invalid(f"{where}.type", "must be object", metadata.get("type") or "")
    others = set(metadata) - {"type", "properties", "description", "default"}
    given = set(metadata.get("properties") or ()) - {"name", "generateName"}
    if level == ROOT and (given or others):
        problem = (
            "must not specify anything other than name and generateName, but metadata is implicitly"
            " specified"
        )
        schema.forbidden(where, problem)


def _check_alternatives(schema: Part) -> None:
    """Check the schemas within allOf, anyOf, oneOf and not, and the pattern."""
    is_number_or_text = bool(schema.get(INT_OR_STRING))
    for one, name in _alternatives(schema):
        nested = schema.get(name)
        if is_number_or_text and name == "anyOf" and nested == _INT_OR_STRING:
            continue
        if is_number_or_text and name == "allOf" and one.get("anyOf") == _INT_OR_STRING:
            continue
        _check_nested(one)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(str(pattern))
        except PatternError as error:
            problem = f"must be a valid regular expression, but isn't: {error}"
            schema.invalid("pattern", problem)


def _check_nested(schema: Part) -> None:
    _check_alternatives(schema)
    for name, problem in _NOT_NESTED.items():
        if schema.get(name):
            schema.forbidden(name, problem)
    fields = schema.get("properties") or NO_SCHEMA
    if "metadata" in fields:
        schema.forbidden("properties[metadata]", "must not be specified in a nested context")
    for key, below in fields.items():
        _check_nested(schema.below(f"properties[{key}]", below))
    if isinstance(schema.get("items"), dict):
        _check_nested(schema.below("items"))


# Standard rules


def _check_standard(schema: Part) -> None:
    if schema.get("type"):
        schema.choice("type", *TYPES)
    for name in _NOT_SUPPORTED:
        if schema.get(name):
            schema.forbidden(name, f"{name} is not supported")
    if schema.get("uniqueItems"):
        problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        schema.forbidden("uniqueItems", problem)
    more = schema.get("additionalProperties")
    if more is not None and schema.get("properties") and more is not True:
        problem = "additionalProperties and properties are mutual exclusive"
        schema.forbidden("additionalProperties", problem)
    if schema.get(PRESERVE) is False:
        schema.invalid(PRESERVE, "must be true or undefined")
    _check_list(schema)
    if schema.has(MAP_TYPE):
        _needs_type(schema, "type", "object", f"must be object if {MAP_TYPE} is specified")
        schema.choice(MAP_TYPE, "atomic", "granular")
    _check_rules(schema)
    for below, _ in _below(schema):
        _check_standard(below)
    for below, _ in _alternatives(schema):
        _check_standard(below)


def _check_list(schema: Part) -> None:
    form, items = schema.get(LIST_TYPE), schema.get("items")
    if form is not None:
        _needs_type(schema, "type", "array", f"must be array if {LIST_TYPE} is specified")
        schema.choice(LIST_TYPE, "atomic", "set", "map")
    if schema.get(LIST_KEYS) and form != "map":
        problem = f"must be map if {LIST_KEYS} is non-empty"
        if form is None:
            schema.required(LIST_TYPE, problem)
        else:
            schema.invalid(LIST_TYPE, problem)
    if form in ("set", "map") and isinstance(items, dict):
        _check_items(str(form), schema.below("items"))
    if form == "map":
        _check_keys(schema)


def _check_items(form: str, items: Part) -> None:
    if items.get("nullable"):
        items.forbidden("nullable", f"cannot be nullable when {LIST_TYPE} is {form}")
    if form != "set":
        return
    problem = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        items.invalid(LIST_TYPE, problem)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        items.invalid(MAP_TYPE, problem)


def _check_keys(schema: Part) -> None:
    schema.needs(LIST_KEYS, problem=f"must not be empty if {LIST_TYPE} is map")
    if not isinstance(schema.get("items"), dict):
        schema.required("items", f"must have a schema if {LIST_TYPE} is map")
        return
    items = schema.below("items")
    if items.get("type") != "object":
        problem = f"must be object if parent array's {LIST_TYPE} is map"
        items.invalid("type", problem, items.get("type") or "")
        return
    fields = items.get("properties") or NO_SCHEMA
    for key in schema.get(LIST_KEYS) or ():
        if fields.get(key) is None:
            schema.invalid(LIST_KEYS, "entries must all be names of item properties")
            continue
        field, listed = (
            items.below(f"properties[{key}]", fields[key]),
            f"this property is in {LIST_KEYS}",
        )
        if field.get("type") in ("array", "object"):
            problem = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            field.invalid("type", problem, items.get("type"))
        if key not in (items.get("required") or ()) and not field.has("default"):
            problem = f"{listed}, so it must have a default or be a required property"
            field.required("default", problem)
        if field.get("nullable"):
            field.forbidden("nullable", f"{listed}, so it cannot be nullable")


def _check_rules(schema: Part) -> None:
    for rule in schema.each(RULES):
        message, text = str(rule.get("message") or ""), str(rule.get("rule") or "").strip()
        if not text:
            rule.required("rule", "rule is not specified")
        elif message and not message.strip():
            rule.invalid("message", "must be non-empty if specified")
        elif "\n" in message.strip():
            rule.invalid("message", "must not contain line breaks")
        elif "\n" in text and not message:
            rule.required("message", "message must be specified if rule contains line breaks")
        rule.choice("reason", *_REASONS)


def _check_defaults(schema: Part) -> None:
    """Check default values."""
    if schema.has("default"):
        for cause in value_causes(schema.get("default"), dict(schema.tree), ""):
            place = cause.field if cause.field not in ("", "<nil>") else ""
            where = schema.at("default") + (f".{place}" if place else "")
            schema.causes.append(cause._replace(field=where))
    for below, _ in _below(schema):
        _check_defaults(below)


def _check_expressions(schema: Part, is_root: bool = False) -> None:
    """Refuse rules that cannot be compiled."""
    tree = dict(schema.tree)
    whole = as_root(tree) if is_root or schema.get(EMBEDDED) else tree
    for rule in schema.each(RULES):
        names = {"self": whole, "oldSelf": None if rule.get("optionalOldSelf") else whole}
        for name, prefix in (("rule", ""), ("messageExpression", "messageExpression ")):
            problem = _expression_problem(str(rule.get(name) or ""), names, name, kind_of(tree))
            if problem:
                rule.invalid(name, prefix + problem, rule.tree)
    for below, _ in _below(schema):
        _check_expressions(below)


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
