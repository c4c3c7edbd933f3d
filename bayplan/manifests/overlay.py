"""Overlay: apply manifests to an existing cluster.

As with `kubectl apply`, an object in both keeps the fields that the manifest does not mention, and
its identity: claims remain bound, pods remain with their workload. An existing pod is unchanged,
since a pod's spec cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..api.pod import Pod
from ..api.schema.strategic import PatchError, applied
from ..api.schema.unknown import schema_type
from ..api.wire.nulls import REMOVED, without_nulls
from ..api.wire.placement_fields import APPLIED_TEMPLATE, LAST_APPLIED, template_digest
from ..api.wire.sourced import Documents
from ..api.wire.whole import apply_patch, merge_difference, whole
from ..api.workloads import pod_template
from ..cluster.objects.object_index import ClusterObject
from ..errors import DecodeError, InputError
from .loader import ManifestPlace, Manifests
from .timeline import InputObject, Timeline

Key: TypeAlias = tuple[str, str, str]
Tree: TypeAlias = dict[str, Any]

IDENTITY = ("uid", "resourceVersion", "creationTimestamp", "generation")
"""Fields that make up the identity of an object."""


class ApplicationPatch(NamedTuple):
    """The effect of `kubectl apply` on an object."""

    patch: Tree
    has_new_template: bool | None = None
    """Whether its template differs from the one that was applied before, also in fields that do not affect placement;
    None if that is unknown: the object has no record of it."""


def manifests_of(objects: Iterable[InputObject], source: str) -> Manifests:
    """Objects that do not come from a file; errors about them name the `source`."""
    found = list(objects)
    return Manifests(found, list(repeat(ManifestPlace(source, 0, -1), len(found))))


def lay_over(
    cluster: Manifests, files: Manifests, documents: Documents | None = None
) -> tuple[Manifests, list[Pod]]:
    """`cluster` with `files` applied to it, and the pods of `files` that already exist.

    `documents` are the manifests of `files`, where they were kept. Raises InputError, which names the file, when an
    object cannot be merged.
    """
    unused = cluster.unused + files.unused
    merged = Manifests(list(cluster.objects), list(cluster.places), unused, dict(files.unknown))
    merged.invalid, merged.notes = dict(files.invalid), list(files.notes)
    merged.types |= files.types
    known = {key_of(obj): i for i, obj in enumerate(merged.objects)}
    present: list[Pod] = []
    for number, obj in enumerate(files.objects):
        i = known.get(key_of(obj)) if obj.name else None
        if i is None:
            merged.objects.append(obj)
            merged.places.append(files.places[number])
        elif isinstance(obj, Pod):
            present.append(obj)
        else:
            place = files.place_at(number)
            merged.objects[i] = _applied(merged.objects[i], obj, place, documents or Documents())
            merged.places[i] = place
    return merged, present


def key_of(obj: InputObject) -> Key:
    """Kind, namespace and name."""
    return obj.kind, obj.namespace, obj.name


def patch_of(
    there: ClusterObject, given: ClusterObject, document: Tree | None = None
) -> ApplicationPatch:
    """The merge patch that has the effect of `kubectl apply` of `given`, whose manifest is the `document`.

    Lists are merged by their keys, and fields that the last applied manifest had and `given` has not are removed.
    Without a document values that are defaults do not count as given.
    """
    tree = without_nulls(document, REMOVED) if document is not None else whole(given)
    tree["metadata"] = _without(tree["metadata"], IDENTITY)
    tree.pop("status", None)
    current, last = whole(there), _last_applied(there)
    type_name = schema_type(there.api_version, there.kind)
    try:
        made = applied(current, tree, last or {}, type_name)
    except PatchError as error:
        raise InputError(f"{there.kind} {there.key}: {error}") from None
    kept = {name: value for name, value in current["metadata"].items() if name in IDENTITY}
    made["metadata"] = {**made["metadata"], **kept}
    patch = merge_difference(current, made)
    if last is None:
        return ApplicationPatch(patch)
    if document is None or pod_template(there) is None:
        return ApplicationPatch(patch, False)
    former = there.annotations.get(APPLIED_TEMPLATE) or template_digest(last)
    return ApplicationPatch(patch, former != template_digest(tree))


def _last_applied(there: ClusterObject) -> Tree | None:
    """The manifest that kubectl apply left in the object; None without one."""
    text = there.annotations.get(LAST_APPLIED)
    if not text:
        return None
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(f"{there.kind} {there.key}: {LAST_APPLIED}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{there.kind} {there.key}: {LAST_APPLIED}: expected an object")
    last: Tree = without_nulls(found, REMOVED)
    metadata = last.get("metadata")
    last["metadata"] = _without(metadata if isinstance(metadata, dict) else {}, IDENTITY)
    return _without(last, ("status",))


def _applied(
    there: InputObject, given: InputObject, place: ManifestPlace, documents: Documents
) -> InputObject:
    assert not isinstance(there, Timeline), "a cluster has none"
    assert not isinstance(given, Timeline), "a timeline has no name"
    try:
        made: Any = apply_patch(there, patch_of(there, given, documents.of(given)).patch)
    except DecodeError as error:
        raise InputError(f"{place}: applied to the cluster: {error}") from None
    applied: InputObject = made
    return applied


def _without(tree: Tree, names: Iterable[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in names}
