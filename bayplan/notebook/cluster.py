"""Cluster: the objects of a cluster and its workload, from files, plain data or a live cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..api.decode import UnknownObject, iter_objects
from ..api.node import Node
from ..api.pod import Pod
from ..api.sourced import keeping_sources
from ..cluster.live import read_live
from ..sim import manifests_of, read_manifests
from ..sim.frames import make_frame
from ..sim.world import InputObject

Tree: TypeAlias = Mapping[str, Any]


def _nowhere(obj: InputObject) -> str:
    return ""


@dataclass(frozen=True)
class Cluster:
    """Nodes, pods and other objects that affect placement. Questions never modify it."""

    objects: tuple[InputObject, ...] = ()
    place_of: Callable[[InputObject], str] = _nowhere
    """The source of each object, for errors."""

    @classmethod
    def read(cls, *paths: str | Path, whole: bool = False) -> Cluster:
        """Read files and folders: manifests, dumps of `kubectl get -o yaml` or `bayplan snapshot`.

        With `whole`, pods and nodes keep the fields that do not affect placement, for extenders and for plugins that
        call `handle.whole`.
        """
        with keeping_sources(whole):
            manifests = read_manifests([Path(path) for path in paths])
        return cls(tuple(manifests.objects), manifests.place_of)

    @classmethod
    def live(
        cls,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        *,
        whole: bool = False,
    ) -> Cluster:
        """Read a live cluster once, without writing. Without a kubeconfig: that of kubectl. `whole` is as in `read`.

        Raises InputError when there is none, ApiError when the server refuses.
        """
        with keeping_sources(whole):
            live = read_live(kubeconfig, context)
        manifests = manifests_of(live.objects, live.server)
        return cls(tuple(manifests.objects), manifests.place_of)

    @classmethod
    def of(cls, *objects: Tree | InputObject, whole: bool = False) -> Cluster:
        """Build a cluster from Kubernetes objects as dictionaries; lists are expanded. `whole` is as in `read`."""
        found: list[Any] = []
        with keeping_sources(whole):
            for obj in objects:
                if isinstance(obj, Mapping):
                    found += (
                        o for o in iter_objects(dict(obj)) if not isinstance(o, UnknownObject)
                    )
                else:
                    found.append(obj)
        return cls(tuple(found))

    def __add__(self, other: Cluster) -> Cluster:
        """The objects of both."""

        def place_of(obj: InputObject) -> str:
            return self.place_of(obj) or other.place_of(obj)

        return Cluster((*self.objects, *other.objects), place_of)

    def __len__(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        counts = Counter(obj.kind for obj in self.objects)
        return f"Cluster({', '.join(f'{count} {kind}' for kind, count in counts.items())})"

    def node_rows(self) -> list[dict[str, Any]]:
        """One row per node: its labels and its allocatable resources, cpu in milli."""
        return [
            {"node": node.name, **node.allocatable, **node.labels} for node in self._of_kind(Node)
        ]

    def pod_rows(self) -> list[dict[str, Any]]:
        """One row per pod of the input; workloads are expanded only in a simulation."""
        return [
            {
                "namespace": pod.namespace,
                "pod": pod.name,
                "node": pod.node_name or None,
                "priority": pod.priority,
                **pod.requests,
            }
            for pod in self._of_kind(Pod)
        ]

    def to_frame(self, what: str = "nodes") -> Any:
        """The `nodes` or the `pods` as a pandas DataFrame."""
        return make_frame(self.pod_rows() if what == "pods" else self.node_rows())

    def _of_kind(self, kind: type[Any]) -> Iterable[Any]:
        return (obj for obj in self.objects if isinstance(obj, kind))
