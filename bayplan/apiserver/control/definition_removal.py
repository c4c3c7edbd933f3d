"""Definition removal: delete the objects of a deleted CustomResourceDefinition, then the definition itself.

Mirrors k8s.io/apiextensions-apiserver/pkg/controller/finalizer. When a definition is gone its names are free: those
that were refused because of them are judged again.
"""

from __future__ import annotations

from typing import Any

from ..registry.custom.definitions import CLEANUP, DEFINITIONS
from ..registry.object_registry import DeleteOptions, ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..registry.status_errors import StatusError
from ..store import RecordChange, Store
from ..store.records import ADDED

Tree = dict[str, Any]
BATCH = 500


class DefinitionController:
    """Follows the store; `run_once` deletes some of the objects."""

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
        if self._is_leaving(change.resource):
            self._leaving[change.resource] = None

    def _is_leaving(self, storage: str) -> bool:
        record = self._store.get(DEFINITIONS, ("", storage))
        return record is not None and b'"deletionTimestamp"' in record.data

    def run_once(self) -> None:
        """Do some of the pending work."""
        for name in list(self._leaving):
            del self._leaving[name]
            self._empty(name)
        if self._is_freed:
            self._is_freed = False
            self._judge_again()

    def _empty(self, name: str) -> None:
        """Delete some objects of a definition; without any, let it go."""
        record = self._store.get(DEFINITIONS, ("", name))
        if record is None or not record.decode()["metadata"].get("deletionTimestamp"):
            return
        resource = self._registry.catalog.at(name)
        objects = self._store.list(name)
        for one in objects[:BATCH]:
            if resource is not None and b'"deletionTimestamp"' not in one.data:
                try:
                    options = DeleteOptions(propagation="Background")
                    self._registry.delete(resource, *one.key, options)
                except StatusError as error:
                    if error.code not in (404, 409):
                        raise
        if not self._store.count(name) or resource is None:
            self._let_go(name)
        elif len(objects) > BATCH:
            self._leaving[name] = None

    def _let_go(self, name: str) -> None:
        record = self._store.get(DEFINITIONS, ("", name))
        if record is None:
            return
        tree = record.decode()
        others = [f for f in tree["metadata"].get("finalizers") or () if f != CLEANUP]
        tree["metadata"]["finalizers"] = others
        if not others:
            del tree["metadata"]["finalizers"]
        self._registry.write(BY_STORAGE[DEFINITIONS], record, tree)

    def _judge_again(self) -> None:
        definitions = self._registry.definitions
        for name in definitions.rejected():
            record = self._store.get(DEFINITIONS, ("", name))
            if record is not None:
                tree = record.decode()
                definitions.accept(tree, self._registry.now())
                self._registry.write(BY_STORAGE[DEFINITIONS], record, tree)
