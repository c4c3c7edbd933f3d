"""The default experiment of "Beware of Fragmentation" (ATC'23): one policy fills the openb cluster with one workload.

The pods of the trace arrive in random order, then more of them, drawn with repetition, until they ask for 130 % of
the GPUs. Pods only arrive; one that does not fit is not tried again. Of equally good nodes, the first in a random order
wins, which is the same for the whole run. The seed determines all of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bayplan.amounts.fragmentation import typical_tasks
from bayplan.api.decode import decode_object
from bayplan.api.gpus import GPU_MILLI
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.config import SchedulerConfiguration, load_config
from bayplan.scheduler import FirstByName
from bayplan.sim import Simulation
from bayplan.sim.traces import find_openb

FOLDER = Path(__file__).resolve().parent
DEMAND = 1.3
MAX_PODS = "1001"
"""Pods that a node takes, as in the published experiment: this is never what a node lacks."""
FIRST_SEED = 42

POLICIES = {
    "FGD": "fgd",
    "BestFit": "best-fit",
    "Packing": "packing",
    "Clustering": "clustering",
    "DotProd": "dot-product",
    "Random": "random",
}
"""The policies by their names in the paper, with their files."""


class Trace(NamedTuple):
    """The nodes and pods of the trace, pods without their times."""

    nodes: list[Node]
    pods: list[Pod]
    tasks: list[dict[str, Any]]
    """The typical tasks, as arguments of FGD."""


class Arrival(NamedTuple):
    """After one pod: the demand that has arrived, and what is allocated, as parts of all GPUs."""

    arrived: float
    allocated: float


def read_trace(folder: Path) -> Trace:
    """The trace in `folder`; raises InputError when a file is missing."""
    nodes, pods = [], []
    for manifest in find_openb(folder).objects():
        if manifest["kind"] == "Node":
            manifest["status"]["allocatable"]["pods"] = MAX_PODS
            nodes.append(_decoded(Node, manifest))
        else:
            manifest["metadata"].pop("annotations", None)
            pods.append(_decoded(Pod, manifest))
    tasks = [
        {"milliCpu": task.milli_cpu, "gpuMilli": task.gpu_milli, "models": sorted(task.models)}
        | {"weight": task.weight}
        for task in typical_tasks(pods)
    ]
    return Trace(nodes, pods, tasks)


def run(trace: Trace, policy: str, seed: int) -> list[Arrival]:
    """Fill the cluster by `policy`; an entry per pod, in the order of arrival."""
    draw = random.Random(seed)
    nodes, pods = list(_nodes(trace, draw)), list(_pods(trace, draw))
    simulation = Simulation(
        [*nodes, *pods], read_config(policy, trace), seed=seed, ties=FirstByName()
    )
    report = simulation.run()
    placed = {result.pod.name for result in report.placed}
    return list(_course(nodes, pods, placed))


def read_config(policy: str, trace: Trace) -> SchedulerConfiguration:
    """The configuration of a policy; FGD is told the typical tasks of the trace."""
    config = load_config(FOLDER / "policies" / f"{POLICIES[policy]}.yaml")
    if policy != "FGD":
        return config
    profile = config.profiles[0]
    args = {**profile.plugin_config, "FGD": {"tasks": trace.tasks}}
    changed = msgspec.structs.replace(profile, plugin_config=args)
    return msgspec.structs.replace(config, profiles=(changed,))


def _nodes(trace: Trace, draw: random.Random) -> Iterator[Node]:
    """The nodes, with names that put them into a random order."""
    places = list(range(len(trace.nodes)))
    draw.shuffle(places)
    for place, node in zip(places, trace.nodes, strict=True):
        yield node.replace(name=f"{place:04}-{node.name}")


def _pods(trace: Trace, draw: random.Random) -> Iterator[Pod]:
    """All pods in random order, then more of them until the demand is reached."""
    pods = trace.pods
    wanted = DEMAND * sum(node.allocatable.get(GPU_MILLI, 0) for node in trace.nodes)
    asked = sum(pod.requests.get(GPU_MILLI, 0) for pod in pods)
    order = list(pods)
    draw.shuffle(order)
    while True:
        pod = draw.choice(pods)
        asked += pod.requests.get(GPU_MILLI, 0)
        if asked > wanted:
            break
        order.append(pod)
    for number, pod in enumerate(order):
        yield pod.replace(name=f"{pod.name}-{number}")


def _decoded(kind: type[Any], manifest: dict[str, Any]) -> Any:
    found = decode_object(manifest)
    assert isinstance(found, kind), "the importer names the kind"
    return found


def _course(nodes: list[Node], pods: list[Pod], placed: set[str]) -> Iterator[Arrival]:
    offered = sum(node.allocatable.get(GPU_MILLI, 0) for node in nodes)
    arrived = allocated = 0
    for pod in pods:
        milli = pod.requests.get(GPU_MILLI, 0)
        arrived += milli
        allocated += milli if pod.name in placed else 0
        yield Arrival(arrived / offered, allocated / offered)


def by_percent(course: list[Arrival]) -> dict[int, float]:
    """The allocation in percent when so many percent had arrived: the mean over arrivals that round to it."""
    found: dict[int, list[float]] = {}
    for entry in course:
        found.setdefault(round(100 * entry.arrived), []).append(100 * entry.allocated)
    return {percent: sum(values) / len(values) for percent, values in found.items()}
