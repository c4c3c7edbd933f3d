"""RBAC rules: faults of roles and bindings.

Mirrors pkg/apis/rbac/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import subdomain_faults
from .field_causes import Cause, invalid_value, required, unsupported_value

Tree = Mapping[str, Any]

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def set_groups(tree: dict[str, Any]) -> None:
    """Set the API groups that a binding leaves out."""
    ref = tree.get("roleRef")
    if isinstance(ref, dict) and not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in tree.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def role_causes(tree: Tree, is_namespaced: bool) -> Iterator[Cause]:
    """Yield the faults of a role's rules."""
    for i, rule in enumerate(tree.get("rules") or ()):
        path, urls = f"rules[{i}]", rule.get("nonResourceURLs") or []
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if urls:
            if is_namespaced:
                problem = "namespaced rules cannot apply to non-resource URLs"
                yield invalid_value(f"{path}.nonResourceURLs", urls, problem)
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                problem = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid_value(f"{path}.nonResourceURLs", urls, problem)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{path}.resources", "resource rules must supply at least one resource")
    rule = tree.get("aggregationRule")
    if rule is not None and not rule.get("clusterRoleSelectors"):
        problem = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", problem)


def binding_causes(tree: Tree, is_namespaced: bool) -> Iterator[Cause]:
    """Yield the faults of a binding's role and subjects."""
    ref = tree.get("roleRef") or {}
    group, kind = str(ref.get("apiGroup") or ""), str(ref.get("kind") or "")
    if group != GROUP:
        yield unsupported_value("roleRef.apiGroup", group, (GROUP,))
    kinds = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)
    if kind not in kinds:
        yield unsupported_value("roleRef.kind", kind, kinds)
    if not ref.get("name"):
        yield required("roleRef.name")
    for i, subject in enumerate(tree.get("subjects") or ()):
        yield from _subject_causes(subject, is_namespaced, f"subjects[{i}]")


def _subject_causes(subject: Tree, is_namespaced: bool, path: str) -> Iterator[Cause]:
    if not subject.get("name"):
        yield required(f"{path}.name")
    elif subject.get("kind") == "ServiceAccount":
        for fault in subdomain_faults(subject["name"]):
            yield invalid_value(f"{path}.name", subject["name"], fault)
    kind, group = str(subject.get("kind") or ""), str(subject.get("apiGroup") or "")
    if kind not in _SUBJECTS:
        yield unsupported_value(f"{path}.kind", kind, _SUBJECTS)
        return
    wanted = "" if kind == "ServiceAccount" else GROUP
    if group != wanted:
        yield unsupported_value(f"{path}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount" and not is_namespaced and not subject.get("namespace"):
        yield required(f"{path}.namespace")


def role_ref_causes(tree: Tree, old: Tree) -> Iterator[Cause]:
    """Yield the fault of a binding that names another role than before."""
    ref = tree.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        shown = {"APIGroup": ref.get("apiGroup"), "Kind": ref.get("kind"), "Name": ref.get("name")}
        yield invalid_value("roleRef", shown, "cannot change roleRef")
