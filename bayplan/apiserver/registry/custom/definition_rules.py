"""Definition rules: the faults of a CustomResourceDefinition besides its schemas, in kube-apiserver's words.

Mirrors k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. As there, faults that all
versions share are named once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ....api.rules.field_causes import Cause, Part
from ....api.text.json_path import JsonPathError, parse_json_path
from ....api.text.name_faults import label_1035_faults, subdomain_faults
from .schema_rules import check_schema

Tree = dict[str, Any]

COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = (*("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),)
APPROVAL = "api-approved.kubernetes.io"
_SIMPLE_PATH = "must be a simple json path starting with ."
_APPROVAL_RULE = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = re.compile(r"(?:.*\.)?(?:k8s|kubernetes)\.io")


def definition_causes(tree: Tree, old: Tree | None) -> list[Cause]:
    """The faults of a definition, or of its change."""
    definition = Part(tree)
    spec, names = definition.below("spec"), definition.below("spec").below("names")
    name = str(tree["metadata"].get("name") or "")
    if name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
        definition.invalid("metadata.name", 'must be spec.names.plural+"."+spec.group', name)
    spec.needs_text("group", _group_faults)
    if spec.needs("scope"):
        spec.choice("scope", "Cluster", "Namespaced")
    _check_versions(spec)
    _check_names(names)
    _check_parts(spec)
    _check_conversion(spec.below("conversion"))
    _check_stored(definition.below("status"), spec)
    _check_approval(definition, str(spec.get("group") or ""))
    if spec.get("preserveUnknownFields"):
        problem = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead"
        )
        spec.invalid("preserveUnknownFields", problem)
    if old is not None:
        _check_change(spec, Part(old["spec"]))
    return definition.causes


def _joined(faults: tuple[str, ...]) -> tuple[str, ...]:
    """The faults as one."""
    return (",".join(faults),) if faults else ()


def _label_faults(name: Any) -> tuple[str, ...]:
    return _joined(label_1035_faults(str(name)))


def _group_faults(group: str) -> tuple[str, ...]:
    is_short = "." not in group
    faults = _joined(subdomain_faults(group))
    return faults or (("should be a domain with at least one dot",) if is_short else ())


def _check_versions(spec: Part) -> None:
    versions = list(spec.each("versions"))
    for version in versions:
        version.below("schema").needs("openAPIV3Schema")
    for i, version in enumerate(versions):
        name = str(version.get("name") or "")
        version.check("name", _label_faults, name)
        if i == 0 and name:
            spec.check("version", _label_faults, name)
    if len({version.get("name") for version in versions}) < len(versions):
        spec.invalid("versions", "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        spec.invalid("versions", "must have exactly one version marked as storage version")


def _check_stored(status: Part, spec: Part) -> None:
    """Check the list of versions that objects may be stored in."""
    stored, versions = status.get("storedVersions") or [], spec.get("versions") or []
    if not stored:
        status.invalid("storedVersions", "must have at least one stored version", None)
        return
    for version in versions:
        name = str(version.get("name") or "")
        if version.get("storage") and name not in stored:
            status.invalid("storedVersions", f"must have the storage version {name}")
    present = {version.get("name") for version in versions}
    for where, name in status.items("storedVersions"):
        if name not in present:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain"
                " in spec.versions until a storage migration ensures no data remains persisted in"
                f" {name} and removes {name} from status.storedVersions"
            )
            status.invalid(where, problem, name)


def _check_names(names: Part) -> None:
    names.needs("plural", "singular", "kind", "listKind")
    for field in ("plural", "singular"):
        names.text(field, _label_faults)
    for field in ("kind", "listKind"):
        faults = _label_faults(str(names.get(field)).lower()) if names.get(field) else ()
        for fault in faults:
            names.invalid(field, f"may have mixed case, but should otherwise match: {fault}")
    for field in ("shortNames", "categories"):
        for where, name in names.items(field):
            names.check(where, _label_faults, name)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        names.invalid("listKind", "kind and listKind may not be the same")


def _check_parts(spec: Part) -> None:
    """Check schemas, subresources and columns, of all versions or of each."""
    versions = list(spec.each("versions"))
    parts: tuple[tuple[str, Callable[[Part, str], None], str], ...] = (
        ("schema", _check_schema, "validation"),
        ("subresources", _check_subresources, "subresources"),
        ("additionalPrinterColumns", _check_columns, "additionalPrinterColumns"),
    )
    for field, check, common in parts:
        given = [version.get(field) for version in versions]
        if given and given[0] and all(one == given[0] for one in given):
            check(Part({common: given[0]}, spec.path, spec.causes), common)
            continue
        for version in versions:
            if version.get(field):
                check(version, field)


def _check_schema(holder: Part, field: str) -> None:
    if holder.below(field).get("openAPIV3Schema"):
        check_schema(holder.below(field).below("openAPIV3Schema"))


def _check_subresources(holder: Part, field: str) -> None:
    scale = holder.below(field).below("scale")
    if not holder.below(field).has("scale"):
        return
    for name, roots, said in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        value = str(scale.get(name) or "")
        if not value:
            if name != "labelSelectorPath":
                scale.required(name)
        elif not value.startswith("."):
            scale.invalid(name, _SIMPLE_PATH)
        elif not value.startswith(roots):
            scale.invalid(name, f"should be a json path under {said}")


def _check_columns(holder: Part, field: str) -> None:
    for column in holder.each(field):
        types = f"must be one of {','.join(COLUMN_TYPES)}"
        column.needs("name")
        if column.needs("type", problem=types) and column.get("type") not in COLUMN_TYPES:
            column.invalid("type", types)
        if column.get("format") and column.get("format") not in COLUMN_FORMATS:
            column.invalid("format", f"must be one of {','.join(COLUMN_FORMATS)}")
        path = str(column.get("jsonPath") or "")
        if not path:
            column.required("JSONPath")
        else:
            column.check("JSONPath", _path_faults, path)


def _path_faults(text: str) -> tuple[str, ...]:
    if not text.startswith("."):
        return (_SIMPLE_PATH,)
    try:
        parse_json_path(text)
    except JsonPathError as error:
        return (str(error),)
    return ()


def _check_conversion(conversion: Part) -> None:
    strategy, webhook = conversion.get("strategy") or "", conversion.below("webhook")
    if conversion.needs("strategy"):
        conversion.choice("strategy", "None", "Webhook")
    client = webhook.get("clientConfig")
    if strategy == "Webhook":
        if client is None:
            problem = "required when strategy is set to Webhook"
            conversion.required("webhookClientConfig", problem)
        elif bool(client.get("url")) == bool(client.get("service")):
            problem = "exactly one of url or service is required"
            conversion.required("webhookClientConfig", problem)
        _check_reviews(Part(webhook.tree, conversion.path, conversion.causes))
    elif client:
        problem = "should not be set when strategy is not set to Webhook"
        conversion.forbidden("webhookClientConfig", problem)


def _check_reviews(webhook: Part) -> None:
    """Check the versions of reviews that a webhook understands."""
    versions = webhook.get("conversionReviewVersions") or []
    if not webhook.needs("conversionReviewVersions"):
        return
    for i, (where, version) in enumerate(webhook.items("conversionReviewVersions")):
        if version in versions[:i]:
            webhook.invalid(where, "duplicate version", version)
        webhook.check(where, _label_faults, version)
    if not {"v1", "v1beta1"} & set(versions):
        problem = "must include at least one of v1, v1beta1"
        webhook.invalid("conversionReviewVersions", problem)


def _check_approval(definition: Part, group: str) -> None:
    metadata = definition.below("metadata")
    value = str((metadata.get("annotations") or {}).get(APPROVAL) or "")
    if not _PROTECTED.fullmatch(group) or value.startswith(("http://", "https://", "unapproved")):
        return
    said = f'protected groups must have approval annotation "{APPROVAL}"'
    if value:
        said = f'{said} with either a URL or a reason starting with "unapproved"'
        metadata.invalid(f"annotations[{APPROVAL}]", f"{said}, see {_APPROVAL_RULE}", value)
    else:
        metadata.required(f"annotations[{APPROVAL}]", f"{said}, see {_APPROVAL_RULE}")


def _check_change(spec: Part, before: Part) -> None:
    names, old_names = spec.below("names"), before.below("names")
    for new, old, field in (
        (spec, before, "scope"),
        (names, old_names, "kind"),
        (spec, before, "group"),
        (names, old_names, "plural"),
    ):
        if new.get(field) != old.get(field):
            new.invalid(field, "field is immutable")
