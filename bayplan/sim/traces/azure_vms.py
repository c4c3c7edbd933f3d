"""Azure VMs: the virtual machines of 2017 and 2019 (AzurePublicDataset V1 and V2, the file vmtable.csv).

Schema: AzurePublicDatasetV1.md and V2.md of Azure/AzurePublicDataset, and the columns in its analysis notebooks. The
file has no line of column names. Cores are numbers, memory is GB, times are seconds from the beginning. V2 has buckets
instead of amounts: a bucket without an upper bound counts as in the notebook, more than 24 cores as 30 and more than 64
GB as 70. The trace lists no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .published import PublishedTrace, TraceFormat, TraceTable
from .shapes import NodeShape, parse_shape, shaped_nodes
from .table_rows import Row
from .trace_manifests import TRACE_NAME, Manifest, make_pod, mebibytes, milli_cpu, times

CATEGORY = "bayplan.dev/vm-category"
SHAPES = ("cpu=64,memory=512Gi",)
"""Nodes unless others are given; the trace does not describe its nodes."""
OPEN_BUCKETS = {">24": 30.0, ">64": 70.0}

VMS = TraceTable(
    "vmtable",
    "vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,avgcpu,p95maxcpu,vmcategory,"
    "vmcorecount,vmmemory",
    "virtual machines",
)
FORMAT = TraceFormat(
    "azure-vms",
    "virtual machines of 2017 (V1) and 2019 (V2)",
    "Azure/AzurePublicDataset, AzurePublicDatasetV1.md and AzurePublicDatasetV2.md",
    (VMS,),
)


@dataclass(kw_only=True)
class AzureVms(PublishedTrace):
    """The table of virtual machines, each a pod, on nodes of the given shapes."""

    file: Path
    shapes: tuple[NodeShape, ...] = tuple(map(parse_shape, SHAPES))

    def nodes(self) -> Iterator[Manifest]:
        return shaped_nodes(self.shapes, self.pods())

    def all_pods(self) -> Iterator[Manifest]:
        return map(_pod, VMS.rows(self.file))


def _pod(row: Row) -> Manifest:
    created_s, deleted_s = row.amount("vmcreated") or 0.0, row.amount("vmdeleted")
    category = row.text("vmcategory")
    return make_pod(
        f"vm-{row.line}",
        {
            "cpu": milli_cpu(_bucket(row, "vmcorecount")),
            "memory": mebibytes(_bucket(row, "vmmemory")),
        },
        annotations={
            TRACE_NAME: row.text("vmid"),
            **times(created_s, None if deleted_s is None else deleted_s - created_s),
        },
        labels={CATEGORY: category} if category else None,
    )


def _bucket(row: Row, column: str) -> float:
    return OPEN_BUCKETS.get(row.text(column)) or row.amount(column) or 0.0
