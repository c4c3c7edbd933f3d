"""Refusals: pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ...api.meta import KubeObject, controller_of
from ...api.workloads import DaemonSet, Job
from ..objects.object_index import ControllerCluster
from . import daemons, jobs
from .pod_index import OwnedPods, OwnerKey

WITH_CONDITION = ("ReplicaSet", "ReplicationController")
"""Kinds with a condition about pods that cannot be created."""
PodsOf = Callable[[KubeObject], OwnedPods]
"""The pods of a workload."""


class AdmissionRefusal(msgspec.Struct, frozen=True):
    """Refused pods of a workload, or a refused object, and the reason.

    `count` is the number of pods or claims; 0 where the object itself, or a change of it, was refused.
    """

    kind: str
    namespace: str
    name: str
    count: int
    message: str

    def __str__(self) -> str:
        what = f"{self.count} pod{'' if self.count == 1 else 's'} of "
        if not self.count or self.kind in ("Pod", "PersistentVolumeClaim"):
            what = ""
        return f"{what}{self.kind.lower()} {self.namespace}/{self.name}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return msgspec.structs.asdict(self)


class RefusedWorkloads:
    """The workloads whose last pod was refused, with the message."""

    def __init__(self) -> None:
        self._messages: dict[OwnerKey, str] = {}

    def note(self, key: OwnerKey, message: str) -> None:
        """Add a workload. As in the condition of a replica set, its first message stays until it has its pods."""
        if key[0] in WITH_CONDITION:
            self._messages.setdefault(key, message)
        else:
            self._messages[key] = message

    def clear(self, key: OwnerKey) -> None:
        """Remove a workload: it has all of its pods."""
        self._messages.pop(key, None)

    def within(self, namespace: str) -> list[OwnerKey]:
        """The workloads of a namespace, to be tried again when something changes there."""
        return [key for key in self._messages if key[1] == namespace]

    def listed(self, cluster: ControllerCluster, pods_of: PodsOf) -> Iterator[AdmissionRefusal]:
        """The workloads that lack pods; those of a replica set are named after its Deployment."""
        for key, message in self._messages.items():
            workload = cluster.get(*key)
            if workload is None:
                continue
            count = count_missing(workload, cluster, pods_of)
            owner, kind, name = controller_of(workload.owner_references), key[0], key[2]
            if owner is not None and owner.kind == "Deployment":
                kind, name = owner.kind, owner.name
            if count > 0:
                yield AdmissionRefusal(kind, workload.namespace, name, count, message)


def count_missing(workload: KubeObject, cluster: ControllerCluster, pods_of: PodsOf) -> int:
    """The number of missing pods of the workload."""
    owned = pods_of(workload)
    match workload:
        case Job():
            plan = jobs.plan_job(workload, owned)
            return plan.missing + len(plan.missing_indexes)
        case DaemonSet():
            return daemons.count_wanted(workload, cluster.list("Node")) - len(list(owned))
    replicas: int = getattr(workload, "replicas", 0)
    return replicas - len(owned.active)
