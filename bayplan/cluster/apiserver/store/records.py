"""Records: one version of one object, encoded once, with what lists and watches ask about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

Key: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of objects of the whole cluster is empty."""

NO_LABELS: Mapping[str, str] = {}


class Record:
    """An object as it was at one resource version. Never changed; a change makes another record."""

    __slots__ = ("_labels", "data", "fields", "key", "owners", "resource_version", "uid")

    def __init__(
        self,
        key: Key,
        uid: str,
        resource_version: int,
        data: bytes,
        labels: Mapping[str, str] | None,
        fields: tuple[str, ...] = (),
        owners: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.uid = uid
        self.resource_version = resource_version
        self.data = data
        """The object as JSON, without its kind and apiVersion: `{"metadata":...`."""
        self._labels = labels
        self.fields = fields
        """What field selectors may ask for, in the order of the resource's selectable fields."""
        self.owners = owners
        """The uids of the objects that own this one."""

    @property
    def labels(self) -> Mapping[str, str]:
        return self._labels or NO_LABELS

    def decode(self) -> dict[str, Any]:
        """The object as a tree of its own, to be changed at will."""
        tree: dict[str, Any] = msgspec.json.decode(self.data)
        return tree


class Change(NamedTuple):
    """One record took the place of another; None: there was none, or there is none any more.

    Of an object that went, `data` is its last state, at the resource version of its going.
    """

    resource: str
    resource_version: int
    old: Record | None
    new: Record | None
    last: Record
    """What events show: the new record, or the last state of one that went."""
