"""Leaving: pods that have ended are removed from the cluster, and nothing of them is kept."""

from __future__ import annotations

from typing import Any

from ...api.pod import Pod
from ...cluster.memory import MemoryCluster


class LeavingPods:
    """Removes finished pods that no controller counts. Watches the cluster.

    To the scheduler a finished pod is gone already. A pod of a workload stays: its controller counts it.
    """

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._finished: list[Pod] = []
        self._deleted: list[Pod] = []

    def on_add(self, obj: Any) -> None:
        """Nothing to do."""

    def on_update(self, old: Any, new: Any) -> None:
        """Record a pod that finished."""
        if isinstance(new, Pod) and new.is_finished and new.controller is None:
            self._finished.append(new)

    def on_delete(self, obj: Any) -> None:
        """Record a pod that went."""
        if isinstance(obj, Pod) and obj.controller is None:
            self._deleted.append(obj)

    def run(self) -> None:
        """Remove the pods that finished, and forget those that went."""
        if self._finished:
            finished, self._finished = self._finished, []
            for pod in finished:
                stored = self._cluster.get("Pod", pod.namespace, pod.name)
                if stored is not None and stored.uid == pod.uid:
                    self._cluster.delete(stored)
        if self._deleted:
            deleted, self._deleted = self._deleted, []
            for pod in deleted:
                self._cluster.forget(pod)
            self._cluster.events.clear()
