"""RBAC: the permissions that roles and their bindings give.

Mirrors plugin/pkg/auth/authorizer/rbac and pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...api.selectors import LabelSelector
from ...api.wire.nulls import without_nulls
from ..store.records import RecordChange
from ..store.store import Store
from .authorizer import (
    ANONYMOUS,
    EVERY_PATH,
    EVERYTHING,
    MASTERS,
    AccessDecision,
    AccessQuestion,
    ClusterUser,
    account_of,
    forbidden_error,
)

Tree = Mapping[str, Any]
GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
BINDINGS, CLUSTER_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"


class RbacAuthorizer:
    """Answers from the RBAC objects in the store. The group system:masters may do everything.

    Without `is_on` every authenticated user may do everything.
    """

    def __init__(self, store: Store, is_on: bool) -> None:
        self._store = store
        self.is_on = is_on
        self._read: dict[str, dict[tuple[str, str], Tree]] = {}
        store.follow(self._follow, (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS))

    def decide(self, user: ClusterUser, question: AccessQuestion) -> AccessDecision:
        """Whether a rule that applies to the user allows it; the reason names roles that do not exist."""
        if not self.is_on:
            return AccessDecision(user.name != ANONYMOUS.name)
        if MASTERS in user.groups:
            return AccessDecision(True)
        missing: list[str] = []
        for rule in self.rules_for(user, question.namespace, missing):
            if allows(rule, question):
                return AccessDecision(True)
        return AccessDecision(False, f"RBAC: {listed_errors(missing)}" if missing else "")

    def check(self, user: ClusterUser, question: AccessQuestion) -> None:
        """Check that the user may do this; raises StatusError (403)."""
        decision = self.decide(user, question)
        if not decision.allowed:
            raise forbidden_error(user, question, decision.reason)

    def rules(self, user: ClusterUser, namespace: str) -> dict[str, Any]:
        """The rules that apply to the user in a namespace, as the status of a SelfSubjectRulesReview."""
        missing: list[str] = []
        found: Iterable[Tree] = self.rules_for(user, namespace, missing)
        if MASTERS in user.groups or not self.is_on:
            found = (EVERYTHING, EVERY_PATH)
        listed = [dict(rule) for rule in found]
        status: dict[str, Any] = {
            "resourceRules": [rule for rule in listed if rule.get("resources")],
            "nonResourceRules": [rule for rule in listed if rule.get("nonResourceURLs")],
            "incomplete": bool(missing),
        }
        if missing:
            status["evaluationError"] = ", ".join(missing)
        return status

    def rules_of_role(self, kind: str, name: str, namespace: str) -> list[Tree] | None:
        """The rules of a role that a binding in `namespace` names; None if it does not exist."""
        missing: list[str] = []
        ref = {"roleRef": {"kind": kind, "name": name}}
        found = list(self._rules_of(ref, namespace, missing))
        return None if missing else found

    def rules_for(self, user: ClusterUser, namespace: str, missing: list[str]) -> Iterator[Tree]:
        """All rules for the user: those of the cluster, and of the namespace if there is one.

        Roles that do not exist are added to `missing`.
        """
        for binding in self._objects(CLUSTER_BINDINGS).values():
            if _names(binding, user, ""):
                yield from self._rules_of(binding, "", missing)
        if not namespace:
            return
        for (place, _), binding in self._objects(BINDINGS).items():
            if place == namespace and _names(binding, user, namespace):
                for rule in self._rules_of(binding, namespace, missing):
                    if not rule.get("nonResourceURLs"):
                        yield rule

    def _rules_of(self, binding: Tree, namespace: str, missing: list[str]) -> Iterable[Tree]:
        ref = binding.get("roleRef") or {}
        kind, name = ref.get("kind"), str(ref.get("name") or "")
        storage, key = (ROLES, (namespace, name)) if kind == "Role" else (CLUSTER_ROLES, ("", name))
        role = self._objects(storage).get(key)
        if role is None:
            missing.append(f'{str(kind).lower()}.{GROUP} "{name}" not found')
            return ()
        return self._role_rules(role, frozenset())

    def _role_rules(self, role: Tree, within: frozenset[str]) -> Iterator[Tree]:
        """The rules of a role, and of the cluster roles that it aggregates."""
        yield from filter(None, role.get("rules") or ())
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        name = role["metadata"]["name"]
        if not selectors or name in within:
            return
        for (_, other_name), other in self._objects(CLUSTER_ROLES).items():
            labels = other["metadata"].get("labels") or {}
            if other_name != name and any(_selects(each, labels) for each in selectors):
                yield from self._role_rules(other, within | {name})

    def _objects(self, storage: str) -> dict[tuple[str, str], Tree]:
        """All objects of a kind, decoded once after each change."""
        found = self._read.get(storage)
        if found is None:
            found = {record.key: record.decode() for record in self._store.list(storage)}
            self._read[storage] = found
        return found

    def _follow(self, change: RecordChange) -> None:
        self._read.pop(change.resource, None)


def listed_errors(errors: list[str]) -> str:
    """The errors in one text, as kube-apiserver lists them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def allows(rule: Tree, question: AccessQuestion) -> bool:
    """Whether one rule allows this."""
    if not _has(rule.get("verbs"), question.verb):
        return False
    if not question.resource:
        urls = map(str, rule.get("nonResourceURLs") or ())
        return any(
            url in ("*", question.path)
            or (url.endswith("*") and question.path.startswith(url.rstrip("*")))
            for url in urls
        )
    names, resources = rule.get("resourceNames") or (), rule.get("resources") or ()
    return (
        _has(rule.get("apiGroups"), question.group)
        and (
            _has(resources, question.full_resource)
            or (bool(question.subresource) and f"*/{question.subresource}" in resources)
        )
        and (not names or question.name in names)
    )


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _names(binding: Tree, user: ClusterUser, namespace: str) -> bool:
    """Whether the user is one of the binding's subjects."""
    account = account_of(user.name)
    for subject in filter(None, binding.get("subjects") or ()):
        name = subject.get("name")
        match subject.get("kind"):
            case "User" if name == user.name:
                return True
            case "Group" if name in user.groups:
                return True
            case "ServiceAccount" if account == (subject.get("namespace") or namespace, name):
                return True
    return False


def _selects(selector: Tree, labels: Mapping[str, str]) -> bool:
    found = msgspec.convert(without_nulls(selector or {}), LabelSelector)
    return found.is_usable and found.matches(labels)
