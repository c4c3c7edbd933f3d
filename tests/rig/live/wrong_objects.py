"""Wrong objects: answers of an API server to objects with faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayplan.apiserver.registry.resource_table import BY_KIND

from .api_cases import ApiClient

Tree = dict[str, Any]


def answer_of(client: ApiClient, tree: Mapping[str, Any]) -> Tree:
    """The status and the causes of a server's answer to the creation of an object, which is not stored."""
    group, _, version = str(tree["apiVersion"]).rpartition("/")
    resource = BY_KIND[group, str(tree["kind"])]
    start = f"/apis/{group}/{version}" if group else f"/api/{version}"
    space = "/namespaces/default" if resource.is_namespaced else ""
    path = f"{start}{space}/{resource.plural}?dryRun=All&fieldValidation=Strict"
    answer = client.request("POST", path, dict(tree), "application/json")
    causes = (answer.tree.get("details") or {}).get("causes") or []
    found = sorted(causes, key=lambda cause: (cause.get("field", ""), cause["message"]))
    return {"code": answer.status, "causes": found}
