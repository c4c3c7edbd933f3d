"""Grants: roles and bindings may only give rights that their author has, or may pass on.

Mirrors pkg/registry/rbac (escalation_check.go, */policybased, validation/rule.go) and
k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from ..registry.resource_table import BY_STORAGE, ApiResource
from ..registry.status_errors import forbidden, not_found
from .authorizer import (
    EVERY_PATH,
    EVERYTHING,
    MASTERS,
    AccessQuestion,
    ClusterUser,
)
from .rbac import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLES,
    RbacAuthorizer,
    allows,
    listed_errors,
)

Tree = Mapping[str, Any]

_NEEDS_ADMIN = "must have cluster-admin privileges to use the aggregationRule"
_KEPT_BY_COLLECTOR = ("finalizers", "managedFields", "ownerReferences")


class GrantRequest(NamedTuple):
    """The place of a role or binding that is written; `name` is empty when it is created."""

    resource: ApiResource
    namespace: str
    name: str


class GrantGuard:
    """Refuses roles and bindings that give more than their author may give. Without RBAC it refuses nothing."""

    def __init__(self, rbac: RbacAuthorizer) -> None:
        self._rbac = rbac

    def check(
        self, user: ClusterUser, request: GrantRequest, tree: Tree, old: Tree | None = None
    ) -> None:
        """Check the new state of an object of any kind; raises StatusError (403, 404)."""
        storage = request.resource.storage
        if not self._rbac.is_on or MASTERS in user.groups:
            return
        if old is not None and _without_links(tree) == _without_links(old):
            return
        if storage in (ROLES, CLUSTER_ROLES):
            self._check_role(user, request, tree, old)
        elif storage in (BINDINGS, CLUSTER_BINDINGS):
            self._check_binding(user, request, tree)

    def _check_role(
        self, user: ClusterUser, request: GrantRequest, tree: Tree, old: Tree | None
    ) -> None:
        resource, namespace, name = request
        asked = AccessQuestion("escalate", namespace, GROUP, resource.plural, name=name)
        if self._rbac.decide(user, asked).allowed:
            return
        shown = _name_of(tree)
        problem = self._escalation(user, namespace, tree.get("rules") or ())
        if problem:
            raise forbidden(resource, shown, problem)
        aggregates = _aggregates(tree) or (old is not None and _aggregates(old))
        if aggregates and self._escalation(user, namespace, (EVERYTHING, EVERY_PATH)):
            raise forbidden(resource, shown, _NEEDS_ADMIN)

    def _check_binding(self, user: ClusterUser, request: GrantRequest, tree: Tree) -> None:
        resource, namespace, _ = request
        ref = tree.get("roleRef") or {}
        kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
        if kind not in ("Role", "ClusterRole"):
            return  # refused when it is validated
        role = BY_STORAGE[ROLES if kind == "Role" else CLUSTER_ROLES]
        asked = AccessQuestion("bind", namespace, GROUP, role.plural, name=name)
        if self._rbac.decide(user, asked).allowed:
            return
        rules = self._rbac.rules_of_role(kind, name, namespace)
        if rules is None:
            raise not_found(role, name)
        problem = self._escalation(user, namespace, rules)
        if problem:
            raise forbidden(resource, _name_of(tree), problem)

    def _escalation(self, user: ClusterUser, namespace: str, rules: Iterable[Tree]) -> str:
        """Permissions in the rules that the user does not have, in kube-apiserver's words; empty if nothing."""
        missing: list[str] = []
        held = list(self._rbac.rules_for(user, namespace, missing))
        lacking = [
            part
            for rule in rules
            for part in _parts(rule)
            if not any(allows(each, _question(part)) for each in held)
        ]
        if not lacking:
            return ""
        listed = "\n".join(sorted({_shown(rule) for rule in _joined(lacking)}))
        text = (
            f"user {json.dumps(user.name)} (groups={_quoted(user.groups)}) is attempting to grant RBAC"
            f" permissions not currently held:\n{listed}"
        )
        return f"{text}; resolution errors: [{listed_errors(missing)}]" if missing else text


def _parts(rule: Tree) -> Iterator[Tree]:
    """The rule as rules with one verb, one resource and at most one name, or one path."""
    verbs = rule.get("verbs") or ()
    names = [[name] for name in rule.get("resourceNames") or ()] or [[]]
    places = product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs, names)
    for group, resource, verb, name in places:
        yield {
            "apiGroups": [group],
            "resources": [resource],
            "resourceNames": name,
            "verbs": [verb],
        }
    for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


def _question(part: Tree) -> AccessQuestion:
    """The question whether a user may do what a part of a rule allows."""
    (verb,) = part["verbs"]
    if "nonResourceURLs" in part:
        return AccessQuestion(verb, path=part["nonResourceURLs"][0])
    resource, _, subresource = part["resources"][0].partition("/")
    name = next(iter(part["resourceNames"]), "")
    return AccessQuestion(verb, "", part["apiGroups"][0], resource, subresource, name)


def _joined(parts: Iterable[Tree]) -> list[Tree]:
    """The parts, with those of one resource joined into one rule with several verbs."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        key = json.dumps({**part, "verbs": "nonResourceURLs" in part and part["verbs"]})
        if key in found:
            found[key]["verbs"] = [*found[key]["verbs"], *part["verbs"]]
        else:
            found[key] = dict(part)
    return list(found.values())


def _shown(rule: Tree) -> str:
    """A rule as refusals show it."""
    fields = {
        "APIGroups": rule.get("apiGroups"),
        "Resources": rule.get("resources"),
        "NonResourceURLs": rule.get("nonResourceURLs"),
        "ResourceNames": rule.get("resourceNames"),
        "Verbs": rule.get("verbs"),
    }
    return "{" + ", ".join(f"{name}:{_quoted(v)}" for name, v in fields.items() if v) + "}"


def _quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"


def _aggregates(role: Tree) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _name_of(tree: Tree) -> str:
    return str((tree.get("metadata") or {}).get("name") or "")


def _without_links(tree: Tree) -> dict[str, Any]:
    """The object without the fields that a garbage collector changes."""
    metadata = tree.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _KEPT_BY_COLLECTOR}
    others = {key: value for key, value in tree.items() if key not in ("apiVersion", "kind")}
    return {**others, "metadata": kept}
