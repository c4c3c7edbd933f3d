"""Scale: the number of replicas of a workload as autoscaling/v1 Scale.

Mirrors the ScaleREST of pkg/registry/apps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...api.rules.field_causes import invalid_value
from ...api.rules.immutable import value_at
from ...api.selectors import label_query
from .object_registry import Edit, ObjectRegistry
from .resource_table import ApiResource
from .status_errors import bad_request, internal, invalid, stale

Tree = dict[str, Any]
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(resource: ApiResource, tree: Mapping[str, Any]) -> Tree:
    """The Scale of a workload, or of an object of a custom resource; raises StatusError if it has none."""
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    replicas, status_path = spec.get("replicas"), ".status.replicas"
    selector = ""
    if resource.custom is not None:
        paths = resource.custom.scale or {}
        replicas, status_path = value_at(tree, resource.scale), paths["statusReplicasPath"]
        selector = str(value_at(tree, paths.get("labelSelectorPath") or ".status.") or "")
        if replicas is None:
            raise internal(f'the spec replicas field "{resource.scale}" does not exist')
    else:
        selector = label_query(spec.get("selector"))
    status: Tree = {"replicas": int(value_at(tree, status_path) or 0)}
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": int(replicas or 0)},
        "status": status,
    }


def update_scale(
    registry: ObjectRegistry,
    resource: ApiResource,
    namespace: str,
    name: str,
    edit: Edit,
    dry_run: bool,
) -> Tree:
    """Set the number of replicas to the result of `edit`; return the new Scale."""

    def scaled(tree: Tree) -> Tree:
        before = scale_of(resource, tree)
        after = edit(scale_of(resource, tree))
        metadata = after.get("metadata") or {}
        if metadata.get("name") not in (None, "", name):
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        version = metadata.get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise stale(resource, name)
        replicas = (after.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            cause = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid(resource, name, [cause])
        _set(tree, resource.scale, replicas)
        return tree

    record = registry.update(resource, namespace, name, scaled, "", dry_run)
    return scale_of(resource, record.decode())


def _set(tree: Tree, path: str, value: Any) -> None:
    *parents, last = path.removeprefix(".").split(".")
    for step in parents:
        tree[step] = dict(tree.get(step) or {})
        tree = tree[step]
    tree[last] = value
