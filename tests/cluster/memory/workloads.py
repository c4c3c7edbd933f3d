"""Workloads and the pods they own, as objects, and a cluster that has them."""

from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.cluster.memory.object_store import MemoryCluster

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}


def make_template(**spec: Any) -> dict[str, Any]:
    spec.setdefault("containers", [{"name": "c", "image": "web:1"}])
    return {"metadata": {"labels": LABELS}, "spec": spec}


def make_workload(
    kind: str, name: str = "web", *, metadata: dict[str, Any] | None = None, **spec: Any
) -> Any:
    group = "batch/v1" if kind == "Job" else "v1" if kind == "ReplicationController" else "apps/v1"
    if kind not in ("Job", "ReplicationController"):
        spec.setdefault("selector", SELECTOR)
    spec.setdefault("template", make_template())
    meta = {"name": name, "namespace": "shop", **(metadata or {})}
    return decode_object({"apiVersion": group, "kind": kind, "metadata": meta, "spec": spec})


def make_owned(
    name: str, kind: str, owner: str, *, metadata: dict[str, Any] | None = None, **fields: Any
) -> Any:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "controller": True}
    meta = {"name": name, "namespace": "shop", "ownerReferences": [reference], **(metadata or {})}
    return decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": meta, **fields})


def make_cluster(*objects: Any) -> MemoryCluster:
    cluster = MemoryCluster()
    for obj in objects:
        cluster.add(obj)
    return cluster
