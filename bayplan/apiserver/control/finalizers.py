"""Finalizers: finalizers of claims in use, of bound volumes, and of pod groups with members.

Mirrors pkg/controller/volume/{pvcprotection,pvprotection} and pkg/controller/scheduling/podgroupprotection.
"""

from __future__ import annotations

from typing import Any

from ...api.pod import Pod
from ...cluster.memory.protection import Protected, is_used
from ..registry.object_registry import ObjectRegistry
from ..registry.server_fields import PROTECTED
from .embedded_cluster import LiveCluster
from .new_objects import resource_named


class ProtectionController:
    """Watches the cluster; `run_once` removes the finalizers of unused objects."""

    def __init__(self, cluster: LiveCluster, registry: ObjectRegistry) -> None:
        self._cluster = cluster
        self._registry = registry
        self._leaving: dict[tuple[str, str, str], None] = {}
        self.has_work = False

    def on_add(self, obj: Any) -> None:
        """Handle an object that may already be terminating."""
        if isinstance(obj, Protected) and obj.is_terminating:
            self._leaving[obj.kind, obj.namespace, obj.name] = None
            self.has_work = True

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a terminating object, or a finished pod."""
        self.on_add(new)
        if isinstance(new, Pod) and new.is_finished and not old.is_finished:
            self.has_work |= bool(self._leaving)

    def on_delete(self, obj: Any) -> None:
        """Handle a deleted pod, which no longer uses its claims and is in no group."""
        self._leaving.pop((obj.kind, obj.namespace, obj.name), None)
        self.has_work |= bool(self._leaving)

    def run_once(self) -> None:
        """Release the unused objects."""
        self.has_work = False
        for key in list(self._leaving):
            obj = self._cluster.get(*key)
            if obj is not None and not is_used(self._cluster, obj):
                self._let_go(obj)

    def _let_go(self, obj: Protected) -> None:
        resource = resource_named(obj.kind)
        record = self._registry.get(resource, obj.namespace, obj.name)
        tree = record.decode()
        finalizers = tree["metadata"].get("finalizers") or []
        others = [f for f in finalizers if f != PROTECTED[resource.storage]]
        if others:
            tree["metadata"]["finalizers"] = others
        else:
            tree["metadata"].pop("finalizers", None)
        self._registry.write(resource, record, tree)
