"""Faults of the schemas of custom resources, in the API server's words."""

from typing import Any

import pytest

from bayplan.apiserver.registry.custom.definition_rules import definition_causes

SPEC = "properties[spec]"
LIST, KEYS, MAP = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
EMBEDDED, PRESERVE, EITHER, RULES = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
)
TEXT = {"type": "string"}
ENTRY = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
REASONS = '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'


def faults(**schema: Any) -> list[str]:
    """The faults of a definition whose only version has this schema, below its path."""
    version = {"name": "v1", "served": True, "storage": True}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    whole = {"openAPIV3Schema": {"type": "object", **schema}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [{**version, "schema": whole}],
        "conversion": {"strategy": "None"},
    }
    tree = {
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
        "status": {"storedVersions": ["v1"]},
    }
    path = ("spec.validation.openAPIV3Schema", "spec.versions[0].schema.openAPIV3Schema")
    found = [(cause.field, cause.message) for cause in definition_causes(tree, None)]
    short = [(f.removeprefix(path[0]).removeprefix(path[1]).removeprefix("."), m) for f, m in found]
    return [f"{field}: {message}" for field, message in short]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        pytest.param(
            {"nullable": True},
            ["nullable: Forbidden: nullable cannot be true at the root"],
            id="null",
        ),
        pytest.param(
            {"type": "string"},
            ['type: Invalid value: "string": must be object at the root'],
            id="a text",
        ),
        pytest.param(
            {"additionalProperties": TEXT},
            ["additionalProperties: Forbidden: must not be used at the root"],
            id="any fields",
        ),
        pytest.param(
            {"properties": {"kind": {"type": "integer"}}},
            ['properties[kind].type: Invalid value: "integer": must be string'],
            id="a kind that is a number",
        ),
        pytest.param(
            {"properties": {"metadata": {"type": "string"}}},
            ['properties[metadata].type: Invalid value: "string": must be object'],
            id="metadata that is a text",
        ),
        pytest.param(
            {
                "properties": {
                    "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}
                }
            },
            [
                "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
                "metadata is implicitly specified"
            ],
            id="rules for labels",
        ),
    ],
)
def test_the_root(schema: dict[str, Any], found: list[str]) -> None:
    assert faults(**schema) == found


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        pytest.param(TEXT, [], id="valid"),
        pytest.param(
            {}, [": Required value: must not be empty for specified object fields"], id="no type"
        ),
        pytest.param(
            {"type": "array"}, [".items: Required value: must be specified"], id="a list of nothing"
        ),
        pytest.param(
            {EITHER: True, PRESERVE: True},
            [f".{PRESERVE}: Invalid value: true: must be false if {EITHER} is true"],
            id="a number or text with unknown fields",
        ),
        pytest.param(
            {EITHER: True, "anyOf": [{"type": "integer"}, TEXT]}, [], id="a number or text"
        ),
        pytest.param(
            {EITHER: True, "allOf": [{"anyOf": [{"type": "integer"}, TEXT]}]},
            [],
            id="the same within allOf",
        ),
        pytest.param(
            {EMBEDDED: True, PRESERVE: True},
            [f".type: Required value: must be object if {EMBEDDED} is true"],
            id="an embedded object without a type",
        ),
        pytest.param(
            {EMBEDDED: True, "type": "object"},
            [
                f".properties: Required value: must not be empty if {EMBEDDED} is true without {PRESERVE}"
            ],
            id="an embedded object without fields",
        ),
        pytest.param(
            {**TEXT, "not": {"type": "string", "nullable": True}},
            [
                ".not.nullable: Forbidden: must be false to be structural",
                ".not.type: Forbidden: must be empty to be structural",
            ],
            id="a type within not",
        ),
        pytest.param(
            {
                "type": "object",
                "oneOf": [{"properties": {"metadata": {}}, "items": {"title": "t"}}],
            },
            [
                ".oneOf[0].items.title: Forbidden: must be empty to be structural",
                ".oneOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
            ],
            id="metadata and a title within oneOf",
        ),
        pytest.param(
            {"type": "text"},
            [
                '.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", '
                '"object", "string"'
            ],
            id="an unknown type",
        ),
        pytest.param(
            {"type": "object", "patternProperties": {"a": TEXT}},
            [".patternProperties: Forbidden: patternProperties is not supported"],
            id="fields by pattern",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "uniqueItems": True},
            [
                ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
                "quadratic"
            ],
            id="unique items",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
            [
                ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"
            ],
            id="some fields and any fields",
        ),
        pytest.param(
            {"type": "object", PRESERVE: False},
            [f".{PRESERVE}: Invalid value: false: must be true or undefined"],
            id="unknown fields are not kept",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, MAP: "some"},
            [
                f'.type: Invalid value: "array": must be object if {MAP} is specified',
                f'.{MAP}: Unsupported value: "some": supported values: "atomic", "granular"',
            ],
            id="a list as a map",
        ),
        pytest.param(
            {**TEXT, LIST: "bag"},
            [
                f'.type: Invalid value: "string": must be array if {LIST} is specified',
                f'.{LIST}: Unsupported value: "bag": supported values: "atomic", "set", "map"',
            ],
            id="a text as a list",
        ),
        pytest.param(
            {"type": "array", "items": ENTRY, KEYS: ["name"]},
            [f".{LIST}: Required value: must be map if {KEYS} is non-empty"],
            id="keys of a list",
        ),
        pytest.param(
            {"type": "array", "items": {**TEXT, "nullable": True}, LIST: "set"},
            [f".items.nullable: Forbidden: cannot be nullable when {LIST} is set"],
            id="a set with null",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "array", "items": TEXT, LIST: "set"}, LIST: "set"},
            [
                f'.items.{LIST}: Invalid value: "set": must be atomic as item of a list with {LIST}=set'
            ],
            id="a set of sets",
        ),
        pytest.param(
            {"type": "array", "items": ENTRY, LIST: "set"},
            [
                f".items.{MAP}: Invalid value: null: must be atomic as item of a list with {LIST}=set"
            ],
            id="a set of objects",
        ),
        pytest.param(
            {"type": "array", "items": ENTRY, LIST: "map"},
            [f".{KEYS}: Required value: must not be empty if {LIST} is map"],
            id="a map without keys",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, LIST: "map", KEYS: ["name"]},
            [
                f'.items.type: Invalid value: "string": must be object if parent array\'s {LIST} is map'
            ],
            id="a map of texts",
        ),
        pytest.param(
            {"type": "array", "items": ENTRY, LIST: "map", KEYS: ["id"]},
            [f'.{KEYS}: Invalid value: ["id"]: entries must all be names of item properties'],
            id="a key that is no field",
        ),
        pytest.param(
            {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {**TEXT, "nullable": True}}},
                LIST: "map",
                KEYS: ["name"],
            },
            [
                f".items.properties[name].default: Required value: this property is in {KEYS}, so it must have a "
                "default or be a required property",
                f".items.properties[name].nullable: Forbidden: this property is in {KEYS}, so it cannot be nullable",
            ],
            id="a key that may be missing, or null",
        ),
        pytest.param(
            {**TEXT, "default": 5},
            ['.default: Invalid value: "integer":  in body must be of type string: "integer"'],
            id="a default of another type",
        ),
        pytest.param(
            {**TEXT, RULES: [{"rule": " "}]},
            [f".{RULES}[0].rule: Required value: rule is not specified"],
            id="an empty rule",
        ),
        pytest.param(
            {**TEXT, RULES: [{"rule": "self != ''", "message": " ", "reason": "Why"}]},
            [
                f'.{RULES}[0].message: Invalid value: " ": must be non-empty if specified',
                f'.{RULES}[0].reason: Unsupported value: "Why": supported values: {REASONS}',
            ],
            id="an empty message, and an unknown reason",
        ),
        pytest.param(
            {**TEXT, RULES: [{"rule": "self != ''", "message": "a\nb"}]},
            [f'.{RULES}[0].message: Invalid value: "a\nb": must not contain line breaks'],
            id="a message of two lines",
        ),
        pytest.param(
            {**TEXT, RULES: [{"rule": "self\n!= ''"}]},
            [
                f".{RULES}[0].message: Required value: message must be specified if rule contains line breaks"
            ],
            id="a rule of two lines without a message",
        ),
    ],
)
def test_a_field(schema: dict[str, Any], found: list[str]) -> None:
    below = [f"{SPEC}{'.type' if fault.startswith(': ') else ''}{fault}" for fault in found]

    assert faults(properties={"spec": schema}) == below


def test_a_pattern_that_cannot_be_compiled() -> None:
    (found,) = faults(properties={"spec": {**TEXT, "pattern": "("}})

    problem = "must be a valid regular expression, but isn't: error parsing regexp: missing "
    assert found.startswith(f'{SPEC}.pattern: Invalid value: "(": {problem}')
