"""NodeTree: the order in which nodes are visited: one node of each zone in turn.

Mirrors pkg/scheduler/backend/cache/node_tree.go.
"""

from __future__ import annotations

from itertools import chain, zip_longest

from ..api.node import Node


class NodeTree:
    """Node names by zone, zones and nodes in order of appearance."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}

    def add(self, node: Node) -> None:
        """Add the node to its zone."""
        self._zones.setdefault(node.zone_key, {})[node.name] = None

    def remove(self, node: Node) -> None:
        """Remove the node, and its zone when that becomes empty."""
        zone = self._zones[node.zone_key]
        del zone[node.name]
        if not zone:
            del self._zones[node.zone_key]

    def update(self, old: Node, new: Node) -> None:
        """Move the node when its zone changed."""
        if old.zone_key != new.zone_key:
            self.remove(old)
            self.add(new)

    def names(self) -> list[str]:
        """The first node of every zone, then the second of every zone, and so on."""
        rounds = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(rounds) if name is not None]
