"""Service accounts: every namespace has the service account `default`.

Mirrors pkg/controller/serviceaccount/serviceaccounts_controller.go.
"""

from __future__ import annotations

from ...cluster.objects import Later
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..registry.status_errors import StatusError
from ..store import RecordChange, Store

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
