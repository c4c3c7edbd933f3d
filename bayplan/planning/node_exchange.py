"""Node exchange: which nodes of a cluster go and which come, in order, and where pods land."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..answers.what_if.answer import PodChange


@dataclass(slots=True)
class NodeExchange:
    """The steps from a cluster to the planned one."""

    price_before: float
    """Of the nodes whose type is known, per hour."""
    staying_price: float = 0.0
    """The part of it that stays, whatever the plan."""
    kept: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """In the order in which they are drained."""
    staying: dict[str, str] = field(default_factory=dict)
    """The nodes that are never removed, each with the reason; no pod is planned on them."""
    unknown: list[str] = field(default_factory=list)
    """Those of them that match no type."""
    moves: list[PodChange] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    """Pods that have no node after the last step, with their messages."""
    is_possible: bool = False
    """False if pods that run now would have no node; then there are no steps."""
    types: dict[str, str] = field(default_factory=dict)
    """The type of each node that is added or removed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "priceBefore": round(self.price_before, 6),
            "stayingPrice": round(self.staying_price, 6),
            "kept": self.kept,
            "added": [{"node": name, "type": self.types[name]} for name in self.added],
            "removed": [{"node": name, "type": self.types[name]} for name in self.removed],
            "staying": [{"node": node, "reason": why} for node, why in self.staying.items()],
            "unknown": self.unknown,
            "moves": [
                {"pod": move.key, "from": move.was.node or None, "to": move.now.node or None}
                for move in self.moves
            ],
            "pending": [{"pod": pod, "message": text} for pod, text in self.pending.items()],
        }
