"""Mirror: the objects of the store as our types, always up to date."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ...api.custom import CustomResource, custom_kind
from ...api.wire.kinds import FieldError, Kind
from ...api.wire.lenient import decode_leniently
from ...api.wire.pod_text import build_pod
from ...api.wire.sourced import with_source
from ...cluster.objects.object_index import ObjectIndex
from ..registry.object_admission import kind_of
from ..registry.resource_table import BY_STORAGE
from ..store.records import Record, RecordChange
from ..store.store import Store

log = logging.getLogger(__name__)

REMEMBERED = frozenset({"Node", "PersistentVolume", "PersistentVolumeClaim"})
"""Kinds whose deleted objects are remembered; pods are not, as there are too many."""
SOURCED = frozenset({"Pod", "Node"})
KINDS_STORED: dict[str, Kind] = {
    storage: kind
    for storage, resource in BY_STORAGE.items()
    if (kind := kind_of(resource)) is not None
}


class Mirror(ObjectIndex):
    """Follows the store. Kinds that do not affect placement are left out."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._kinds: dict[str, list[Kind]] = {}
        for storage, kind in KINDS_STORED.items():
            self._add_kind(storage, kind)
        store.follow(self._follow)

    def follow_custom(self, resource: CustomResource) -> None:
        """Also follow the objects of a resource that plugins read."""
        group = resource.name.split(".", 2)[2]
        storage = f"{resource.plural}.{group}" if group else resource.plural
        self._add_kind(storage, custom_kind(resource))

    def _add_kind(self, storage: str, kind: Kind) -> None:
        self._kinds.setdefault(storage, []).append(kind)
        for record in self._store.list(storage):
            obj = _decode(kind, record)
            if obj is not None:
                self.put_in(obj)

    def _follow(self, change: RecordChange) -> None:
        for kind in self._kinds.get(change.resource, ()):
            obj = None if change.new is None else _decode(kind, change.new)
            if obj is not None:
                self.put_in(obj)
            else:
                self._remove(kind, change.record)  # deleted or unreadable: no stale version stays

    def _remove(self, kind: Kind, record: Record) -> None:
        gone = self.get(kind.name, *record.key)
        if gone is not None:
            self.take_out(gone)
            if gone.kind not in REMEMBERED:
                self._deaths.pop((gone.kind, gone.namespace, gone.name), None)


def _decode(kind: Kind, record: Record) -> Any | None:
    """The object as far as it can be read, with a log record if that is not all; None if it cannot be used.

    Pods and nodes have their source, which the store keeps anyway.
    """
    try:
        if kind.build is build_pod:
            return build_pod(kind.decoder.decode(record.data), record.data)
        obj: Any = kind.build(kind.decoder.decode(record.data))
    except (msgspec.ValidationError, FieldError):  # nulls, or something unreadable
        obj, faults = decode_leniently(record.data, kind)
        for fault in faults:
            log.warning("%s %s: cannot be read: %s", kind.name, "/".join(record.key), fault)
    return with_source(obj, record.data) if kind.name in SOURCED else obj
