"""Whole: an object with all of its fields, those included that do not affect placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..custom import CustomObject, reading_custom
from ..meta import KubeObject
from ..node import Node
from ..pod import Pod
from .decode import decode_object
from .encode import to_dict
from .kinds import KINDS
from .lenient import decode_leniently
from .sourced import SourcedNode, SourcedPod, keeping_sources

Tree = dict[str, Any]


def whole(obj: Pod | Node | KubeObject) -> Tree:
    """The object as it is stored, with the changes made here since it was read.

    Without `metadata.managedFields`, which kube-scheduler drops, too. An object without a source, such as one made by
    a test, and an object of another kind have the fields of our types only.
    """
    if not isinstance(obj, SourcedPod | SourcedNode):
        return to_dict(obj)
    tree: Tree = msgspec.json.decode(obj.source)
    metadata = {"name": obj.name, **(tree.get("metadata") or {})}  # a template has no name
    metadata.pop("managedFields", None)
    tree = {**tree, "apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata}
    read = decode_leniently(msgspec.json.encode(tree), KINDS[obj.kind]).obj
    assert read is not None, "a source was decoded before"
    carried: Tree = carry_over(tree, to_dict(read), to_dict(obj))
    return carried


def apply_patch(obj: Pod | Node | KubeObject, patch: Mapping[str, Any]) -> object:
    """The object after a merge patch, with a source if it has one; DecodeError if the result cannot be read."""
    custom = (obj.resource,) if isinstance(obj, CustomObject) else ()
    with keeping_sources(isinstance(obj, SourcedPod | SourcedNode)), reading_custom(custom):
        return decode_object(merge_patch(whole(obj), patch))


def carry_over(whole: Any, before: Any, after: Any) -> Any:
    """`whole` with the difference between `before` and `after` applied; a changed copy, or `whole` itself.

    Lists of equal length are handled item by item; appended items are appended; any other list is
    replaced.
    """
    if before == after:
        return whole
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(whole, dict):
        carried = {key: value for key, value in whole.items() if key in after or key not in before}
        for key, value in after.items():
            if key not in before:
                carried[key] = value
            elif before[key] != value:
                carried[key] = carry_over(whole.get(key), before[key], value)
        return carried
    if isinstance(after, list) and isinstance(before, list) and isinstance(whole, list):
        if len(whole) == len(before) == len(after):
            return [carry_over(*entries) for entries in zip(whole, before, after, strict=True)]
        if len(whole) == len(before) and after[: len(before)] == before:
            return [*whole, *after[len(before) :]]
    return after


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with the patch applied: null removes, objects are merged, the rest is replaced."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def merge_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `before` as `after`."""
    patch: dict[str, Any] = {}
    for name, value in after.items():
        was = before.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            inner = merge_difference(was, value)
            if inner:
                patch[name] = inner
        elif value != was:
            patch[name] = value
    return patch | {name: None for name in before if name not in after}
