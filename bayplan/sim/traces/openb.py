"""Openb: the GPU cluster that Alibaba published in 2023 (clusterdata, cluster-trace-gpu-v2023).

A GPU is 1,000 of the resource `bayplan.dev/gpu-milli`. Below 1,000 a pod requests a share of one
GPU, otherwise whole ones. The scheduler alone only sums that up; placing a share on a single GPU is
the task of a plugin (docs/policies.md).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...api.gpus import GPU_MILLI, GPU_MODEL
from ...errors import InputError
from .published import TraceFormat, TraceTable
from .table_rows import Row, read_rows
from .trace_manifests import Manifest, in_values, make_node, make_pod, times

QOS = "bayplan.dev/qos"
MANY_PODS = "1001"
"""Pods that a node takes in the FGD paper's experiments: never the limit of a node."""

NODES = TraceTable("openb_node_list_gpu_node", "sn,cpu_milli,memory_mib,gpu,model", "nodes")
PODS = TraceTable(
    "openb_pod_list_default",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"
    "creation_time,deletion_time,scheduled_time",
    "pods, or a variant",
    # The tables multigpu20 to multigpu50 contain only these.
    needed=("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
)
NODE_FILE, POD_FILE = f"{NODES.name}.csv", f"{PODS.name}.csv"
FORMAT = TraceFormat(
    "openb",
    "a GPU cluster with 1,213 nodes and 6,212 GPUs, 2023",
    "alibaba/clusterdata, cluster-trace-gpu-v2023/README.md",
    (NODES, PODS),
)


@dataclass(frozen=True)
class OpenbTrace:
    """The two tables of the trace."""

    nodes_file: Path
    pods_file: Path

    def objects(
        self, demand: float | None = None, seed: int = 0, shuffled: bool = False
    ) -> Iterator[Manifest]:
        """Yield the manifests: nodes, then pods.

        Without `demand` pods start and end at their own times. With it all pods start at once in
        random order: sampled with repetition until they request this share of the GPUs (1.3: 130
        %). With `shuffled` every pod comes once before any comes again, names of nodes begin with a random number, and
        a node takes any number of pods: the experiments of the FGD paper (research/fgd).
        """
        if shuffled:
            yield from self._shuffled(1.0 if demand is None else demand, random.Random(seed))
            return
        gpus = 0
        for row in read_rows(self.nodes_file, NODES.columns):
            gpus += row.number("gpu")
            yield _node(row)
        pods = list(read_rows(self.pods_file, PODS.needed))
        if demand is None:
            for row in pods:
                yield _pod(row, row.text("name"), _times(row))
            return
        yield from _drawn(self.pods_file, pods, round(gpus * 1000 * demand), seed)

    def _shuffled(self, demand: float, draw: random.Random) -> Iterator[Manifest]:
        nodes = list(read_rows(self.nodes_file, NODES.columns))
        places = list(range(len(nodes)))
        draw.shuffle(places)
        for place, row in zip(places, nodes, strict=True):
            yield _node(row, f"{place:04}-{row.text('sn')}", MANY_PODS)
        pods = list(read_rows(self.pods_file, PODS.needed))
        wanted = demand * sum(1000 * row.number("gpu") for row in nodes)
        _check_gpus(self.pods_file, pods)
        asked = 0
        for number, row in enumerate(_in_random_order(pods, draw)):
            asked += _gpu_milli(row)
            if asked > wanted:
                return
            yield _pod(row, f"{row.text('name')}-{number}", {})


def find_openb(folder: Path, nodes: Path | None = None, pods: Path | None = None) -> OpenbTrace:
    """The trace in `folder`, unless the files are named; raises InputError when one is missing."""
    trace = OpenbTrace(nodes or folder / NODE_FILE, pods or folder / POD_FILE)
    for file in (trace.nodes_file, trace.pods_file):
        if not file.is_file():
            raise InputError(
                f"{file}: expected a file of the openb trace; got nothing of that name"
            )
    return trace


def _drawn(file: Path, pods: list[Row], wanted: int, seed: int) -> Iterator[Manifest]:
    """Yield pods sampled with repetition until they request `wanted` thousandths of a GPU."""
    if wanted:
        _check_gpus(file, pods)
    lots, asked, number = random.Random(seed), 0, 0
    while asked < wanted:
        row = lots.choice(pods)
        asked += _gpu_milli(row)
        yield _pod(row, f"{row.text('name')}-{number}", {})
        number += 1


def _check_gpus(file: Path, pods: list[Row]) -> None:
    if not any(map(_gpu_milli, pods)):
        raise InputError(f"{file}: expected pods that ask for GPUs; got none")


def _in_random_order(pods: list[Row], draw: random.Random) -> Iterator[Row]:
    """All pods, then pods drawn with repetition, without an end."""
    order = list(pods)
    draw.shuffle(order)
    yield from order
    while True:
        yield draw.choice(pods)


def _gpu_milli(row: Row) -> int:
    return row.number("num_gpu") * row.number("gpu_milli")


def _node(row: Row, name: str = "", pods: str = "") -> Manifest:
    gpus = row.number("gpu")
    resources = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    if gpus:
        resources[GPU_MILLI] = str(gpus * 1000)
    if pods:
        resources["pods"] = pods
    labels = {GPU_MODEL: row.text("model")} if gpus else {}
    return make_node(name or row.text("sn"), resources, labels)


def _times(row: Row) -> dict[str, str]:
    """Time when the pod is created, and how long it runs once it has a node.

    One that never got a node in the real cluster counts as having wanted it until its deletion.
    """
    came, went = row.seconds("creation_time"), row.seconds("deletion_time")
    began = row.seconds("scheduled_time")
    start = began if began is not None else came or 0.0
    return times(came, None if went is None else went - start)


def _pod(row: Row, name: str, annotations: dict[str, str]) -> Manifest:
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
    if gpu_milli := _gpu_milli(row):
        requests[GPU_MILLI] = str(gpu_milli)
    models = [model for model in row.text("gpu_spec").split("|") if model]
    return make_pod(
        name,
        requests,
        annotations=annotations,
        labels={QOS: row.text("qos")} if row.text("qos") else None,
        on=[in_values(GPU_MODEL, models)] if models else (),
    )
