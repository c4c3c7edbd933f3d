"""Overlay: apply manifests to an existing cluster.

As with `kubectl apply`, an object in both keeps the fields that the manifest does not mention, and
its identity: claims remain bound, pods remain with their workload. An existing pod is unchanged,
since a pod's spec cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, TypeAlias

import msgspec

from ..api.pod import Pod
from ..api.wire.decode import decode_object
from ..api.wire.encode import to_dict
from ..api.wire.whole import apply_patch, whole
from ..cluster.objects import ClusterObject
from ..errors import DecodeError, InputError
from .loader import ManifestPlace, Manifests
from .timeline import InputObject, Timeline

Key: TypeAlias = tuple[str, str, str]

IDENTITY = ("uid", "resourceVersion", "creationTimestamp", "generation")
"""Fields that make up the identity of an object."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def manifests_of(objects: Iterable[InputObject], source: str) -> Manifests:
    """Objects that do not come from a file; errors about them name the `source`."""
    found = list(objects)
    return Manifests(found, list(repeat(ManifestPlace(source, 0, -1), len(found))))


def lay_over(cluster: Manifests, files: Manifests) -> tuple[Manifests, list[Pod]]:
    """`cluster` with `files` applied to it, and the pods of `files` that already exist.

    Raises InputError, which names the file, when an object cannot be merged.
    """
    unused = cluster.unused + files.unused
    merged = Manifests(list(cluster.objects), list(cluster.places), unused, dict(files.unknown))
    merged.invalid, merged.notes = dict(files.invalid), list(files.notes)
    known = {_key(obj): i for i, obj in enumerate(merged.objects)}
    present: list[Pod] = []
    for obj, place in zip(files.objects, files.places, strict=True):
        i = known.get(_key(obj)) if obj.name else None
        if i is None:
            merged.objects.append(obj)
            merged.places.append(place)
        elif isinstance(obj, Pod):
            present.append(obj)
        else:
            merged.objects[i] = _applied(merged.objects[i], obj, place)
            merged.places[i] = place
    return merged, present


def _key(obj: InputObject) -> Key:
    return obj.kind, obj.namespace, obj.name


def patch_of(there: ClusterObject, given: ClusterObject) -> dict[str, Any]:
    """The merge patch of `kubectl apply` that makes `there` as `given`: fields that the last applied manifest had and
    `given` has not are removed."""
    patch = whole(given)
    patch["metadata"] = _without(patch["metadata"], IDENTITY)
    patch.pop("status", None)
    last = there.annotations.get(LAST_APPLIED)
    if last:
        try:
            former = decode_object(msgspec.json.decode(last))
        except (DecodeError, msgspec.DecodeError) as error:
            raise InputError(f"{there.kind} {there.key}: {LAST_APPLIED}: {error}") from None
        if isinstance(former, type(there)):
            _remove_absent(to_dict(former), patch)
    return patch


def _remove_absent(former: dict[str, Any], patch: dict[str, Any]) -> None:
    """Put None into `patch` for each field that only `former` has."""
    for name, value in former.items():
        if name not in patch:
            patch[name] = None
        elif isinstance(value, dict) and isinstance(patch[name], dict):
            _remove_absent(value, patch[name])


def _applied(there: InputObject, given: InputObject, place: ManifestPlace) -> InputObject:
    assert not isinstance(there, Timeline), "a cluster has none"
    assert not isinstance(given, Timeline), "a timeline has no name"
    try:
        made: Any = apply_patch(there, patch_of(there, given))
    except DecodeError as error:
        raise InputError(f"{place}: applied to the cluster: {error}") from None
    applied: InputObject = made
    return applied


def _without(tree: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in names}
