"""Node exchange: which nodes of a cluster go and which come, in order, and where pods land."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..answers.what_if.answer import PodChange


@dataclass(slots=True)
class NodeExchange:
    """How a cluster becomes the planned one."""

    price_before: float
    kept: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """In the order in which they are drained."""
    unknown: list[str] = field(default_factory=list)
    """Nodes that match no type; they stay."""
    moves: list[PodChange] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    """Pods that have no node after the last step, with their messages."""
    types: dict[str, str] = field(default_factory=dict)
    """The type of each node that is added or removed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "priceBefore": round(self.price_before, 6),
            "kept": self.kept,
            "added": [{"node": name, "type": self.types[name]} for name in self.added],
            "removed": [{"node": name, "type": self.types[name]} for name in self.removed],
            "unknown": self.unknown,
            "moves": [
                {"pod": move.key, "from": move.was.node or None, "to": move.now.node or None}
                for move in self.moves
            ],
            "pending": [{"pod": pod, "message": text} for pod, text in self.pending.items()],
        }
