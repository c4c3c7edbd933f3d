"""Garbage: delete dependents of deleted objects: in the background, in the foreground, or not at all.

Mirrors pkg/controller/garbagecollector.
"""

from __future__ import annotations

from typing import Any

from ..registry.object_registry import FOREGROUND, ORPHAN, DeleteOptions, ObjectRegistry
from ..store.records import ADDED, Key, Record, RecordChange
from ..store.store import Store

Tree = dict[str, Any]
Place = tuple[str, Key]
BATCH = 500
ABSENT_OWNERS = "bayplan.dev/absent-owners"
"""Annotation of objects of a dump: uids of owners that the dump lacks, which does not delete the object."""


class GarbageCollector:
    """Follows the store; `run_once` deletes objects without owners."""

    def __init__(self, store: Store, registry: ObjectRegistry) -> None:
        self._store = store
        self._registry = registry
        self._bereft: dict[Place, None] = {}
        self._leaving: dict[Place, None] = {}
        for storage in store.resources():
            for record in store.list(storage):
                self._look(RecordChange(ADDED, record, storage, None, record))
        store.follow(self._look)

    @property
    def has_work(self) -> bool:
        """Whether work is pending."""
        return bool(self._bereft or self._leaving)

    def _look(self, change: RecordChange) -> None:
        if change.new is None:
            assert change.old is not None, "a deleted object was present before"
            self._bereft.update(dict.fromkeys(self._store.owned_by(change.old.uid)))
            for uid in change.old.owners:  # its owner may wait for its deletion
                owner = self._store.find_uid(uid)
                if owner is not None:
                    self._leaving[owner] = None
            return
        old, new = change.old, change.record
        if new.owners and (old is None or old.owners != new.owners):
            self._bereft[change.resource, new.key] = None
        if new.is_held:
            self._leaving[change.resource, new.key] = None

    def run_once(self) -> None:
        """Process some of the pending work."""
        for place in list(self._leaving)[:BATCH]:
            del self._leaving[place]
            self._see_off(place)
        for place in list(self._bereft)[:BATCH]:
            del self._bereft[place]
            self._collect(place)

    def _collect(self, place: Place) -> None:
        """Delete an object if all its owners are missing; otherwise remove references to missing owners."""
        storage, key = place
        record = self._store.get(storage, key)
        if record is None or not record.owners:
            return
        tree = record.decode()
        owners = tree["metadata"]["ownerReferences"]
        absent = str((tree["metadata"].get("annotations") or {}).get(ABSENT_OWNERS) or "").split()
        present = [
            owner
            for owner in owners
            if owner.get("uid") in absent or is_there(self._registry, owner)
        ]
        if len(present) == len(owners):
            return
        if present:
            tree["metadata"]["ownerReferences"] = present
            self._write(storage, record, tree)
        elif not tree["metadata"].get("deletionTimestamp"):
            self._delete(storage, key, DeleteOptions(uid=record.uid, propagation="Background"))

    def _see_off(self, place: Place) -> None:
        """Process the finalizers of a terminating object."""
        storage, key = place
        record = self._store.get(storage, key)
        if record is None:
            return
        tree = record.decode()
        finalizers = tree["metadata"].get("finalizers") or []
        if not tree["metadata"].get("deletionTimestamp"):
            return
        dependents = self._store.owned_by(record.uid)
        if ORPHAN in finalizers:
            for dependent in dependents:
                self._orphan(dependent, record.uid)
            self._let_go(place, ORPHAN)
        elif FOREGROUND in finalizers:
            for dependent in dependents:
                options = DeleteOptions(propagation="Foreground")
                if not self._is_leaving(dependent):
                    self._delete(*dependent, options)
            if not self._store.owned_by(record.uid):
                self._let_go(place, FOREGROUND)

    def _is_leaving(self, place: Place) -> bool:
        record = self._store.get(*place)
        return record is None or bool(record.decode()["metadata"].get("deletionTimestamp"))

    def _orphan(self, place: Place, uid: str) -> None:
        record = self._store.get(*place)
        if record is None:
            return
        tree = record.decode()
        metadata = tree["metadata"]
        others = [owner for owner in metadata["ownerReferences"] if owner.get("uid") != uid]
        if others:
            metadata["ownerReferences"] = others
        else:
            del metadata["ownerReferences"]
        self._write(place[0], record, tree)

    def _let_go(self, place: Place, finalizer: str) -> None:
        record, resource = self._store.get(*place), self._registry.catalog.at(place[0])
        if record is not None and resource is not None:
            self._registry.drop_finalizer(resource, record, finalizer)

    def _write(self, storage: str, record: Record, tree: Tree) -> None:
        resource = self._registry.catalog.at(storage)
        if resource is not None:  # None if its definition is gone
            self._registry.write(resource, record, tree)

    def _delete(self, storage: str, key: Key, options: DeleteOptions) -> None:
        resource = self._registry.catalog.at(storage)
        if resource is not None:
            self._registry.delete_if_there(resource, *key, options)


def is_there(registry: ObjectRegistry, owner: Tree) -> bool:
    """Whether the owner exists; owners of kinds that are not served count as existing."""
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    if not registry.catalog.has_kind(group, str(owner.get("kind"))):
        return True
    return registry.store.find_uid(str(owner.get("uid"))) is not None
