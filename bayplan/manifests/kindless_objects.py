"""Kindless objects: nodes and pods without apiVersion and kind, as programs in Go write objects of a client.

Archives for support, such as those of OpenShift's insights operator, have a file for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_kind(tree: Any) -> dict[str, Any] | None:
    """The object with its version and kind; None unless an API server stored it and it must be a node or a pod."""
    if not isinstance(tree, Mapping) or "kind" in tree or not _part(tree, "metadata").get("uid"):
        return None
    if "nodeInfo" in _part(tree, "status"):
        kind = "Node"
    elif isinstance(_part(tree, "spec").get("containers"), list):
        kind = "Pod"
    else:
        return None
    return {**tree, "apiVersion": "v1", "kind": kind}


def _part(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}
