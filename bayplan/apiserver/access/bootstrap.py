"""Bootstrap: the cluster roles and bindings that a cluster with RBAC begins with, from roles.txt."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from .rbac import GROUP

Tree = dict[str, Any]
API_VERSION = f"{GROUP}/v1"
AGGREGATE = f"{GROUP}/aggregate-to-"
_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def bootstrap_objects() -> list[Tree]:
    """The roles, each followed by its binding if it has one."""
    found: list[Tree] = []
    for line in files(__package__).joinpath("roles.txt").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if line.startswith(" "):
            role = next(tree for tree in reversed(found) if tree["kind"] == "ClusterRole")
            role["rules"].append(_rule(words))
        else:
            found += _role(words[1], dict(word.split("=", 1) for word in words[2:]))
    return found


def _role(name: str, settings: dict[str, str]) -> list[Tree]:
    labels = dict(_LABELS)
    if "to" in settings:
        labels[AGGREGATE + settings["to"]] = "true"
    role = {**_head("ClusterRole", name, labels), "rules": []}
    if "from" in settings:
        selector = {"matchLabels": {AGGREGATE + settings["from"]: "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    subjects = [("Group", each) for each in settings.get("bound", "").split(",") if each]
    subjects += [("User", each) for each in settings.get("user", "").split(",") if each]
    if not subjects:
        return [role]
    binding = {
        **_head("ClusterRoleBinding", name, _LABELS),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": kind, "name": each} for kind, each in subjects],
    }
    return [role, binding]


def _rule(words: list[str]) -> Tree:
    verbs = [verb for word in words[0].split(",") for verb in _VERBS.get(word, (word,))]
    if words[1].startswith("/"):
        urls = ["*" if url == "/*" else url for url in words[1].split(",")]
        return {"verbs": verbs, "nonResourceURLs": urls}
    groups = ["" if group == "core" else group for group in words[1].split(",")]
    rule: Tree = {"verbs": verbs, "apiGroups": groups, "resources": words[2].split(",")}
    if len(words) > 3:
        rule["resourceNames"] = words[3].removeprefix("names=").split(",")
    return rule


def _head(kind: str, name: str, labels: dict[str, str]) -> Tree:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "labels": dict(labels)},
    }
