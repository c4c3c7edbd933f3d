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


class Record:
    """An object at one resource version. Immutable; a change makes another record."""

    __slots__ = ("_labels", "data", "fields", "is_held", "key", "owners", "resource_version", "uid")

    def __init__(
        self,
        key: Key,
        uid: str,
        resource_version: int,
        data: bytes,
        labels: Mapping[str, str] | None,
        fields: tuple[str, ...] = (),
        owners: tuple[str, ...] = (),
        is_held: bool = False,
    ) -> None:
        self.key = key
        self.uid = uid
        self.resource_version = resource_version
        self.data = data
        """The object as JSON, without its kind and apiVersion: `{"metadata":...`."""
        self._labels = labels
        self.fields = fields
        """Values for field selectors, in the order of the resource's selectable fields."""
        self.owners = owners
        """The uids of the objects that own this one."""
        self.is_held = is_held
        """Whether it is terminating, and waits for its finalizers."""

    @property
    def labels(self) -> Mapping[str, str]:
        return self._labels or NO_LABELS

    def decode(self) -> dict[str, Any]:
        """The object as a new tree, which may be modified."""
        tree: dict[str, Any] = msgspec.json.decode(self.data)
        return tree


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """An event of one object."""

    type: str
    record: Record
    """The new state, or the last state of a deleted object at the resource version of its deletion."""

    def encode(self, head: bytes) -> bytes:
        """The event as a line of JSON; `head` precedes the object's own fields."""
        data = self.record.data
        return b'{"type":"%b","object":%b%b}\n' % (self.type.encode(), head, data[1:])


class RecordChange(WatchEvent, frozen=True, gc=False):
    """A replacement of one record by another, which is the event of watchers that select nothing."""

    resource: str
    old: Record | None
    """None: it was absent before."""

    @property
    def new(self) -> Record | None:
        """None: it was deleted."""
        return None if self.type is DELETED else self.record
