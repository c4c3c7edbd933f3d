"""Placement fields: reduce an object to the fields that affect placement, for files that leave the cluster.

It is an allow list. Our types hold only fields that a placement rule reads, so decoding already
drops environment, commands and arguments, probes, volumes of secrets and config maps, managed
fields and driver parameters. Free text in the remaining fields is dropped as well: annotations
except a few well-known ones, messages, the parameters of storage classes. So are addresses in volumes.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ..dra import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME
from ..meta import KubeObject
from ..node import Node
from ..own_documents import KUBERNETES_VERSION
from ..pod import Pod
from ..pod_groups import PREFERRED_TOPOLOGY
from ..rules.field_defaults import CANONICAL
from ..storage import (
    BETA_CLASS_ANNOTATION,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
)
from ..workloads import pod_template
from .decode import decode_object
from .encode import to_dict
from .nulls import without_nulls

Tree = dict[str, Any]

KEPT_ANNOTATIONS = frozenset(
    {
        BETA_CLASS_ANNOTATION,
        BIND_COMPLETED,
        BOUND_BY_CONTROLLER,
        EXTENDED_RESOURCE_CLAIM,
        KUBERNETES_VERSION,
        MIGRATED_PLUGINS,
        POD_CLAIM_NAME,
        PREFERRED_TOPOLOGY,
        SELECTED_NODE,
        "batch.kubernetes.io/job-completion-index",
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/config.mirror",
        "kubernetes.io/config.source",
        "pv.kubernetes.io/provisioned-by",
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "storageclass.beta.kubernetes.io/is-default-class",
        "storageclass.kubernetes.io/is-default-class",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/storage-provisioner",
    }
)
"""Annotations read by a placement rule, or by a controller that makes pods and volumes."""


FREE_FORM: dict[str, frozenset[str]] = {
    "DeviceClass": frozenset({"config"}),
    "ResourceClaim": frozenset({"config", "data", "networkData"}),
    "ResourceClaimTemplate": frozenset({"config"}),
    "StorageClass": frozenset({"parameters"}),
}
"""By kind: fields with driver-specific content."""
LEFT_OUT = "left-out"
ADDRESSES = {"iscsi": "targetPortal", "nfs": "server"}
"""By source of a volume: a field with an address, which no placement rule reads."""
_KEY = secrets.token_bytes(16)
"""Key of this process: monitors of one file stay distinct, and cannot be guessed from their names in it."""
NOTHING: frozenset[str] = frozenset()


def clipped_tree(
    obj: Pod | Node | KubeObject, annotations: Collection[str] = KEPT_ANNOTATIONS
) -> dict[str, Any]:
    """The object as a manifest, with the fields that affect placement and `annotations` of these names."""
    tree = to_dict(obj)
    _clip(tree, annotations, FREE_FORM.get(obj.kind, NOTHING))
    _keep_record(obj, tree, annotations)
    if isinstance(tree.get("status"), dict):
        tree["status"].pop("message", None)
    return {name: value for name, value in tree.items() if value != {}}


def _keep_record(obj: Pod | Node | KubeObject, tree: Tree, annotations: Collection[str]) -> None:
    """Keep the record of the last kubectl apply of a workload, reduced like the object itself, for `what-if apply`."""
    record = read_record(obj) if pod_template(obj) is not None else None
    applied = decoded_record(record) if record is not None else None
    if record is None or applied is None:
        return
    reduced = to_dict(applied)
    _clip(reduced, annotations, FREE_FORM.get(obj.kind, NOTHING))
    text = msgspec.json.encode(reduced, order="deterministic").decode()
    notes = {LAST_APPLIED: text, APPLIED_TEMPLATE: template_digest(record)}
    metadata = tree.setdefault("metadata", {})
    metadata["annotations"] = {**metadata.get("annotations", {}), **notes}


def note_version(tree: dict[str, Any], version: str) -> dict[str, Any]:
    """`tree`, where a namespace has the version of its cluster in an annotation."""
    if version and tree.get("kind") == "Namespace":
        metadata = tree.setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), KUBERNETES_VERSION: version}
    return tree


def _clip(tree: Any, annotations: Collection[str], free_form: Collection[str]) -> None:
    """Drop private fields from `tree` recursively, templates included."""
    if isinstance(tree, list):
        for item in tree:
            _clip(item, annotations, free_form)
    if not isinstance(tree, dict):
        return
    for name in free_form:
        if isinstance(tree.get(name), dict | list):
            del tree[name]
    if "type" in tree and "status" in tree:  # a condition
        tree.pop("message", None)
    for name, value in tree.items():
        if name == "metadata" and isinstance(value, dict):
            _clip_metadata(value, annotations)
        elif name in ADDRESSES and isinstance(value, dict) and ADDRESSES[name] in value:
            value[ADDRESSES[name]] = LEFT_OUT
        elif name == "rbd" and isinstance(value, dict) and isinstance(value.get("monitors"), list):
            value["monitors"] = [_monitor(address) for address in value["monitors"]]
        else:
            _clip(value, annotations, free_form)


def _monitor(address: str) -> str:
    """A name for the address of a Ceph monitor. Two images are one if they share a monitor, so names stay distinct."""
    digest = hashlib.blake2s(address.encode(), key=_KEY, digest_size=6).hexdigest()
    return f"{LEFT_OUT}-{digest}"


def _clip_metadata(metadata: dict[str, Any], annotations: Collection[str]) -> None:
    given = metadata.pop("annotations", None)
    if isinstance(given, Mapping):
        left = {name: value for name, value in given.items() if name in annotations}
        if left:
            metadata["annotations"] = left


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED_TEMPLATE = "bayplan.dev/applied-template"
"""Annotation with the digest of the template in a record that was reduced to the fields that affect placement."""
TEMPLATE = "core.v1.PodTemplateSpec"
DIGITS = 8
"""Enough to tell versions apart, too few to confirm a guess at the fields that were left out."""


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
