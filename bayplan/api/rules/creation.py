"""Creation: the faults for which kube-apiserver refuses to create an object.

The same rules as those of the API server of `up`, without its cluster: an object is judged by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from ..schema.input_check import unknown_fields
from ..schema.unknown import schema_type
from ..wire.kinds import group_of, resource_name
from .field_causes import Cause
from .field_defaults import apply_defaults
from .object_validation import create_causes, metadata_causes

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def storage_of(api_version: str, kind: str) -> str:
    """The name of the storage of a built-in kind: `deployments.apps`; empty for other kinds."""
    return resource_name(api_version, kind) if schema_type(api_version, kind) else ""


def creation_causes(api_version: str, kind: str, tree: Mapping[str, Any]) -> list[Cause]:
    """The faults of a new object of a built-in kind; WrongTypeError if a value is not of the type of its field.

    Definitions of custom resources have rules of their own, which are not part of this.
    """
    storage = storage_of(api_version, kind)
    if not storage or storage == _DEFINITIONS:
        return []
    unknown_fields(tree, schema_type(api_version, kind))
    whole = copy.deepcopy({**tree, "apiVersion": api_version, "kind": kind})
    metadata = _named(whole)
    apply_defaults(storage, whole)
    whole["metadata"] = {**metadata, **whole["metadata"]}
    return create_causes(storage, whole)


def name_causes(api_version: str, kind: str, metadata: Mapping[str, Any]) -> list[Cause]:
    """The faults of the metadata of an object whose other fields were checked before."""
    return metadata_causes(storage_of(api_version, kind), _named({"metadata": dict(metadata)}))


def _named(tree: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a tree, with a name where the server would make one."""
    metadata = tree["metadata"] = dict(tree.get("metadata") or {})
    prefix = metadata.get("generateName")
    if not metadata.get("name") and prefix:
        metadata["name"] = f"{str(prefix)[:58]}xxxxx"
    return metadata


def refusal_text(api_version: str, kind: str, name: str, causes: Sequence[Cause]) -> str:
    """kube-apiserver's message: `Deployment.apps "web" is invalid: ...`."""
    group = group_of(api_version)
    found = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    return f'{f"{kind}.{group}" if group else kind} "{name}" is invalid: {listed}'
