"""Audit: requests to a real API server and their results, from the server's audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import yaml

from .client import Tree

FORBIDDEN = 403


class AuditedRequest(NamedTuple):
    """One request, as RBAC sees it: `resource` is `pods` or `pods/status`; for other paths it is the path."""

    verb: str
    group: str
    resource: str


class Audit:
    """The log of the requests of `users`. Pass `arguments` to the API server before it starts."""

    def __init__(self, folder: Path, *users: str) -> None:
        self._log = folder / "audit.log"
        policy = folder / "audit-policy.yaml"
        head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
        rules = [{"level": "Metadata", "users": list(users)}, {"level": "None"}]
        policy.write_text(
            yaml.safe_dump({**head, "omitStages": ["RequestReceived"], "rules": rules})
        )
        self.arguments = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")

    def asked(self) -> set[AuditedRequest]:
        """The requests."""
        return {_asked(entry) for entry in self._entries()}

    def refused(self) -> dict[AuditedRequest, str]:
        """The forbidden requests, with messages."""
        return {
            _asked(entry): entry["responseStatus"].get("message", "")
            for entry in self._entries()
            if entry["responseStatus"]["code"] == FORBIDDEN
        }

    def _entries(self) -> list[Tree]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [json.loads(line) for line in lines]


def _asked(entry: Tree) -> AuditedRequest:
    about = entry.get("objectRef")
    if about is None:
        return AuditedRequest(entry["verb"], "", entry["requestURI"].partition("?")[0])
    resource = "/".join(about[part] for part in ("resource", "subresource") if part in about)
    return AuditedRequest(entry["verb"], about.get("apiGroup", ""), resource)
