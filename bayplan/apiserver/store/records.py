"""Records: one version of one object, encoded once, with the fields that lists and watches select
on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Key: TypeAlias = tuple[str, str]
"""Namespace and name; cluster-scoped objects have an empty namespace."""

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
NO_LABELS: Mapping[str, str] = {}


class Record(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An object at one resource version. A change makes another record."""

    key: Key
    uid: str
    resource_version: int
    data: bytes
    """The object as JSON, without its kind and apiVersion: `{"metadata":...`."""
    _labels: Mapping[str, str] | None
    fields: tuple[Any, ...] = ()
    """Values for field selectors, in the order of the resource's selectable fields; None for an unset field."""
    owners: tuple[str, ...] = ()
    """The uids of the objects that own this one."""
    is_held: bool = False
    """Whether it is terminating, and waits for its finalizers."""

    @property
    def labels(self) -> Mapping[str, str]:
        return self._labels or NO_LABELS

    def decode(self) -> dict[str, Any]:
        """The object as a new tree, which may be modified."""
        tree: dict[str, Any] = msgspec.json.decode(self.data)
        return tree


class WatchEvent(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An event of one object."""

    type: str
    record: Record
    """The new state, or the last state of a deleted object at the resource version of its deletion."""

    def encode(self, head: bytes) -> bytes:
        """The event as a line of JSON; `head` precedes the object's own fields."""
        data = self.record.data
        return b'{"type":"%b","object":%b%b}\n' % (self.type.encode(), head, data[1:])


class RecordChange(WatchEvent, frozen=True, eq=False, gc=False):
    """A replacement of one record by another; also the event for watchers without a selector."""

    resource: str
    old: Record | None
    """None if it was absent before."""
    new: Record | None
    """None if it was deleted."""
