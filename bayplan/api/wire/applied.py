"""Applied: the record of the last `kubectl apply` in an object, and its form in files that leave the cluster."""

import hashlib
from typing import Any

import msgspec

from ..meta import KubeObject
from ..node import Node
from ..pod import Pod
from ..rules.field_defaults import CANONICAL
from .decode import decode_object, without_nulls

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED_TEMPLATE = "bayplan.dev/applied-template"
"""Annotation with the digest of the template in a record that was reduced to the fields that affect placement."""
TEMPLATE = "core.v1.PodTemplateSpec"
DIGITS = 8
"""Enough to tell versions apart, too few to confirm a guess at the fields that were left out."""

Tree = dict[str, Any]


def template_digest(tree: Tree) -> str:
    """A digest of the template of pods in a manifest, equal where kube-apiserver stores the same; empty without one."""
    spec = tree.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        return ""
    whole: Tree = without_nulls(template)
    CANONICAL.strip(whole, TEMPLATE)
    text = msgspec.json.encode(whole, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:DIGITS]


def read_record(obj: Pod | Node | KubeObject) -> Tree | None:
    """The manifest that was applied last; None if the object has none, or one that cannot be read."""
    text = obj.annotations.get(LAST_APPLIED)
    try:
        found = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    return without_nulls(found) if isinstance(found, dict) else None


def decoded_record(record: Tree) -> Pod | Node | KubeObject | None:
    """The record as an object, which has the fields that affect placement; None if it cannot be read as one."""
    from ...errors import DecodeError

    try:
        found = decode_object(record)
    except DecodeError:
        return None
    return found if isinstance(found, Pod | Node | KubeObject) else None
