"""Staying nodes: the nodes of a cluster that a plan neither removes nor fills up.

Nodes of a control plane run the cluster itself, static pods cannot be moved by the API server, and the price of a node
without a type is unknown. Such nodes keep their pods; no other pod is planned on them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..answers.what_if.node_changes import cordoned
from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory import is_static
from ..manifests.timeline import InputObject, Timeline
from ..sim.settings import Settings
from .node_types import NodeType
from .plan_input import PlanInput
from .pools import NodePool

CONTROL_PLANE_KEYS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Labels and taints of the nodes of a control plane."""
CONTROL_PLANE, STATIC_PODS, NO_TYPE = "control plane", "static pods", "of no type of the pools"


def find_staying(
    nodes: Iterable[Node], pods: Iterable[Pod], types: Mapping[str, NodeType | None]
) -> dict[str, str]:
    """The reason of each node that stays, by name; `types` has the type of each node, None if none matches."""
    static = {pod.node_name for pod in pods if is_static(pod) and not pod.is_finished}
    found = {}
    for node in nodes:
        if is_control_plane(node):
            found[node.name] = CONTROL_PLANE
        elif node.name in static:
            found[node.name] = STATIC_PODS
        elif types[node.name] is None:
            found[node.name] = NO_TYPE
    return found


def is_control_plane(node: Node) -> bool:
    """Whether a label or a taint marks the node as one of the control plane."""
    return any(key in node.labels for key in CONTROL_PLANE_KEYS) or any(
        taint.key in CONTROL_PLANE_KEYS for taint in node.taints
    )


def settled(objects: Sequence[InputObject], settings: Settings) -> list[InputObject]:
    """The cluster with its waiting pods placed where the scheduler places them now."""
    timelines = [obj for obj in objects if isinstance(obj, Timeline)]
    present = [obj for obj in objects if not isinstance(obj, Timeline)]
    simulation = settings.simulation(present, pods_end=False)
    simulation.proceed()
    cluster = simulation.cluster
    return [*timelines, *(obj for kind in cluster.kinds() for obj in cluster.list(kind))]


def close_staying(given: PlanInput) -> None:
    """Keep planned pods off the nodes that stay."""
    given.kept = [cordoned(obj) if isinstance(obj, Node) else obj for obj in given.kept]


def pools_without(
    pools: Sequence[NodePool], staying: Mapping[str, str], types: Mapping[str, NodeType | None]
) -> list[NodePool]:
    """The pools, with sizes and limits for the nodes besides those that stay."""
    kept: Counter[NodeType] = Counter()
    for name, reason in staying.items():
        one = types[name]
        if one is not None and reason != CONTROL_PLANE:
            kept[one] += 1
    return [_reduced_pool(pool, kept) for pool in pools]


def _reduced_pool(pool: NodePool, kept: Mapping[NodeType, int]) -> NodePool:
    counts = {one: kept[one] for one in pool.types if kept.get(one)}
    if not counts:
        return pool
    number = sum(counts.values())
    return dataclasses.replace(
        pool,
        minimum=max(pool.minimum - number, 0),
        maximum=None if pool.maximum is None else max(pool.maximum - number, 0),
        limits={
            name: max(limit - sum(one.capacity.get(name, 0) * n for one, n in counts.items()), 0)
            for name, limit in pool.limits.items()
        },
    )
