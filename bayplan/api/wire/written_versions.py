"""Written versions: the API version with which an object is written, so that the release that serves it takes it back.

Only versions with the fields that the object has are written: v1alpha2 and v1beta1 of pod groups differ in some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..pod_groups import SCHEDULING_V1ALPHA2, SCHEDULING_V1BETA1

Tree = dict[str, Any]
_SAME_FIELDS = frozenset({"resource.k8s.io/v1beta2", "resource.k8s.io/v1"})
"""Versions of DeviceTaintRules that have the same fields."""


def written_as(tree: Tree, api_versions: Mapping[str, str]) -> Tree:
    """`tree` with the version of its kind in `api_versions`, if that has all of its fields."""
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
