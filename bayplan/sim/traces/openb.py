"""Openb: the GPU cluster that Alibaba published in 2023 (clusterdata, cluster-trace-gpu-v2023).

A GPU is 1,000 of the resource `bayplan.dev/gpu-milli`. Below 1,000 a pod requests a share of one
GPU, otherwise whole ones. The scheduler alone only sums that up; placing a share on a single GPU is
the task of a plugin (examples/gpu-share).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...api.durations import format_duration
from ...api.gpus import GPU_MILLI, GPU_MODEL
from ...cluster.memory import DURATION
from ...errors import InputError
from ..timeline import CREATED_AT
from .rows import Row, read_rows

QOS = "bayplan.dev/qos"
HOSTNAME = "kubernetes.io/hostname"
MAX_PODS = 110
"""Pod limit of a node, the kubelet's default; the trace does not state it."""

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
NODE_FILE = "openb_node_list_gpu_node.csv"
POD_FILE = "openb_pod_list_default.csv"


@dataclass(frozen=True)
class OpenbTrace:
    """The two tables of the trace."""

    nodes_file: Path
    pods_file: Path

    def objects(self, demand: float | None = None, seed: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the manifests: nodes, then pods.

        Without `demand` pods start and end at their own times. With it all pods start at once in
        random order: sampled with repetition until they request this share of the GPUs (1.3: 130
        %).
        """
        gpus = 0
        for row in read_rows(self.nodes_file, NODE_COLUMNS):
            gpus += row.number("gpu")
            yield _node(row)
        pods = list(read_rows(self.pods_file, POD_COLUMNS))
        if demand is None:
            for row in pods:
                yield _pod(row, row.text("name"), _times(row))
            return
        yield from _drawn(self.pods_file, pods, round(gpus * 1000 * demand), seed)


def find_openb(folder: Path, nodes: Path | None = None, pods: Path | None = None) -> OpenbTrace:
    """The trace in `folder`, unless the files are named; raises InputError when one is missing."""
    trace = OpenbTrace(nodes or folder / NODE_FILE, pods or folder / POD_FILE)
    for file in (trace.nodes_file, trace.pods_file):
        if not file.is_file():
            raise InputError(
                f"{file}: expected a file of the openb trace; got nothing of that name"
            )
    return trace


def _drawn(file: Path, pods: list[Row], wanted: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield pods sampled with repetition until they request `wanted` thousandths of a GPU."""
    if wanted and not any(map(_gpu_milli, pods)):
        raise InputError(f"{file}: expected pods that ask for GPUs; got none")
    lots, asked, number = random.Random(seed), 0, 0
    while asked < wanted:
        row = lots.choice(pods)
        asked += _gpu_milli(row)
        yield _pod(row, f"{row.text('name')}-{number}", {})
        number += 1


def _gpu_milli(row: Row) -> int:
    return row.number("num_gpu") * row.number("gpu_milli")


def _node(row: Row) -> dict[str, Any]:
    name, gpus = row.text("sn"), row.number("gpu")
    labels = {HOSTNAME: name}
    resources = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
        "pods": str(MAX_PODS),
    }
    if gpus:
        labels[GPU_MODEL] = row.text("model")
        resources[GPU_MILLI] = str(gpus * 1000)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _times(row: Row) -> dict[str, str]:
    """When the pod is created, and how long it runs once it has a node.

    One that never got a node in the real cluster counts as having wanted it until its deletion.
    """
    came, went = row.seconds("creation_time"), row.seconds("deletion_time")
    began = row.seconds("scheduled_time")
    times = {}
    if came:
        times[CREATED_AT] = format_duration(came)
    if went is not None:
        start = began if began is not None else came or 0.0
        times[DURATION] = format_duration(max(went - start, 1.0))
    return times


def _pod(row: Row, name: str, annotations: dict[str, str]) -> dict[str, Any]:
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    gpu_milli = _gpu_milli(row)
    if gpu_milli:
        requests[GPU_MILLI] = str(gpu_milli)
    container = {"name": "main", "resources": {"requests": requests}}
    if gpu_milli:  # an extended resource is never overcommitted
        container["resources"]["limits"] = {GPU_MILLI: str(gpu_milli)}  # type: ignore[index]
    spec: dict[str, Any] = {"containers": [container]}
    models = [model for model in row.text("gpu_spec").split("|") if model]
    if models:
        spec["affinity"] = _on_models(models)
    metadata: dict[str, Any] = {"name": name, "labels": {QOS: row.text("qos")}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _on_models(models: list[str]) -> dict[str, Any]:
    """The affinity for nodes with certain GPU models."""
    term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
