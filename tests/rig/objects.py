"""Objects: decoded, owned and stored ones, with the types that tests rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from bayplan.api.meta import KubeObject, OwnerReference
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.cluster.objects.object_index import ClusterObject

Stored = TypeVar("Stored", bound=ClusterObject)


class ReadableCluster(Protocol):
    def get(self, kind: str, namespace: str, name: str) -> object:
        """One object, or None."""


def stored(
    cluster: ReadableCluster, kind: type[Stored], name: str, namespace: str = "default"
) -> Stored:
    """The object of that name in the cluster, which must have it; cluster-scoped kinds have the namespace ""."""
    found = cluster.get(kind.__name__, namespace, name)
    assert isinstance(found, kind), f"the cluster has no {kind.__name__} {namespace}/{name}"
    return found


def decoded(tree: Mapping[str, Any]) -> ClusterObject:
    """The object of a manifest."""
    found = decode_object(tree)
    assert isinstance(found, Pod | Node | KubeObject), "decode makes objects of the cluster"
    return found


def owned(pod: Pod, name: str = "web", kind: str = "ReplicaSet") -> Pod:
    """The pod with a controller of that kind and name."""
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=name, controller=True)
    return pod.replace(owner_references=(owner,))
