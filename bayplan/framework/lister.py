"""Lister: how plugins read the objects of the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ..api.pod import Pod
from ..api.pod_groups import PodGroup, pod_group_of


class Lister(Protocol):
    """The objects of the cluster that are not nodes or pods, by kind: `Service`, `ReplicaSet`, ...; by default none."""

    @property
    def version(self) -> int:
        """Changes whenever an object does."""
        return 0

    def version_of(self, *kinds: str) -> int:
        """Changes whenever an object of one of `kinds` does."""
        return 0

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""
        return ()

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""
        return None


def group_of(pod: Pod, lister: Lister) -> PodGroup | None:
    """The PodGroup of the pod; None if it has no group, or its group is not there."""
    name = pod_group_of(pod)
    return None if name is None else lister.get("PodGroup", pod.namespace, name)
