"""Definition rules: the faults of a CustomResourceDefinition besides its schemas, in kube-apiserver's words.

Mirrors k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. As there, faults that all
versions share are named once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....api.rules.field_causes import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from ....api.text.json_path import JsonPathError, parse_json_path
from ....api.text.name_faults import label_1035_faults, subdomain_faults
from .schema_rules import schema_causes

Tree = dict[str, Any]

SCOPES = ("Cluster", "Namespaced")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULE = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = re.compile(r"(?:.*\.)?(?:k8s|kubernetes)\.io")


def definition_causes(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    """Yield the faults of a definition, or of its change."""
    spec = tree.get("spec") or {}
    names, name = spec.get("names") or {}, str(tree["metadata"].get("name") or "")
    if name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    yield from _group_causes(str(spec.get("group") or ""))
    scope = str(spec.get("scope") or "")
    if not scope:
        yield required("spec.scope")
    elif scope not in SCOPES:
        yield unsupported_value("spec.scope", scope, SCOPES)
    yield from _version_causes(spec)
    yield from _names_causes(names)
    yield from _part_causes(spec)
    yield from _conversion_causes(spec.get("conversion") or {})
    yield from _stored_causes(tree, spec)
    yield from _approval_causes(tree, spec)
    if spec.get("preserveUnknownFields"):
        problem = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", True, problem)
    if old is not None:
        yield from _change_causes(spec, old["spec"])


def _group_causes(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
    elif faults := subdomain_faults(group):
        yield invalid_value("spec.group", group, ",".join(faults))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")


def _version_causes(spec: Tree) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    for i, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema")
    for i, version in enumerate(versions):
        name = str(version.get("name") or "")
        for where in (f"spec.versions[{i}].name", *(["spec.version"] if i == 0 and name else [])):
            yield from _label_causes(name, where)
    shown = spec.get("versions")
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        yield invalid_value("spec.versions", versions, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        problem = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", shown, problem)


def _stored_causes(tree: Tree, spec: Tree) -> Iterator[Cause]:
    """Yield the faults of the list of versions that objects may be stored in."""
    path, stored = "status.storedVersions", (tree.get("status") or {}).get("storedVersions") or []
    versions = spec.get("versions") or []
    if not stored:
        yield invalid_value(path, None, "must have at least one stored version")
        return
    for version in versions:
        name = str(version.get("name") or "")
        if version.get("storage") and name not in stored:
            yield invalid_value(path, stored, f"must have the storage version {name}")
    present = {version.get("name") for version in versions}
    for i, name in enumerate(stored):
        if name not in present:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain"
                " in spec.versions until a storage migration ensures no data remains persisted in"
                f" {name} and removes {name} from status.storedVersions"
            )
            yield invalid_value(f"{path}[{i}]", name, problem)


def _names_causes(names: Tree) -> Iterator[Cause]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        if names.get(field):
            yield from _label_causes(names[field], f"spec.names.{field}")
    for field in ("kind", "listKind"):
        faults = label_1035_faults(str(names[field]).lower()) if names.get(field) else ()
        if faults:
            problem = f"may have mixed case, but should otherwise match: {','.join(faults)}"
            yield invalid_value(f"spec.names.{field}", names[field], problem)
    for field in ("shortNames", "categories"):
        for i, name in enumerate(names.get(field) or ()):
            yield from _label_causes(name, f"spec.names.{field}[{i}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        problem = "kind and listKind may not be the same"
        yield invalid_value("spec.names.listKind", names["listKind"], problem)


def _part_causes(spec: Tree) -> Iterator[Cause]:
    """Yield the faults of schemas, subresources and columns, of all versions or of each."""
    versions = spec.get("versions") or []
    for field, check, common in (
        ("schema", _schema_causes, "validation"),
        ("subresources", _subresource_causes, "subresources"),
        ("additionalPrinterColumns", _column_causes, "additionalPrinterColumns"),
    ):
        given = [version.get(field) for version in versions]
        if given and given[0] and all(one == given[0] for one in given):
            yield from check(given[0], f"spec.{common}")
            continue
        for i, one in enumerate(given):
            if one:
                yield from check(one, f"spec.versions[{i}].{field}")


def _schema_causes(schema: Tree, path: str) -> Iterator[Cause]:
    if schema.get("openAPIV3Schema"):
        yield from schema_causes(schema["openAPIV3Schema"], f"{path}.openAPIV3Schema")


def _subresource_causes(subresources: Tree, path: str) -> Iterator[Cause]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for field, roots, said in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        where, value = f"{path}.scale.{field}", str(scale.get(field) or "")
        if not value:
            if field != "labelSelectorPath":
                yield required(where)
        elif not value.startswith("."):
            yield invalid_value(where, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            yield invalid_value(where, value, f"should be a json path under {said}")


def _column_causes(columns: list[Tree], path: str) -> Iterator[Cause]:
    for i, column in enumerate(columns):
        where, kind = f"{path}[{i}]", str(column.get("type") or "")
        types = f"must be one of {','.join(COLUMN_TYPES)}"
        if not column.get("name"):
            yield required(f"{where}.name")
        if not kind:
            yield required(f"{where}.type", types)
        elif kind not in COLUMN_TYPES:
            yield invalid_value(f"{where}.type", kind, types)
        form = column.get("format")
        if form and form not in COLUMN_FORMATS:
            problem = f"must be one of {','.join(COLUMN_FORMATS)}"
            yield invalid_value(f"{where}.format", form, problem)
        yield from _path_causes(str(column.get("jsonPath") or ""), f"{where}.JSONPath")


def _path_causes(text: str, where: str) -> Iterator[Cause]:
    if not text:
        yield required(where)
    elif not text.startswith("."):
        yield invalid_value(where, text, "must be a simple json path starting with .")
    else:
        try:
            parse_json_path(text)
        except JsonPathError as error:
            yield invalid_value(where, text, str(error))


def _conversion_causes(conversion: Tree) -> Iterator[Cause]:
    strategy, path = conversion.get("strategy") or "", "spec.conversion"
    if strategy not in ("None", "Webhook"):
        where = f"{path}.strategy"
        known = ("None", "Webhook")
        yield unsupported_value(where, strategy, known) if strategy else required(where)
    webhook = conversion.get("webhook") or {}
    if strategy == "Webhook":
        client = webhook.get("clientConfig")
        where = f"{path}.webhookClientConfig"
        if client is None:
            yield required(where, "required when strategy is set to Webhook")
        elif bool(client.get("url")) == bool(client.get("service")):
            yield required(where, "exactly one of url or service is required")
        yield from _review_causes(webhook, f"{path}.conversionReviewVersions")
    elif webhook.get("clientConfig"):
        problem = "should not be set when strategy is not set to Webhook"
        yield forbidden_field(f"{path}.webhookClientConfig", problem)


def _review_causes(webhook: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the versions of reviews that a webhook understands."""
    versions = webhook.get("conversionReviewVersions") or []
    if not versions:
        yield required(path)
        return
    for i, version in enumerate(versions):
        if version in versions[:i]:
            yield invalid_value(f"{path}[{i}]", version, "duplicate version")
        yield from _label_causes(version, f"{path}[{i}]")
    if not {"v1", "v1beta1"} & set(versions):
        yield invalid_value(path, versions, "must include at least one of v1, v1beta1")


def _approval_causes(tree: Tree, spec: Tree) -> Iterator[Cause]:
    group, given = str(spec.get("group") or ""), tree["metadata"].get("annotations") or {}
    value, path = str(given.get(APPROVAL) or ""), f"metadata.annotations[{APPROVAL}]"
    if not _PROTECTED.fullmatch(group) or value.startswith(("http://", "https://", "unapproved")):
        return
    said = f'protected groups must have approval annotation "{APPROVAL}"'
    if value:
        form = 'with either a URL or a reason starting with "unapproved"'
        yield invalid_value(path, value, f"{said} {form}, see {_APPROVAL_RULE}")
    else:
        yield required(path, f"{said}, see {_APPROVAL_RULE}")


def _change_causes(spec: Tree, before: Tree) -> Iterator[Cause]:
    names, old_names = spec.get("names") or {}, before.get("names") or {}
    for path, new, old in (
        ("spec.scope", spec.get("scope"), before.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.group", spec.get("group"), before.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if new != old:
            yield invalid_value(path, new, "field is immutable")


def _label_causes(name: Any, path: str) -> Iterator[Cause]:
    faults = label_1035_faults(str(name))
    if faults:
        yield invalid_value(path, name, ",".join(faults))
