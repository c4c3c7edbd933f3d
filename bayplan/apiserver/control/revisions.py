"""Revisions: the templates that the pods of stateful sets and daemon sets were made from, as ControllerRevisions.

Mirrors pkg/controller/history and its use in pkg/controller/{statefulset,daemon}. They outlive a restart, and
`kubectl rollout history` and `undo` read them.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ...api.pod import Pod
from ...api.workloads import DaemonSet, StatefulSet
from ...cluster.memory.stateful_sets import REVISION_HASH
from ...cluster.objects.object_index import ObjectIndex
from ..registry.object_admission import kind_of
from ..registry.object_registry import DeleteOptions, ObjectRegistry
from ..registry.resource_table import BY_KIND
from ..store.records import Record

Tree = dict[str, Any]
Versioned = StatefulSet | DaemonSet

REVISIONS = BY_KIND["apps", "ControllerRevision"]
HASH = "controller.kubernetes.io/hash"
MOST_KEPT = 10
"""`revisionHistoryLimit`, unless given: revisions besides those that pods have."""


class Revisions:
    """Keeps and finds the revisions of workloads."""

    def __init__(self, registry: ObjectRegistry, mirror: ObjectIndex) -> None:
        self._registry = registry
        self._store = registry.store
        self._mirror = mirror

    def keep(self, workload: Versioned, name: str) -> None:
        """Store the workload's template as the revision of this name; an existing revision becomes the latest again."""
        tree = self._tree_of(workload)
        record = self._store.get(REVISIONS.storage, (workload.namespace, name))
        known = [(found, found.decode()) for found in self._of(workload)]
        last = max((int(other["revision"]) for _, other in known), default=0)
        if record is None:
            made = _revision_tree(workload, tree, name, last + 1)
            self._registry.create(REVISIONS, workload.namespace, made)
            self._prune(workload, tree, known)
        elif int((old := record.decode())["revision"]) < last:
            self._registry.write(REVISIONS, record, {**old, "revision": last + 1})

    def template(self, namespace: str, name: str) -> Tree | None:
        """The template of a revision, as it was stored."""
        record = self._store.get(REVISIONS.storage, (namespace, name)) if name else None
        found: Tree | None = None
        if record is not None:
            found = dict(record.decode()["data"]["spec"]["template"])
            found.pop("$patch", None)
        return found

    def former(self, stateful_set: StatefulSet, newest: str) -> tuple[StatefulSet, str] | None:
        """The set with the template of its current revision, and its name; None if that is the `newest`."""
        tree = self._tree_of(stateful_set)
        name = str((tree.get("status") or {}).get("currentRevision") or newest)
        return None if name == newest else self.as_of(stateful_set, name)

    def as_of(self, stateful_set: StatefulSet, name: str) -> tuple[StatefulSet, str] | None:
        """The set with the template of a revision, and its name; None if the revision was deleted."""
        template = self.template(stateful_set.namespace, name)
        if template is None:
            return None
        tree = self._tree_of(stateful_set)
        kind = kind_of(BY_KIND["apps", "StatefulSet"])
        assert kind is not None, "the kind is decoded"
        data = msgspec.json.encode({**tree, "spec": {**tree["spec"], "template": template}})
        return cast(StatefulSet, kind.build(kind.decoder.decode(data))), name

    def _tree_of(self, workload: Versioned) -> Tree:
        resource = BY_KIND["apps", workload.kind]
        return self._registry.get(resource, workload.namespace, workload.name).decode()

    def _of(self, workload: Versioned) -> list[Record]:
        """The revisions of a workload."""
        owned = self._store.owned_by(workload.uid)
        records = [self._store.get(*place) for place in owned if place[0] == REVISIONS.storage]
        return [record for record in records if record is not None]

    def _prune(self, workload: Versioned, tree: Tree, known: list[tuple[Record, Tree]]) -> None:
        """Delete the oldest revisions that no pod has, down to the limit."""
        status = tree.get("status") or {}
        in_use = {status.get("currentRevision"), status.get("updateRevision")}
        pods: list[Pod] = list(self._mirror.list("Pod", workload.namespace))
        for pod in pods:
            if pod.controller is not None and pod.controller.uid == workload.uid:
                in_use.add(pod.labels.get(REVISION_HASH))
        idle = [
            (int(old["revision"]), record)
            for record, old in known
            if not {record.key[1], old["metadata"]["labels"].get(HASH)} & in_use
        ]
        limit = tree["spec"].get("revisionHistoryLimit")
        most = MOST_KEPT if limit is None else limit
        for _, record in sorted(idle, key=lambda entry: entry[0])[: max(len(idle) - most, 0)]:
            self._registry.delete(REVISIONS, *record.key, DeleteOptions())


def _revision_tree(workload: Versioned, tree: Tree, name: str, revision: int) -> Tree:
    template = tree["spec"]["template"]
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    owner = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": workload.name,
        "uid": workload.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": workload.namespace,
            "labels": {**labels, HASH: name.removeprefix(f"{workload.name}-")},
            "ownerReferences": [owner],
        },
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": revision,
    }
