"""Ended pods: pods that have ended are removed from the cluster, and nothing of them is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...api.pod import Pod
from ...api.workloads import Job
from ...cluster.memory import MemoryCluster


class LeavingPods:
    """Removes finished pods, and jobs whose last pod has finished (`remove_job`). Watches the cluster.

    To the scheduler a finished pod is gone already, and its controller has counted it.
    """

    def __init__(self, cluster: MemoryCluster, remove_job: Callable[[Pod], None]) -> None:
        self._cluster = cluster
        self._remove_job = remove_job
        self._finished: list[Pod] = []
        self._deleted: list[Pod | Job] = []

    def on_add(self, obj: Any) -> None:
        """Nothing to do."""

    def on_update(self, old: Any, new: Any) -> None:
        """Record a pod that finished."""
        if isinstance(new, Pod) and new.is_finished and not old.is_finished:
            self._finished.append(new)

    def on_delete(self, obj: Any) -> None:
        """Record a pod or a job that went."""
        if isinstance(obj, Pod | Job):
            self._deleted.append(obj)

    def run(self) -> None:
        """Remove the pods that finished, and forget what went."""
        if self._finished:
            finished, self._finished = self._finished, []
            for pod in finished:
                stored = self._cluster.get("Pod", pod.namespace, pod.name)
                if stored is not None and stored.uid == pod.uid:
                    self._cluster.delete(stored)
                    if pod.controller is not None:
                        self._remove_job(pod)
        if self._deleted:
            deleted, self._deleted = self._deleted, []
            for obj in deleted:
                self._cluster.forget(obj)
            self._cluster.events.clear()
