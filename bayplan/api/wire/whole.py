"""Whole: an object with all of its fields, those included that do not affect placement."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..custom import CustomObject, reading_custom
from ..meta import KubeObject
from ..node import Node
from ..pod import Pod
from .decode import decode_object
from .difference import carry_over
from .encode import to_dict
from .kinds import KINDS
from .lenient import decode_leniently
from .merge_patch import merge_patch
from .sourced import SourcedNode, SourcedPod, keeping_sources

Tree = dict[str, Any]


def whole(obj: Pod | Node | KubeObject) -> Tree:
    """The object as it is stored, with what changed here since it was read.

    Without `metadata.managedFields`, which kube-scheduler drops, too. An object without a source,
    as one that a test made, or of another kind, has the fields of our types only.
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
