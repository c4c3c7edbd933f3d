"""Objects as trees, and their decoding from JSON and from the tree."""

import json
from typing import Any

from bayplan.api.wire.decode import decode, decode_object
from bayplan.api.wire.kinds import KINDS


def make_tree(kind: str = "Pod", name: str = "web-1", **parts: Any) -> dict[str, Any]:
    version = KINDS[kind].api_version if kind in KINDS else "v1"
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def read_both(tree: dict[str, Any]) -> Any:
    """Decode a tree both ways, and check that they agree on the class."""
    from_tree, from_json = decode_object(tree), decode(json.dumps(tree))
    assert type(from_tree) is type(from_json)
    return from_tree
