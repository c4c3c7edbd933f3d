"""Cluster: the objects of a cluster and its workload, from files, plain data or a live cluster."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ..api.custom import CustomResource
from ..api.meta import KubeObject
from ..api.node import Node
from ..api.pod import Pod
from ..api.wire.decode import UnknownObject, iter_objects
from ..api.wire.sourced import is_keeping_sources, keeping_sources
from ..api.workload_kinds import reading_workloads
from ..choices import expect, several
from ..config.releases import recorded_version
from ..errors import InputError
from ..kube.live_cluster import read_live
from ..manifests.decoder import Found
from ..manifests.field_check import unknown_in_part
from ..manifests.input_bytes import limited_input
from ..manifests.loader import Manifests
from ..manifests.timeline import InputObject, Timeline
from ..manifests.workload_documents import read_workload_kinds
from ..planning import InstanceTable, NodePool, read_instance_table, read_pools
from ..scheduler import PluginSource
from ..sim import manifests_of, read_manifests
from ..sim.html_summary import chosen, html_of, make_frame, pod_columns, zone_of
from ..sim.settings import Settings, reading_for

Tree: TypeAlias = Mapping[str, Any]
PluginLike: TypeAlias = PluginSource | Path


class Cluster(msgspec.Struct, frozen=True):
    """Nodes, pods and other objects that affect placement. Questions never modify it."""

    objects: tuple[InputObject, ...] = ()
    place_of: Callable[[InputObject], str] = lambda obj: ""
    """The source of each object, for errors."""
    left_out: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Number of objects per kind that does not affect scheduling."""
    remarks: tuple[str, ...] = ()
    """Problems of the input: fields that do not exist, objects that kube-apiserver refuses."""
    version: str = ""
    """The version of Kubernetes that the cluster has, or that a snapshot records; empty if unknown."""

    @classmethod
    def read(
        cls,
        *paths: str | Path,
        whole: bool = False,
        plugins: Iterable[PluginLike] = (),
        strict: bool = True,
        max_input_size: int | str | None = None,
        workload_kinds: Iterable[str | Path] = (),
    ) -> Cluster:
        """Read files and folders: manifests, dumps of `kubectl get -o yaml` or `bayplan snapshot`.

        Fields that do not exist and objects that kube-apiserver refuses are an InputError; without `strict` they are
        Python warnings, and `remarks` of the cluster. `workload_kinds` are files with custom kinds that make pods.

        With `whole`, pods and nodes keep the fields that do not affect placement, for extenders and for plugins that
        call `handle.whole`. Objects of custom resources are kept for the `plugins` that read them.

        A file may have `max_input_size` bytes, unpacked, such as "8Gi"; by default a plain file any number, a gzip file
        32 MiB or a hundred times its size.
        """
        for path in paths:
            expect("Cluster.read", "paths", path, (str, Path), "files or folders")
        kinds = read_workload_kinds(workload_kinds)
        with (
            _reading(whole, plugins),
            reading_workloads(kinds),
            limited_input(max_input_size, "max_input_size"),
        ):
            manifests = read_manifests([Path(path) for path in paths])
        remarks = manifests.remarks
        _warn(remarks, strict)
        _warn(manifests.notes, strict=False)
        return cls(
            tuple(manifests.objects),
            manifests.place_of,
            manifests.unused,
            tuple(remarks),
            recorded_version(manifests.objects),
        )

    @classmethod
    def live(
        cls,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        *,
        whole: bool = False,
        plugins: Iterable[PluginLike] = (),
    ) -> Cluster:
        """Read a live cluster once, without writing. Without a kubeconfig: that of kubectl.

        `whole` and `plugins` are as in `read`. Raises InputError when there is none, ApiError when the server refuses.
        """
        with _reading(whole, plugins):
            live = read_live(kubeconfig, context)
        manifests = manifests_of(live.objects, live.server)
        return cls(tuple(manifests.objects), manifests.place_of, version=live.version)

    @classmethod
    def of(
        cls,
        *objects: Tree | InputObject,
        whole: bool = False,
        plugins: Iterable[PluginLike] = (),
        strict: bool = True,
    ) -> Cluster:
        """Build a cluster from Kubernetes objects as dictionaries; lists are expanded.

        `whole`, `plugins` and `strict` are as in `read`.
        """
        found: list[Any] = []
        remarks: list[str] = []
        kinds = (Mapping, Pod, Node, KubeObject, Timeline, UnknownObject)
        for obj in objects:
            expect("Cluster.of", "objects", obj, kinds, "objects, as dicts in Kubernetes' form")
        with _reading(whole, plugins):
            for i, obj in enumerate(objects):
                found += iter_objects(dict(obj)) if isinstance(obj, Mapping) else [obj]
                if isinstance(obj, Mapping):
                    remarks += unknown_in_part(obj, f"objects[{i}]")
        _warn(remarks, strict)
        given = Manifests()
        for obj in found:
            given.add("objects", Found(obj, 0, -1, 0))
        given.drive_autoscalers()
        _warn(given.notes, strict=False)
        return cls(tuple(given.objects), left_out=given.unused, remarks=tuple(remarks))

    def check_custom(self, resources: Iterable[CustomResource]) -> None:
        """Raise InputError when objects were left out that a plugin reads."""
        for resource in resources:
            group = resource.name.split(".", 2)[2]
            count = sum(
                self.left_out.get(n, 0) for n in (resource.kind, f"{resource.kind}.{group}")
            )
            if count:
                raise InputError(
                    f"cluster: {count} of {resource.name} left out, which a plugin reads: "
                    "expected the cluster to be made with plugins=[...], as in Cluster.read"
                )

    def __add__(self, other: Cluster) -> Cluster:
        """The objects of both."""
        if not isinstance(other, Cluster):
            return NotImplemented

        def place_of(obj: InputObject) -> str:
            return self.place_of(obj) or other.place_of(obj)

        left_out = Counter(self.left_out) + Counter(other.left_out)
        remarks = (*self.remarks, *other.remarks)
        return Cluster((*self.objects, *other.objects), place_of, left_out, remarks)

    def __len__(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        counts = Counter(obj.kind for obj in self.objects)
        parts = [f"{count} {kind}" for kind, count in counts.items()]
        return f"Cluster({', '.join([*parts, *([self.version] if self.version else [])])})"

    def _repr_html_(self) -> str:
        counts = Counter(obj.kind for obj in self.objects)
        return html_of(repr(self), ({"kind": kind, "objects": n} for kind, n in counts.items()))

    def node_rows(self) -> list[dict[str, Any]]:
        """One row per node: its labels and its allocatable resources, cpu in milli."""
        return [
            {"node": node.name, "zone": zone_of(node), **node.allocatable, **node.labels}
            for node in self._of_kind(Node)
        ]

    def pod_rows(self) -> list[dict[str, Any]]:
        """One row per pod of the input; workloads are expanded only in a simulation."""
        zones = {node.name: zone_of(node) for node in self._of_kind(Node)}
        return [
            {
                "namespace": pod.namespace,
                "pod": pod.name,
                "node": pod.node_name or None,
                "zone": zones.get(pod.node_name),
                "priority": pod.priority,
                **pod_columns(pod),
            }
            for pod in self._of_kind(Pod)
        ]

    def to_frame(self, what: str = "nodes") -> Any:
        """The `nodes` or the `pods` as a pandas DataFrame."""
        return make_frame(chosen(what, {"nodes": self.node_rows, "pods": self.pod_rows}))

    def _of_kind(self, kind: type[Any]) -> Iterable[Any]:
        return (obj for obj in self.objects if isinstance(obj, kind))


@contextmanager
def _reading(whole: bool, plugins: Iterable[PluginLike]) -> Iterator[None]:
    """Decode objects with the fields that plugins read."""
    expected = "plugin classes, or Python files"
    given = several("Cluster", "plugins", plugins, (type, str, Path), expected)
    sources = tuple(str(one) if isinstance(one, Path) else one for one in given)
    with reading_for(Settings(plugins=sources)), keeping_sources(whole or is_keeping_sources()):
        yield


def _warn(remarks: Sequence[str], strict: bool) -> None:
    """Issue the faults of the input as Python warnings about the caller of `Cluster`, or raise them."""
    if remarks and strict:
        raise InputError("\n".join(remarks))
    for remark in remarks:
        warnings.warn(remark, stacklevel=3)


PoolSource: TypeAlias = NodePool | str | Path


def pools_of(
    function: str,
    cluster: Cluster,
    pools: PoolSource | Iterable[PoolSource],
    instance_types: str | Path | None,
) -> list[NodePool]:
    """The pools; raises InputError, which names the function, if there are none."""
    table = read_instance_table(instance_types) if instance_types is not None else InstanceTable()
    listed = [pools] if isinstance(pools, NodePool | str | Path) else list(pools)
    found = [one for one in listed if isinstance(one, NodePool)]
    files = [one for one in listed if not isinstance(one, NodePool)]
    if files:
        found += read_pools(files, table, cluster.objects).pools
    if not found:
        raise InputError(f"{function}: expected at least one pool; got none")
    return found
