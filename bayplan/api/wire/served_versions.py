"""Served versions: API versions of built-in kinds that Kubernetes v1.36 does not have, and those that a release has.

A manifest with a version that is gone would be refused by every cluster of today, and its fields may differ from those
of the version that replaced it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..pod_groups import SCHEDULING_V1ALPHA2, SCHEDULING_V1BETA1
from ..schema.fields import FIELDS
from ..schema.unknown import schema_type
from .kinds import KINDS, group_of

BUILT_IN_GROUPS = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "extensions", "policy"),
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
        *("authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io"),
        *("coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io"),
        *("resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    }
)
_FULL_NAMES = {group.partition(".")[0] or "core": group for group in BUILT_IN_GROUPS}
_SAME_AS_READ = frozenset({"resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1 DeviceClass"})
"""Versions, of all kinds or of one, that are not served by default, and whose objects have the fields of the version
that is read.
"""
_MOVED_FIELDS = {
    "ResourceClaim": "a request has its fields in `exactly` there",
    "ResourceClaimTemplate": "a request has its fields in `exactly` there",
    "ResourceSlice": "a device has its fields without `basic` there",
}
"""For objects of resource.k8s.io/v1beta1: how those of v1beta2 and v1 differ."""
_GONE_SINCE = {
    "apiextensions.k8s.io/v1beta1": "v1.22",
    "admissionregistration.k8s.io/v1beta1": "v1.22",
    "apps/v1beta1": "v1.16",
    "apps/v1beta2": "v1.16",
    "autoscaling/v2beta1": "v1.25",
    "autoscaling/v2beta2": "v1.26",
    "batch/v1beta1": "v1.25",
    "batch/v2alpha1": "v1.21",
    "discovery.k8s.io/v1beta1": "v1.25",
    "extensions/v1beta1": "v1.16",
    "networking.k8s.io/v1beta1": "v1.22",
    "policy/v1beta1": "v1.25",
    "rbac.authorization.k8s.io/v1beta1": "v1.22",
    "scheduling.k8s.io/v1beta1": "v1.22",
    "storage.k8s.io/v1beta1": "v1.22",
}
_LATER = {
    "extensions/v1beta1 Ingress": "v1.22",
    "storage.k8s.io/v1beta1 CSIStorageCapacity": "v1.27",
}
_REMOVED_KINDS = {"PodSecurityPolicy": "v1.25", "PodPreset": "v1.20"}
_STILL_BETA = frozenset(
    {
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"),
        *("ValidatingAdmissionPolicyBinding", "VolumeAttributesClass", "ServiceCIDR", "IPAddress"),
    }
)
"""Kinds that are not read, and of which v1.36 has a beta version besides v1."""
Tree = dict[str, Any]
_SAME_FIELDS = frozenset({"resource.k8s.io/v1beta2", "resource.k8s.io/v1"})
"""Versions of DeviceTaintRules that have the same fields."""


@cache
def version_fault(api_version: str, kind: str) -> str:
    """Reason why no cluster of v1.36 has objects of that version and kind; empty if one may have."""
    group = group_of(api_version)
    if group not in BUILT_IN_GROUPS or not api_version or schema_type(api_version, kind):
        return ""
    read = KINDS.get(kind)
    is_same = not _SAME_AS_READ.isdisjoint((api_version, f"{api_version} {kind}"))
    if read is not None and read.group == group and is_same:
        return ""
    if kind in _REMOVED_KINDS:
        return f"expected a kind of Kubernetes v1.36; {kind} is gone since {_REMOVED_KINDS[kind]}"
    served = _served(kind, group)
    if not served:
        is_stable = api_version.rpartition("/")[2] == "v1"
        return f"expected a kind of {api_version}; got {kind}" if is_stable else ""
    if kind in _STILL_BETA:
        return ""
    since = _LATER.get(f"{api_version} {kind}", _GONE_SINCE.get(api_version, ""))
    gone = f", which Kubernetes does not serve since {since}" if since else ""
    if api_version == "resource.k8s.io/v1beta1" and kind in _MOVED_FIELDS:
        gone = f"; {_MOVED_FIELDS[kind]}"
    return f"expected {served}; got {api_version}{gone}"


def _served(kind: str, group: str) -> str:
    """The API version of a kind, preferably in the given group; empty if there is no such kind."""
    read = KINDS.get(kind)
    if read is not None and read.group in BUILT_IN_GROUPS:
        return read.api_version
    found = [name.split(".") for name in FIELDS.names if name.endswith(f".{kind}")]
    known = {
        f"{_FULL_NAMES[short]}/{version}".removeprefix("/"): _FULL_NAMES[short] == group
        for short, version, _ in found
        if short in _FULL_NAMES
    }
    return max(known, key=lambda name: (known[name], name), default="")


def written_as(tree: Tree, api_versions: Mapping[str, str]) -> Tree:
    """`tree` with the version of its kind in `api_versions`, if that has all of its fields.

    v1alpha2 and v1beta1 of pod groups differ in some.
    """
    wanted, kind = api_versions.get(tree["kind"]), tree["kind"]
    is_group = kind in ("PodGroup", "Workload") and all(
        _fits(spec, wanted) for spec in _specs(tree)
    )
    if wanted and (is_group or (kind == "DeviceTaintRule" and wanted in _SAME_FIELDS)):
        tree["apiVersion"] = wanted
    return tree


def _specs(tree: Tree) -> Iterator[Tree]:
    """The spec of a group, or the templates of a workload."""
    spec = tree.get("spec") or {}
    yield from (spec,) if tree["kind"] == "PodGroup" else spec.get("podGroupTemplates") or ()


def _fits(spec: Tree, api_version: str | None) -> bool:
    """Whether the version has all fields of a group, or of a template of groups."""
    mode = spec.get("disruptionMode")
    if api_version == SCHEDULING_V1BETA1:
        return "podGroupTemplateRef" not in spec and not isinstance(mode, str)
    newer = "workloadRef" in spec or "preemptionPolicy" in spec or isinstance(mode, dict)
    return api_version == SCHEDULING_V1ALPHA2 and not newer
