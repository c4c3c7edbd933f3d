"""Definitions: the CustomResourceDefinitions of a cluster, and the resources that they add to the catalog.

Mirrors k8s.io/apiextensions-apiserver/pkg/controller/{status,establish} and its strategy. Names are accepted when a
definition is written, not some time after, so it can be used at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....api.rules.field_causes import Cause
from ....api.schema.input_check import WrongTypeError, unknown_fields
from ....api.text.formats import UNCHECKED, is_format
from ...store.records import RecordChange
from ...store.store import Store
from ..resource_table import ApiResource, ResourceCatalog, version_rank
from ..status_errors import StatusError
from .definition_rules import definition_causes
from .schema_expressions import unavailable_rules
from .versions import CustomVersion

Tree = dict[str, Any]

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition whose objects are still to be deleted."""
_NO_MORE = "create not allowed while custom resource definition is terminating"
_TERMINATING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}


class Definitions:
    """Follows the definitions in a store, and keeps the catalog up to date."""

    def __init__(self, store: Store, catalog: ResourceCatalog) -> None:
        self._store = store
        self._catalog = catalog
        for record in store.list(DEFINITIONS):
            self._serve(record.key[1], record.decode())
        store.follow(self._follow, (DEFINITIONS,))

    def _follow(self, change: RecordChange) -> None:
        tree = change.record.decode() if change.new is not None else None
        self._serve(change.record.key[1], tree)

    def _serve(self, name: str, tree: Tree | None) -> None:
        self._catalog.set_custom(name, list(make_resources(tree)) if tree is not None else [])
        if tree is None:
            self._store.end_watches(name)

    # Objects of custom resources, and definitions; others are not touched

    def prepare(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> None:
        """Set the fields that the server sets, and drop those that the schema lacks; raises StatusError."""
        if resource.custom is not None:
            if old is None and resource.custom.is_terminating:
                raise StatusError(405, "MethodNotAllowed", _NO_MORE)
            resource.custom.schema.complete(tree)
        elif resource.storage == DEFINITIONS:
            self._prepare(tree, old)

    def causes(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> Iterator[Cause]:
        """Yield the faults of an object, or of its change."""
        if resource.custom is not None:
            yield from resource.custom.schema.causes(tree, old)
        elif resource.storage == DEFINITIONS:
            yield from definition_causes(tree, old)

    def status_causes(self, resource: ApiResource, tree: Tree, old: Tree) -> Iterator[Cause]:
        """Yield the faults of a status that a client wrote."""
        if resource.custom is not None:
            resource.custom.schema.complete(tree)
            yield from resource.custom.schema.status_causes(tree, old)

    def complete(self, resource: ApiResource, tree: Tree, now: str) -> None:
        """Set the derived fields of an object without faults, and drop those that cannot be stored."""
        if resource.storage == DEFINITIONS:
            self.accept(tree, now)
        elif resource.custom is not None and resource.custom.stored_as is not None:
            resource.custom.stored_as.prune(tree)

    def _prepare(self, tree: Tree, old: Tree | None) -> None:
        """Set the defaults of a definition, and which versions its objects may be stored in."""
        _check_types(tree)
        spec = tree["spec"] = tree.get("spec") or {}
        names = spec.get("names")
        if isinstance(names, dict) and names.get("kind"):
            names.setdefault("singular", str(names["kind"]).lower())
            names.setdefault("listKind", f"{names['kind']}List")
        # Without a strategy it is the default port of a webhook that server-side apply no longer sets.
        if not (spec.get("conversion") or {}).get("strategy"):
            spec["conversion"] = {"strategy": "None"}
        status = dict((old or {}).get("status") or {})
        stored = list(status.get("storedVersions") or ())
        stored += [v for v in _storage_versions(spec)[:1] if v not in stored]
        tree["status"] = status | {"storedVersions": stored}

    def accept(self, tree: Tree, now: str) -> None:
        """Write the accepted names into the status."""
        names, problem = self._accepted(tree)
        status = tree["status"]
        status["acceptedNames"] = names
        conditions = status.get("conditions") or []
        if problem is None:
            accepted = ("True", "NoConflicts", "no conflicts found")
        else:
            accepted = ("False", *problem)
        conditions = _with_condition(conditions, "NamesAccepted", accepted, now)
        is_established = _is_true(conditions, "Established")
        if problem is None and not is_established:
            state = ("True", "InitialNamesAccepted", "the initial names have been accepted")
            conditions = _with_condition(conditions, "Established", state, now)
        elif problem is not None and not is_established:
            state = ("False", "NotAccepted", "not all names are accepted")
            conditions = _with_condition(conditions, "Established", state, now)
        status["conditions"] = conditions

    def _accepted(self, tree: Tree) -> tuple[Tree, tuple[str, str] | None]:
        """The names that no other definition of the group has, and the last conflict."""
        spec, own = tree["spec"], tree["metadata"]["name"]
        wanted: Tree = dict(spec["names"])
        names = dict((tree.get("status") or {}).get("acceptedNames") or {})
        resources, kinds = self._taken(str(spec["group"]), own)
        problem = None
        for field, taken, reason in (
            ("plural", resources, "PluralConflict"),
            ("singular", resources, "SingularConflict"),
            ("shortNames", resources, "ShortNamesConflict"),
            ("kind", kinds, "KindConflict"),
            ("listKind", kinds, "ListKindConflict"),
        ):
            value = wanted.get(field)
            given = [value] if isinstance(value, str) else list(value or ())
            conflicts = [one for one in given if one in taken]
            if conflicts and value != names.get(field):
                problem = (reason, f'"{conflicts[0]}" is already in use')
            elif given:
                names[field] = value
            else:
                names.pop(field, None)
        names.pop("categories", None)
        if wanted.get("categories"):
            names["categories"] = wanted["categories"]
        return names, problem

    def _taken(self, group: str, own: str) -> tuple[set[str], set[str]]:
        resources: set[str] = set()
        kinds: set[str] = set()
        for record in self._store.list(DEFINITIONS):
            tree = record.decode()
            if record.key[1] == own or tree["spec"].get("group") != group:
                continue
            names = (tree.get("status") or {}).get("acceptedNames") or {}
            resources |= {str(names.get(field) or "") for field in ("plural", "singular")}
            resources |= set(names.get("shortNames") or ())
            kinds |= {str(names.get(field) or "") for field in ("kind", "listKind")}
        return resources, kinds

    def rejected(self) -> list[str]:
        """The definitions whose names are not accepted."""
        found = []
        for record in self._store.list(DEFINITIONS):
            conditions = (record.decode().get("status") or {}).get("conditions") or []
            if not _is_true(conditions, "NamesAccepted"):
                found.append(record.key[1])
        return found


def _check_types(tree: Tree) -> None:
    """Reject values of the wrong type, also in schemas within schemas; raises StatusError (400)."""
    try:
        unknown_fields(tree, "apiextensions.v1.CustomResourceDefinition")
        for version in (tree.get("spec") or {}).get("versions") or ():
            _check_schema((version.get("schema") or {}).get("openAPIV3Schema"))
    except WrongTypeError as error:
        kind = "CustomResourceDefinition"
        message = f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
        raise StatusError(400, "BadRequest", message) from None


def _check_schema(schema: Any) -> None:
    if schema is None:
        return
    unknown_fields(schema, "apiextensions.v1.JSONSchemaProps")
    for name in ("items", "additionalProperties"):
        below = schema.get(name)
        if below is not None and not (isinstance(below, bool) and name != "items"):
            _check_schema(below)
    fields = schema.get("properties") or {}
    fields |= {name: {} for name, below in fields.items() if below is None}
    nested = [*fields.values(), schema.get("not")]
    for name in ("allOf", "anyOf", "oneOf"):
        nested += schema.get(name) or ()
    for below in nested:
        _check_schema(below)


def definition_warnings(tree: Tree) -> list[str]:
    """Parts of a definition that have no effect here."""
    warnings = []
    spec = tree.get("spec") or {}
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        warnings.append("conversion webhooks are not called: versions differ in apiVersion only")
    formats: set[tuple[str, str]] = set()
    rules: list[str] = []
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        formats |= set(_formats(schema))
        rules += [f"{version.get('name')}: {text}" for text in unavailable_rules(schema)]
    unknown = {name for name, kind in formats if not is_format(name, kind)}
    warnings += [f'unrecognized format "{name}"' for name in sorted(unknown)]
    unchecked = {name for name, _ in formats} & UNCHECKED
    warnings += [f'format "{name}" is not checked' for name in sorted(unchecked)]
    if rules:
        more = f", and {len(rules) - 1} more" if len(rules) > 1 else ""
        warnings.append(f"rules in CEL that are not evaluated: {rules[0]}{more}")
    return warnings


def _formats(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield the formats of a schema with the types that they are for."""
    if isinstance(schema, dict):
        if isinstance(schema.get("format"), str) and schema["format"]:
            yield schema["format"], str(schema.get("type") or "")
        for key, below in schema.items():
            if key in ("properties", "patternProperties") and isinstance(below, dict):
                for value in below.values():
                    yield from _formats(value)
            elif key in ("items", "additionalProperties", "not"):
                yield from _formats(below)
            elif key in ("allOf", "anyOf", "oneOf"):
                for value in below or ():
                    yield from _formats(value)


def make_resources(tree: Tree) -> Iterable[ApiResource]:
    """The resources of a definition that is established, the preferred version first."""
    spec, status = tree["spec"], tree.get("status") or {}
    if not _is_true(status.get("conditions") or [], "Established"):
        return []
    names = status.get("acceptedNames") or {}
    versions = [CustomVersion(version, names) for version in spec["versions"]]
    is_terminating = bool(tree["metadata"].get("deletionTimestamp"))
    stored = _storage_versions(spec)[:1]
    is_converted = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    served = sorted((v for v in versions if v.is_served), key=lambda v: version_rank(v.name))
    for version in versions:
        version.is_terminating = is_terminating
        if version.is_deprecated and not version.deprecation:
            version.deprecation = _deprecation(version, served, f"{spec['group']}/", names["kind"])
        if not is_converted and version.name not in stored:
            version.stored_as = next((v.schema for v in versions if v.name in stored), None)
    return [_make_resource(version, spec, names) for version in served]


def _deprecation(
    version: CustomVersion, served: Iterable[CustomVersion], group: str, kind: str
) -> str:
    """The warning that a version is deprecated, with the newest one to use instead."""
    others = [v.name for v in served if not v.is_deprecated]
    newer = [name for name in others if version_rank(name) < version_rank(version.name)]
    advice = f"; use {group}{newer[0]} {kind}" if newer else ""
    return f"{group}{version.name} {kind} is deprecated{advice}"


def _make_resource(version: CustomVersion, spec: Tree, names: Mapping[str, Any]) -> ApiResource:
    subresources = ("status",) * version.has_status + ("scale",) * (version.scale is not None)
    return ApiResource(
        str(spec["group"]),
        version.name,
        str(names["kind"]),
        str(names["plural"]),
        "",
        is_namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        has_status=version.has_status,
        has_generation=True,
        scale=(version.scale or {}).get("specReplicasPath", ""),
        fields=tuple(version.fields),
        custom=version,
    )


def mark_terminating(tree: Tree, now: str) -> None:
    """Keep a deleted definition until its objects are gone, with a condition."""
    metadata = tree["metadata"]
    if CLEANUP not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
    status = tree.setdefault("status", {})
    conditions = [c for c in status.get("conditions") or () if c.get("type") != "Terminating"]
    status["conditions"] = [*conditions, {**_TERMINATING, "lastTransitionTime": now}]


def _storage_versions(spec: Tree) -> list[str]:
    return [str(v.get("name")) for v in spec.get("versions") or () if v.get("storage")]


def _is_true(conditions: list[Tree], kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _with_condition(
    conditions: list[Tree], kind: str, state: tuple[str, str, str], now: str
) -> list[Tree]:
    """The conditions with this one; its time stays if its status does."""
    status, reason, message = state
    old = next((c for c in conditions if c.get("type") == kind), None)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    new["lastTransitionTime"] = since
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]
