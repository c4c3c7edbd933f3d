"""Alibaba 2025: inference of recommendation models on CPU and GPU nodes (clusterdata, cluster-trace-gpu-v2025).

Schema: cluster-trace-gpu-v2025/README.md of alibaba/clusterdata. Cores and GPUs are whole numbers, memory and disk GiB,
the share of an RDMA card is percent, times are seconds from the beginning; an empty time is before it or after the end.
The trace lists no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...api.gpus import GPU_MILLI
from .published import PublishedTrace, TraceFormat, TraceTable
from .shapes import NodeShape, parse_shape, shaped_nodes
from .table_rows import Row
from .trace_manifests import (
    HOSTNAME,
    TRACE_NAME,
    Manifest,
    at_most,
    in_values,
    make_pod,
    mebibytes,
    milli_cpu,
    times,
)

APP = "bayplan.dev/app"
ROLE = "bayplan.dev/role"
RDMA_PERCENT = "bayplan.dev/rdma-percent"
SHAPES = (
    f"cpu=192,memory=1Ti,ephemeral-storage=8Ti,{RDMA_PERCENT}=400,label:{ROLE}=CN",
    f"cpu=192,memory=1Ti,ephemeral-storage=8Ti,{RDMA_PERCENT}=400,{GPU_MILLI}=8000,label:{ROLE}=HN",
)
"""Nodes for the two roles, unless others are given; the trace does not describe its nodes."""

INSTANCES = TraceTable(
    "disaggregated_DLRM_trace",
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,"
    "rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,"
    "creation_time,scheduled_time,deletion_time",
    "instances of inference services",
)
FORMAT = TraceFormat(
    "alibaba-2025",
    "inference of recommendation models on CPU and GPU nodes, 2025",
    "alibaba/clusterdata, cluster-trace-gpu-v2025/README.md",
    (INSTANCES,),
)


@dataclass(kw_only=True)
class Alibaba2025(PublishedTrace):
    """The table of instances, on nodes of the given shapes.

    An instance runs on a node with the label of its role. The trace's limit, the instances of an application per
    node, is a topology spread constraint.
    """

    file: Path
    shapes: tuple[NodeShape, ...] = tuple(map(parse_shape, SHAPES))

    def nodes(self) -> Iterator[Manifest]:
        return shaped_nodes(self.shapes, self.pods())

    def all_pods(self) -> Iterator[Manifest]:
        return map(_pod, INSTANCES.rows(self.file))


def _pod(row: Row) -> Manifest:
    created_s, deleted_s = row.amount("creation_time"), row.amount("deletion_time")
    start_s = row.amount("scheduled_time") or created_s or 0.0
    labels = {APP: row.needed("app_name")}
    limit = row.signed("max_instance_per_node")
    return make_pod(
        row.needed("instance_sn").replace("_", "-"),
        _requests(row),
        annotations={
            TRACE_NAME: row.text("instance_sn"),
            **times(created_s, None if deleted_s is None else deleted_s - start_s),
        },
        labels=labels,
        on=[in_values(ROLE, [row.needed("role")])],
        spread=[at_most(int(limit), HOSTNAME, labels)] if limit is not None and limit > 0 else (),
    )


def _requests(row: Row) -> dict[str, str]:
    amounts = {
        "cpu": milli_cpu(row.amount("cpu_request") or 0),
        "memory": mebibytes(row.amount("memory_request") or 0),
        "ephemeral-storage": mebibytes(row.amount("disk_request") or 0),
    }
    if gpus := row.amount("gpu_request"):
        amounts[GPU_MILLI] = str(round(gpus * 1000))
    if percent := row.amount("rdma_request"):
        amounts[RDMA_PERCENT] = str(round(percent))
    return amounts
