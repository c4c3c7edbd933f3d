"""RBAC rules: faults of roles and bindings.

Mirrors pkg/apis/rbac/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from ..text.name_faults import subdomain_faults
from .field_causes import Part, Tree

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


def check_role(role: Part, is_namespaced: bool) -> None:
    """Check a role's rules."""
    for rule in role.each("rules"):
        rule.needs("verbs", problem="verbs must contain at least one value")
        if not rule.get("nonResourceURLs"):
            rule.needs("apiGroups", problem="resource rules must supply at least one api group")
            rule.needs("resources", problem="resource rules must supply at least one resource")
            continue
        if is_namespaced:
            problem = "namespaced rules cannot apply to non-resource URLs"
            rule.invalid("nonResourceURLs", problem)
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            rule.invalid("nonResourceURLs", problem)
    if role.has("aggregationRule"):
        problem = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        role.below("aggregationRule").needs("clusterRoleSelectors", problem=problem)


def check_binding(binding: Part, is_namespaced: bool) -> None:
    """Check a binding's role and subjects."""
    ref = binding.below("roleRef")
    ref.needs_choice("apiGroup", GROUP)
    ref.needs_choice("kind", *(("Role",) if is_namespaced else ()), "ClusterRole")
    ref.needs("name")
    for subject in binding.each("subjects"):
        _check_subject(subject, is_namespaced)


def _check_subject(subject: Part, is_namespaced: bool) -> None:
    kind, is_account = subject.get("kind") or "", subject.get("kind") == "ServiceAccount"
    if subject.needs("name") and is_account:
        subject.check("name", subdomain_faults)
    if kind not in _SUBJECTS:
        subject.unsupported("kind", _SUBJECTS, kind)
        return
    subject.needs_choice("apiGroup", "" if is_account else GROUP)
    if is_account and not is_namespaced:
        subject.needs("namespace")


def check_role_ref(binding: Part, old: Tree) -> None:
    """Refuse a change of the role of a binding."""
    ref = binding.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        shown = {"APIGroup": ref.get("apiGroup"), "Kind": ref.get("kind"), "Name": ref.get("name")}
        binding.invalid("roleRef", "cannot change roleRef", shown)
