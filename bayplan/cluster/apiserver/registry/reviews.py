"""Reviews: authentication and authorization reviews.

There is a single user with all permissions: any client with the token, or any client when the
server has none.
"""

from __future__ import annotations

from typing import Any

from .resources import ApiResource

Tree = dict[str, Any]

USER = {"username": "bayplan-admin", "groups": ["system:masters", "system:authenticated"]}


def answer(resource: ApiResource, tree: Tree, token: str) -> Tree:
    """The review with its result as status."""
    spec = tree.get("spec") or {}
    status: Tree
    match resource.kind:
        case "TokenReview":
            known = not token or spec.get("token") == token
            status = {"authenticated": True, "user": USER} if known else {"authenticated": False}
        case "SelfSubjectReview":
            status = {"userInfo": USER}
        case "SelfSubjectRulesReview":
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            status = {
                "resourceRules": [everything],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case _:
            is_anonymous = token and spec.get("user") == "system:anonymous"
            status = {"allowed": not is_anonymous}
    return {**tree, "metadata": tree.get("metadata") or {}, "status": status}
