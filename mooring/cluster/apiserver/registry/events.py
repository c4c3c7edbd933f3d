"""Events: the two versions of an Event, which are one object.

Kept as v1; events.k8s.io/v1 is made of it. Mirrors pkg/apis/core/v1/conversion.go and pkg/apis/events/v1.
"""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_FROM_CORE = {core: name for name, core in _TO_CORE.items()}


def to_core(tree: Tree) -> Tree:
    """An events.k8s.io/v1 Event as v1."""
    return {_TO_CORE.get(key, key): value for key, value in tree.items()}


def from_core(tree: Tree) -> Tree:
    """A v1 Event as events.k8s.io/v1."""
    return {_FROM_CORE.get(key, key): value for key, value in tree.items()}
