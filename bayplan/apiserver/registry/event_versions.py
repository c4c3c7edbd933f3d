"""Event versions: the two versions of an Event, which are one object.

Stored as v1; events.k8s.io/v1 is converted. Mirrors pkg/apis/core/v1/conversion.go,
pkg/apis/events/v1 and, for validation of the new version, pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...api.rules.field_causes import Cause, invalid_value, required, unsupported_value

Tree = dict[str, Any]

MAX_NOTE = 1024
MAX_WORD = 128
TYPES = ("Normal", "Warning")

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


def event_causes(tree: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield the faults of an event that came as events.k8s.io/v1; `tree` is in the form of v1."""
    if not tree.get("eventTime"):
        yield required("eventTime")
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        word = str(tree.get(field) or "")
        shown = _FROM_CORE.get(field, field)
        if not word:
            yield required(shown)
        elif len(word) > MAX_WORD and field != "reportingComponent":
            yield invalid_value(shown, "", f"can have at most {MAX_WORD} characters")
    if len(str(tree.get("message") or "")) > MAX_NOTE:
        yield invalid_value("message", "", f"can have at most {MAX_NOTE} characters")
    kind = str(tree.get("type") or "")
    if kind not in TYPES:
        yield unsupported_value("type", kind, TYPES)
