"""Restoration: objects of a dump, kept as the API server that wrote them had them.

They have uids, owners and statuses, and their pods have nodes. A new object would lose all of these, and the pods,
whose owners have other uids then, would be garbage.
"""

from __future__ import annotations

from typing import Any, cast

from ...api.workloads import DaemonSet, StatefulSet
from ...cluster.memory.stateful_sets import REVISION_HASH
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE, ApiResource
from ..store.records import Key
from .garbage import ABSENT_OWNERS, is_there
from .plane import ControlPlane

Tree = dict[str, Any]
CREATED_ANEW = frozenset(
    {
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiservices.apiregistration.k8s.io",
    }
)
"""Kinds whose objects take effect when they are created."""
RUNNING = "Running"
_REVISED = ("StatefulSet", "DaemonSet")


class Restoration:
    """Stores the objects of dumps, and completes them after the last one, before controllers run."""

    def __init__(self, registry: ObjectRegistry, plane: ControlPlane) -> None:
        self._registry = registry
        self._store = registry.store
        self._plane = plane
        self._restored: list[tuple[ApiResource, Key]] = []
        self._leaving: list[str] = []

    def takes(self, resource: ApiResource, tree: Tree) -> bool:
        """Whether the object was stored by an API server, and no other object here has its uid."""
        uid = (tree.get("metadata") or {}).get("uid")
        if not isinstance(uid, str) or not uid or resource.storage in CREATED_ANEW:
            return False
        return self._store.find_uid(uid) is None

    def add(self, resource: ApiResource, namespace: str, tree: Tree) -> None:
        """Store the object, unless it was being deleted."""
        metadata = tree["metadata"]
        if metadata.get("deletionTimestamp"):
            self._leaving.append(f"{resource.kind.lower()} {_name(namespace, metadata['name'])}")
            return
        status = tree.get("status") or {}
        is_running = resource.storage == "pods" and status.get("phase") == RUNNING
        if is_running and not status.get("containerStatuses"):
            # no kubelet wrote this status: one starts the pod
            tree = {**tree, "status": {"phase": "Pending"}}
        record = self._registry.restore(resource, namespace, tree)
        self._restored.append((resource, record.key))

    def complete(self) -> list[str]:
        """Keep objects whose owners are missing, and adopt the pods of workloads; returns notes."""
        notes = []
        bereft = self._note_absent_owners()
        if bereft:
            notes.append(f"{_count(bereft)} an owner that is not in the files: kept as they are")
        if self._leaving:
            notes.append(f"{_count(self._leaving)} been left out: a deletion was under way")
        self._adopt_pods()
        self._restored, self._leaving = [], []
        return notes

    def _note_absent_owners(self) -> list[str]:
        """Objects with missing owners, each with one of these; they are not garbage collected."""
        noted = []
        for resource, key in self._restored:
            record = self._store.get(resource.storage, key)
            if record is None or not record.owners:
                continue
            tree = record.decode()
            owners = tree["metadata"]["ownerReferences"]
            absent = [owner for owner in owners if not is_there(self._registry, owner)]
            if not absent:
                continue
            uids = " ".join(str(owner.get("uid")) for owner in absent)
            annotations = tree["metadata"].get("annotations") or {}
            tree["metadata"]["annotations"] = {**annotations, ABSENT_OWNERS: uids}
            self._registry.write(resource, record, tree)
            owner = f"{str(absent[0].get('kind')).lower()} {absent[0].get('name')}"
            noted.append(f"{resource.kind.lower()} {_name(*key)} (of {owner})")
        return noted

    def _adopt_pods(self) -> None:
        """Give pods of the newest template of a StatefulSet or DaemonSet the hash that it has here."""
        workloads = self._plane.workloads
        if workloads is None:
            return
        for resource, (namespace, name) in self._restored:
            if resource.kind not in _REVISED:
                continue
            found = self._plane.cluster.get(resource.kind, namespace, name)
            if found is None:
                continue
            workload = cast("StatefulSet | DaemonSet", found)
            record = self._registry.get(resource, namespace, name)
            status = record.decode().get("status") or {}
            newest = _newest_hash(resource.kind, status)
            revision = workloads.revision_of(workload)
            for storage, key in list(self._store.owned_by(record.uid)):
                if storage == "pods":
                    self._rename(key, newest, revision)

    def _rename(self, key: Key, newest: str | None, revision: str) -> None:
        record = self._store.get("pods", key)
        assert record is not None, "the index has existing objects only"
        tree = record.decode()
        labels = tree["metadata"].get("labels") or {}
        if REVISION_HASH in labels and newest in (None, labels[REVISION_HASH]):
            labels[REVISION_HASH] = revision
            self._registry.write(BY_STORAGE["pods"], record, tree)


def _newest_hash(kind: str, status: Tree) -> str | None:
    """The hash of pods of the newest template; None if all count as such, empty if it is unknown which do."""
    if kind == "StatefulSet":
        return str(status["updateRevision"]) if status.get("updateRevision") else None
    updated = status.get("updatedNumberScheduled") or 0
    return None if updated >= (status.get("currentNumberScheduled") or 0) else ""


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _count(names: list[str]) -> str:
    others = f" and {len(names) - 1:,} more have" if len(names) > 1 else " has"
    return f"{names[0]}{others}"
