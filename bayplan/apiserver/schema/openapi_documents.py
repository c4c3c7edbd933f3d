"""OpenAPI documents: documents that describe the fields of objects and the parameters of requests.

kubectl reads them before it applies (whether the server checks fields itself) and to explain. Built
from the table of fields; descriptions are not served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...api.schema.fields import FIELDS, Field, FieldType
from ..registry.resource_table import ApiResource

Tree = dict[str, Any]

GVK = "x-kubernetes-group-version-kind"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
_NOT_IN_V2 = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations"})
_SCALARS: Mapping[str, Tree] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {"type": "string"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "any": {"type": "object"},
    "json": {},
}
_PACKAGES = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_OBJECT_META = "meta.v1.ObjectMeta"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_STRATEGIC = "application/strategic-merge-patch+json"
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)


def root_of(resource: ApiResource) -> str:
    """The path of the version in the index of documents."""
    return f"{'apis' if resource.group else 'api'}/{resource.api_version}"


def _gvk(resource: ApiResource) -> Tree:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _type_name(resource: ApiResource) -> str:
    """The name of its type in the documents."""
    if resource.custom is None:
        return full_name(resource.schema)
    return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))


def _is_stored(resource: ApiResource) -> bool:
    return "list" in resource.verbs


def full_name(type_name: str) -> str:
    """The name of a type in the documents."""
    package, _, rest = type_name.partition(".")
    if package in _PACKAGES:
        return f"{_PACKAGES[package]}.{rest}"
    return f"io.k8s.api.{type_name}"


def document_v2(served: Iterable[ApiResource]) -> Tree:
    """The OpenAPI v2 document of all served kinds."""
    served = list(served)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.4"},
        "paths": _paths(served, is_v3=False),
        "definitions": _definitions(served, "#/definitions/"),
    }


def document_v3(served: Iterable[ApiResource]) -> Tree:
    """The OpenAPI v3 document of one version of one group."""
    served = list(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.4"},
        "paths": _paths(served, is_v3=True),
        "components": {"schemas": _definitions(served, "#/components/schemas/")},
    }


def _definitions(served: Iterable[ApiResource], prefix: str) -> Tree:
    """The types of the kinds and all types within them."""
    found: Tree = {}
    for one in served:
        for name in _reached(_OBJECT_META if one.custom is not None else one.schema):
            if full_name(name) not in found:
                found[full_name(name)] = _definition(name, prefix)
        if one.custom is not None:
            found[_type_name(one)] = _custom_definition(one.custom.schema.tree, prefix)
        definition = found[_type_name(one)]
        definition.setdefault(GVK, []).append(_gvk(one))
        if _is_stored(one):
            found[f"{_type_name(one)}List"] = _list_definition(one, prefix)
    return found


def _custom_definition(schema: Tree, prefix: str) -> Tree:
    """The schema of a custom resource, with the fields that every object has."""
    found = dict(schema) if "components" in prefix else in_v2(schema)
    if "properties" in found or not found.get(PRESERVE):
        found["properties"] = {
            **(found.get("properties") or {}),
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": prefix + full_name(_OBJECT_META)},
        }
    return found


def in_v2(schema: Tree) -> Tree:
    """A schema in the terms of OpenAPI v2: without nulls, alternatives and conditions on values.

    Mirrors ToStructuralOpenAPIV2 of k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2.
    """
    found = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if schema.get(INT_OR_STRING):
        found.pop("type", None)
    if schema.get("nullable") or schema.get(PRESERVE):
        for key in ("type", "items", "properties", "additionalProperties"):
            found.pop(key, None)
    if isinstance(found.get("items"), Mapping):
        found["items"] = in_v2(found["items"])
    if isinstance(found.get("additionalProperties"), Mapping):
        found["additionalProperties"] = in_v2(found["additionalProperties"])
    if "properties" in found:
        found["properties"] = {name: in_v2(below) for name, below in found["properties"].items()}
    return found


def _reached(type_name: str) -> list[str]:
    seen: dict[str, None] = {}
    waiting = [type_name, "meta.v1.ListMeta", "meta.v1.DeleteOptions"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen[name] = None
        for field in FIELDS.of(name).values():
            waiting += _structs(field.type)
    return list(seen)


def _structs(kind: FieldType) -> Iterator[str]:
    if kind.form == "struct":
        yield kind.name
    elif kind.item is not None:
        yield from _structs(kind.item)


def _definition(type_name: str, prefix: str) -> Tree:
    fields = FIELDS.of(type_name)
    definition: Tree = {"type": "object"}
    if fields:
        definition["properties"] = {
            name: _property(field, prefix) for name, field in fields.items()
        }
    required = [name for name, field in fields.items() if field.is_required]
    if required:
        definition["required"] = required
    return definition


def _list_definition(one: ApiResource, prefix: str) -> Tree:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": prefix + full_name("meta.v1.ListMeta")},
            "items": {"type": "array", "items": {"$ref": prefix + _type_name(one)}},
        },
        GVK: [{**_gvk(one), "kind": one.list_kind}],
    }


def _property(field: Field, prefix: str) -> Tree:
    found = _type(field.type, prefix)
    strategies = []
    if field.merge_key is not None:
        strategies.append("merge")
        if field.merge_key:
            found["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.retains_keys:
        strategies.append("retainKeys")
    if strategies:
        found["x-kubernetes-patch-strategy"] = ",".join(strategies)
    if field.list_keys:
        found["x-kubernetes-list-type"] = "map"
        found["x-kubernetes-list-map-keys"] = list(field.list_keys)
    elif field.list_keys is not None:
        found["x-kubernetes-list-type"] = "set"
    elif field.type.form == "list":
        found["x-kubernetes-list-type"] = "atomic"
    if field.is_atomic:
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _type(kind: FieldType, prefix: str) -> Tree:
    match kind.form:
        case "list":
            assert kind.item is not None
            return {"type": "array", "items": _type(kind.item, prefix)}
        case "map":
            assert kind.item is not None
            return {"type": "object", "additionalProperties": _type(kind.item, prefix)}
        case "struct":
            return {"$ref": prefix + full_name(kind.name)}
        case _:
            return dict(_SCALARS[kind.name])


def _paths(served: Iterable[ApiResource], is_v3: bool) -> Tree:
    """The write requests, which clients search for."""
    paths: Tree = {}
    for one in served:
        where = "/namespaces/{namespace}" if one.is_namespaced else ""
        collection = f"/{root_of(one)}{where}/{one.plural}"
        paths[collection] = {"post": _operation(one, "post", _WRITE_PARAMETERS, is_v3)}
        if _is_stored(one):
            paths[f"{collection}/{{name}}"] = {
                "put": _operation(one, "put", _WRITE_PARAMETERS, is_v3),
                "patch": _operation(one, "patch", (*_WRITE_PARAMETERS, "force"), is_v3),
            }
    return paths


def _operation(one: ApiResource, action: str, parameters: Iterable[str], is_v3: bool) -> Tree:
    def parameter(name: str) -> Tree:
        kind = {"type": "boolean" if name == "force" else "string", "uniqueItems": True}
        said: Tree = {"schema": kind} if is_v3 else kind
        return {"name": name, "in": "query", **said}

    operation: Tree = {
        "operationId": f"{action}{one.group.partition('.')[0].title()}{one.version.title()}{one.kind}",
        "parameters": [parameter(name) for name in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        GVK: _gvk(one),
    }
    if action == "patch":
        # A custom resource has no keys by which a strategic merge patch merges lists.
        kinds = [k for k in _PATCHES if one.custom is None or k != _STRATEGIC]
        if is_v3:
            operation["requestBody"] = {"content": {kind: {} for kind in kinds}}
        else:
            operation["consumes"] = kinds
    return operation
