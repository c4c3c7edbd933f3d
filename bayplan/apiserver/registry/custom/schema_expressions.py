"""Schema expressions: the rules of schemas in CEL, `x-kubernetes-validations`.

Mirrors k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go. Rules that cannot be evaluated here are
found when the definition is written, and answered with a warning.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ....api.cel.device_expressions import CelError
from ....api.cel.object_rules import UnavailableError, WorkBudget, compile_rule
from ....api.rules.field_causes import Cause, duplicate, forbidden_field, invalid_value, required
from ....api.text.durations import parse_duration
from .value_rules import NOWHERE, same_item
from .values import META_FIELDS, NO_SCHEMA, below_of, schemas_below

Tree = dict[str, Any]

RULES = "x-kubernetes-validations"
_OLD = re.compile(r"\boldSelf\b")
_WORDS = re.compile(r"\w+")
_TYPED = {
    "date": "TIMESTAMP",
    "date-time": "TIMESTAMP",
    "datetime": "TIMESTAMP",
    "duration": "DURATION",
}
"""Formats of texts that have other types in CEL, which fields of a value cannot have here."""
RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def rule_causes(
    value: Any,
    old: Any,
    schema: Tree,
    path: str = "",
    is_kept: bool = False,
    budget: WorkBudget | None = None,
) -> Iterator[Cause]:
    """Yield the rules that an object breaks; with `is_kept` it is part of an unchanged value."""
    if value is None:
        return
    budget = budget or WorkBudget()
    if old is not None:
        is_kept = bool(value == old)
    if schema.get(RULES):
        yield from _node_causes(value, old, schema, path, is_kept, budget)
    if isinstance(value, dict):
        is_whole = schema.get("x-kubernetes-map-type") == "atomic"
        before = old if isinstance(old, dict) and not is_whole else {}
        for key, item in value.items():
            below = below_of(schema, key)
            if below:
                named = key in (schema.get("properties") or NO_SCHEMA)
                step = f"{path}.{key}" if named and path else key if named else f"{path}[{key}]"
                yield from rule_causes(item, before.get(key), below, step, is_kept, budget)
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for i, item in enumerate(value):
                before = same_item(item, old, schema)
                yield from rule_causes(item, before, items, f"{path}[{i}]", is_kept, budget)


def has_rules(schema: Tree) -> bool:
    """Whether the schema has rules anywhere."""
    return any(True for _ in _nodes(schema, ""))


def unavailable_rules(schema: Tree) -> Iterator[str]:
    """Yield the rules that cannot be evaluated here: the place of each, and the reason."""
    for node, path in _nodes(schema, ""):
        typed = set(_typed_names(node))
        for i, rule in enumerate(node[RULES]):
            where = f"{path or 'the object'}: {RULES}[{i}]"
            words = typed & set(_WORDS.findall(str(rule.get("rule"))))
            if words:
                yield f"{where}: {', '.join(sorted(words))} has a type that is a text here"
                continue
            text = str(rule.get("rule"))
            try:
                if rule.get("optionalOldSelf"):
                    text = _OLD.sub("optional.of(oldSelf)", text)
                compile_rule(text, kind_of(node))
            except UnavailableError as error:
                yield f"{where}: {error}"
            except CelError:
                continue  # the definition is refused


def _nodes(schema: Tree, path: str) -> Iterator[tuple[Tree, str]]:
    """Yield the schemas with rules, and their places."""
    if schema.get(RULES):
        yield schema, path
    for step, below in schemas_below(schema):
        yield from _nodes(below, f"{path}{step}".removeprefix("."))


def _typed_names(schema: Tree) -> Iterator[str]:
    for step, below in schemas_below(schema):
        if step[0] == "." and below.get("format") in _TYPED:
            yield step[1:]
        yield from _typed_names(below)


def _node_causes(
    value: Any, old: Any, schema: Tree, path: str, is_kept: bool, budget: WorkBudget
) -> Iterator[Cause]:
    """Yield the broken rules of one value; of an unchanged one only those that compare it with the old one."""
    typed = set(_typed_names(schema))
    seen = _typed_value(value, schema, is_root=not path)
    before = None if old is None else _typed_value(old, schema, is_root=not path)
    for rule in schema[RULES]:
        text = str(rule.get("rule") or "")
        is_typed = bool(typed & set(_WORDS.findall(text)))
        if is_kept and not _OLD.search(text):
            continue
        if rule.get("optionalOldSelf"):
            text = _OLD.sub("optional.none()" if old is None else "optional.of(oldSelf)", text)
        if not text or is_typed or (_OLD.search(text) and old is None):
            continue
        where = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or NOWHERE
        try:
            answer = compile_rule(text, kind_of(schema)).evaluate(seen, before, budget)
        except UnavailableError:
            continue
        except CelError as error:
            named = str(rule.get("message") or text).strip()
            kind = str(schema.get("type") or "")
            yield invalid_value(path or NOWHERE, kind, f"{error} evaluating rule: {named}")
            continue
        if answer is not True:
            message = _message(rule, seen, before, kind_of(schema))
            yield _broken(rule, where, value, message)


def kind_of(schema: Tree) -> str:
    """The type in CEL of a value with this schema: DYN unless it is a duration or a time."""
    return _TYPED.get(str(schema.get("format") or ""), "DYN")


def _message(rule: Tree, value: Any, old: Any, kind: str) -> str:
    expression = str(rule.get("messageExpression") or "")
    if expression:
        try:
            found = compile_rule(expression, kind).evaluate(value, old)
        except CelError:
            found = None
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found.strip()
    text = str(rule.get("message") or "").strip()
    return text or f"failed rule: {str(rule.get('rule')).strip()}"


def _broken(rule: Tree, path: str, value: Any, message: str) -> Cause:
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden_field(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    if isinstance(value, dict | list):
        return Cause("FieldValueInvalid", f"Invalid value: {message}", path)
    return invalid_value(path, value, message)


def _typed_value(value: Any, schema: Tree, is_root: bool) -> Any:
    """The value of `self`."""
    kind = kind_of(schema)
    if kind == "DURATION":
        sign = -1 if value.startswith("-") else 1
        seconds = parse_duration(value.lstrip("+-"))
        return timedelta(seconds=sign * (seconds or 0.0))
    if kind == "TIMESTAMP":
        time = datetime.fromisoformat(value.upper())
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return _readable(value, schema, is_root)


def _readable(value: Any, schema: Tree | None, is_root: bool = False) -> Any:
    """The value as expressions read it: names that are no identifiers are escaped, numbers have their type."""
    schema = schema or NO_SCHEMA
    if isinstance(value, dict):
        fields = schema.get("properties") or NO_SCHEMA
        found = {}
        for key, item in value.items():
            if is_root and key == "metadata":
                found[key] = {name: item[name] for name in ("name", "generateName") if name in item}
                continue
            is_field = key in fields or (is_root and key in META_FIELDS)
            read = _readable(item, below_of(schema, key))
            found[escape(key) if is_field else key] = read
            if key in RESERVED:  # as a field, a word of the language is read by its own name, too
                found[key] = read
        return found
    if isinstance(value, list):
        return [_readable(item, schema.get("items")) for item in value]
    if schema.get("format") == "byte" and isinstance(value, str):
        return base64.b64decode(value)
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def escape(name: str) -> str:
    """A field's name as an identifier."""
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)
