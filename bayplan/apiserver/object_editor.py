"""Object editor: read, check, store and delete single objects as YAML, with the rules of the API.

For the page of `bayplan up`. An object that exists is replaced, as `kubectl replace` does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import InputError
from ..yaml_tree import format_tree
from .registry.conversion import to_stored
from .registry.object_registry import ObjectRegistry
from .registry.resource_table import BY_KIND, ApiResource
from .registry.status_errors import StatusError
from .web.requests import parse_yaml
from .web.write_requests import check_fields

DEFAULT_NAMESPACE = "default"
STRICT = "Strict"
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class EditRequest(msgspec.Struct, frozen=True):
    """An edit of an object: `read`, `check`, `apply` or `delete`; the first and the last name it."""

    do: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    text: str = ""


class ObjectEditor:
    """Edits the objects of a registry."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry = registry

    def handle(self, body: bytes) -> dict[str, Any]:
        """The result of a request in JSON; raises InputError with the message of the API."""
        try:
            request = msgspec.json.decode(body, type=EditRequest)
            match request.do:
                case "read":
                    return {"text": self._read(request)}
                case "check" | "apply":
                    return {"said": self._apply(request.text, is_check=request.do == "check")}
                case "delete":
                    return {"said": self._delete(request)}
        except (StatusError, msgspec.DecodeError) as error:
            raise InputError(str(error)) from None
        raise InputError(f"do: expected read, check, apply or delete; got {request.do!r}")

    def _read(self, request: EditRequest) -> str:
        resource = _resource_named(request.kind)
        record = self._registry.get(resource, request.namespace, request.name)
        tree = {"apiVersion": resource.api_version, "kind": resource.kind, **record.decode()}
        tree["metadata"] = {k: v for k, v in tree["metadata"].items() if k not in SERVER_SET}
        tree.pop("status", None)
        return format_tree(tree)

    def _apply(self, text: str, *, is_check: bool) -> str:
        tree = parse_yaml(text.encode())
        if not isinstance(tree, dict):
            raise InputError("expected an object in YAML; got something else")
        resource = self._registry.catalog.of_manifest(tree)
        check_fields(resource, tree, STRICT)
        tree = to_stored(resource, tree)
        metadata = tree.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name, namespace = str(metadata.get("name") or ""), ""
        if resource.is_namespaced:
            namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
        if self._registry.store.get(resource.storage, (namespace, name)) is None:
            self._registry.create(resource, namespace, tree, is_check)
            return f"{resource.name}/{name} {'can be created' if is_check else 'created'}"

        # Fields that the form leaves out because the server sets them, and the status, stay as they are.
        def kept(old: dict[str, Any]) -> dict[str, Any]:
            return {**({"status": old["status"]} if "status" in old else {}), **tree}

        self._registry.update(resource, namespace, name, kept, "", is_check)
        return f"{resource.name}/{name} {'can be replaced' if is_check else 'replaced'}"

    def _delete(self, request: EditRequest) -> str:
        resource = _resource_named(request.kind)
        self._registry.delete(resource, request.namespace, request.name)
        return f"{resource.name}/{request.name} deleted"


def _resource_named(kind: str) -> ApiResource:
    resource = BY_KIND.get(("", kind)) or BY_KIND.get(("apps", kind))
    if resource is None:
        raise InputError(f"kind: expected one of core or apps; got {kind!r}")
    return resource
