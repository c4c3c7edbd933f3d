"""Namespaces: delete the contents of terminating namespaces, and the objects of deleted custom definitions.

Mirrors pkg/controller/namespace and k8s.io/apiextensions-apiserver/pkg/controller/finalizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...cluster.objects.object_index import Later
from ..registry.custom.definitions import CLEANUP, DEFINITIONS
from ..registry.object_registry import DeleteOptions, ObjectRegistry
from ..registry.resource_table import BY_STORAGE, ApiResource
from ..registry.status_errors import StatusError
from ..store.records import ADDED, Record, RecordChange
from ..store.store import Store

NAMESPACES = BY_STORAGE["namespaces"]


class NamespaceController:
    """Follows the store; `run_once` empties the terminating namespaces."""

    def __init__(self, store: Store, registry: ObjectRegistry) -> None:
        self._store = store
        self._registry = registry
        self._leaving = {
            record.key[1] for record in store.list("namespaces") if _is_leaving(record)
        }
        self.has_work = bool(self._leaving)
        store.follow(self._look, ("namespaces",))
        store.follow_deletions(self._look_deleted)

    def _look(self, change: RecordChange) -> None:
        name = change.record.key[1]
        if change.new is None:
            self._leaving.discard(name)
        elif _is_leaving(change.new):
            self._leaving.add(name)
            self.has_work = True

    def _look_deleted(self, change: RecordChange) -> None:
        if change.record.key[0] in self._leaving:
            self.has_work = True

    def run_once(self) -> None:
        """Delete their contents; when nothing is left, the namespace itself."""
        self.has_work = False
        for name in sorted(self._leaving):
            is_empty = True
            for resource, record in self._contents(name):
                is_empty = False
                if b'"deletionTimestamp"' not in record.data:
                    options = DeleteOptions(propagation="Background")
                    self._registry.delete(resource, *record.key, options)
            if is_empty or not any(True for _ in self._contents(name)):
                self._finish(name)

    def _contents(self, namespace: str) -> Iterator[tuple[ApiResource, Record]]:
        for storage in self._store.resources():
            resource = self._registry.catalog.at(storage)
            if resource is not None and resource.is_namespaced:
                for record in self._store.list(storage, namespace):
                    yield resource, record

    def _finish(self, name: str) -> None:
        record = self._store.get("namespaces", ("", name))
        if record is not None:
            tree = record.decode()
            self._registry.write(NAMESPACES, record, {**tree, "spec": {}})


def _is_leaving(record: Record) -> bool:
    return b'"deletionTimestamp"' in record.data and bool(
        record.decode()["metadata"].get("deletionTimestamp")
    )


ACCOUNTS = BY_STORAGE["serviceaccounts"]
DEFAULT = "default"
RETRY_S = 10.0


class ServiceAccountController:
    """Follows the store; `run_once` makes the accounts that are missing."""

    def __init__(self, store: Store, registry: ObjectRegistry, timers: Later) -> None:
        self._store = store
        self._registry = registry
        self._timers = timers
        self._namespaces = {record.key[1] for record in store.list("namespaces")}
        store.follow(self._look, ("namespaces", ACCOUNTS.storage))

    def _look(self, change: RecordChange) -> None:
        if change.resource == "namespaces":
            self._namespaces.add(change.record.key[1])
        elif change.new is None:
            self._namespaces.add(change.record.key[0])

    @property
    def has_work(self) -> bool:
        """Whether namespaces may lack their account."""
        return bool(self._namespaces)

    def run_once(self) -> None:
        """Make the account of each new namespace, and a deleted one again."""
        names, self._namespaces = self._namespaces, set()
        for name in sorted(names):
            record = self._store.get("namespaces", ("", name))
            if record is None or record.fields == ("Terminating",):
                continue
            if self._store.get(ACCOUNTS.storage, (name, DEFAULT)) is None:
                self._make(name)

    def _make(self, namespace: str) -> None:
        try:
            self._registry.create(ACCOUNTS, namespace, {"metadata": {"name": DEFAULT}})
        except StatusError:  # a quota, for example
            self._timers.after(RETRY_S, lambda: self._namespaces.add(namespace))


Tree = dict[str, Any]
BATCH = 500


class DefinitionController:
    """Follows the store; `run_once` deletes some of the objects.

    When a definition is deleted its names are free: those that were refused because of them are judged again.
    """

    def __init__(self, store: Store, registry: ObjectRegistry) -> None:
        self._store = store
        self._registry = registry
        self._leaving: dict[str, None] = {}
        self._is_freed = False
        for record in store.list(DEFINITIONS):
            self._look(RecordChange(ADDED, record, DEFINITIONS, None, record))
        store.follow(self._look, (DEFINITIONS,))
        store.follow_deletions(self._look_deleted)

    @property
    def has_work(self) -> bool:
        """Whether work is pending."""
        return bool(self._leaving) or self._is_freed

    def _look(self, change: RecordChange) -> None:
        if change.new is None:
            self._is_freed = True
        elif b'"deletionTimestamp"' in change.new.data:
            self._leaving[change.new.key[1]] = None

    def _look_deleted(self, change: RecordChange) -> None:
        record = self._store.get(DEFINITIONS, ("", change.resource))
        if record is not None and b'"deletionTimestamp"' in record.data:
            self._leaving[change.resource] = None

    def run_once(self) -> None:
        """Do some of the pending work."""
        for name in list(self._leaving):
            del self._leaving[name]
            self._empty(name)
        if self._is_freed:
            self._is_freed = False
            definitions = self._registry.definitions
            for name in definitions.rejected():
                record = self._store.get(DEFINITIONS, ("", name))
                if record is not None:
                    tree = record.decode()
                    definitions.accept(tree, self._registry.now())
                    self._registry.write(BY_STORAGE[DEFINITIONS], record, tree)

    def _empty(self, name: str) -> None:
        """Delete some objects of a definition; without any, let it go."""
        record = self._store.get(DEFINITIONS, ("", name))
        if record is None or not _is_leaving(record):
            return
        resource = self._registry.catalog.at(name)
        objects = self._store.list(name)
        for one in objects[:BATCH]:
            if resource is not None and b'"deletionTimestamp"' not in one.data:
                options = DeleteOptions(propagation="Background")
                self._registry.delete_if_there(resource, *one.key, options)
        if not self._store.count(name) or resource is None:
            self._registry.drop_finalizer(BY_STORAGE[DEFINITIONS], record, CLEANUP)
        elif len(objects) > BATCH:
            self._leaving[name] = None
