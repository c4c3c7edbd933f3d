"""Node groups: the pools of a cluster with Cluster Autoscaler, from the labels of its nodes and its status.

Nodes with the same value of a provider's label form a group; a new node would have the properties that all of them
share. Sizes are from the ConfigMap `cluster-autoscaler-status`, where it is given.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..api.node import BETA_ZONE, HOSTNAME, ZONE, Node
from ..config.problems import Literally, Problems
from ..yaml_tree import YamlError, iter_trees
from .instance_types import InstanceTable
from .node_types import CAPACITY_TYPE, COST, INSTANCE_TYPE, POOL_LABEL, SPOT, NodeType
from .pools import NodePool

STATUS_NAME = "cluster-autoscaler-status"
GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "kops.k8s.io/instancegroup",
    "karpenter.sh/nodepool",
    POOL_LABEL,
)
SPOT_LABELS = {
    CAPACITY_TYPE: SPOT,
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
OLD_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
CONDITION_PREFIX = "node.kubernetes.io/"
"""Taints with this prefix are about the state of one node."""
_NAME = re.compile(r"^\s*Name:\s*(\S+)", re.MULTILINE)
_SIZES = re.compile(r"cloudProviderTarget=(\d+).*?minSize=(\d+), maxSize=(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GroupSize:
    """Size of a group in the autoscaler's status: the least and the highest number of nodes, and the current one."""

    name: str
    minimum: int
    maximum: int
    current: int


def read_status(config_map: Mapping[str, Any], problems: Problems) -> list[GroupSize]:
    """The groups in Cluster Autoscaler's status, in the form of version 1.30 and later, or the text before it."""
    text = (config_map.get("data") or {}).get("status")
    if not isinstance(text, str) or not text.strip():
        problems.add("data.status", "the status of Cluster Autoscaler", text)
        return []
    sizes = list(_old_sizes(text)) if "NodeGroups:" in text else list(_sizes(text, problems))
    if not sizes and not problems:
        problems.add("data.status", "node groups with minSize and maxSize", Literally("none"))
    return sizes


def _sizes(text: str, problems: Problems) -> Iterator[GroupSize]:
    try:
        trees = list(iter_trees(text))
    except YamlError as error:
        problems.add("data.status", "YAML", Literally(str(error)))
        return
    tree = trees[0] if trees and isinstance(trees[0], Mapping) else {}
    groups = tree.get("nodeGroups")
    for i, group in enumerate(groups if isinstance(groups, list) else ()):
        health = group.get("health") if isinstance(group, Mapping) else None
        if not isinstance(health, Mapping) or not isinstance(group.get("name"), str):
            problems.add(f"data.status: nodeGroups[{i}]", "name and health", group)
            continue
        values = [health.get(name, 0) for name in ("minSize", "maxSize", "cloudProviderTarget")]
        if not all(isinstance(value, int) for value in values):
            problems.add(f"data.status: nodeGroups[{i}].health", "sizes as numbers", health)
            continue
        yield GroupSize(group["name"], *values)


def _old_sizes(text: str) -> Iterator[GroupSize]:
    groups = text.partition("NodeGroups:")[2]
    starts = list(_NAME.finditer(groups))
    ends = [found.start() for found in starts[1:]] + [len(groups)]
    for found, end in zip(starts, ends, strict=True):
        sizes = _SIZES.search(groups, found.end(), end)
        if sizes is not None:
            current, minimum, maximum = map(int, sizes.groups())
            yield GroupSize(found[1], minimum, maximum, current)


def find_groups(
    nodes: Iterable[Node], table: InstanceTable, sizes: Sequence[GroupSize] = (), place: str = ""
) -> list[NodePool]:
    """The pools that nodes belong to; nodes without a label of a group are left out."""
    groups: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        name = group_of_node(node)
        if name:
            groups[name].append(node)
    by_group: defaultdict[str, list[GroupSize]] = defaultdict(list)
    for size in sizes:
        matches = sorted((name for name in groups if name in size.name), key=len)
        if matches:
            by_group[matches[-1]].append(size)
    return [_pool(name, members, table, by_group[name], place) for name, members in groups.items()]


def unmatched_sizes(sizes: Iterable[GroupSize], pools: Iterable[NodePool]) -> list[str]:
    """The names of groups in the status that are no pool's."""
    names = [pool.name for pool in pools]
    return [size.name for size in sizes if not any(name in size.name for name in names)]


def zone_of(node: Node) -> str:
    """The zone of a node; empty if it has none."""
    return node.labels.get(ZONE) or node.labels.get(BETA_ZONE, "")


def group_of_node(node: Node) -> str:
    """The name of the group of a node; empty if no label has it."""
    return next((node.labels[key] for key in GROUP_LABELS if node.labels.get(key)), "")


def _pool(
    name: str,
    members: Sequence[Node],
    table: InstanceTable,
    sizes: Sequence[GroupSize],
    place: str,
) -> NodePool:
    by_type: defaultdict[str, list[Node]] = defaultdict(list)
    for node in members:
        by_type[type_of_node(node) or name].append(node)
    types = tuple(_node_type(kind, name, nodes, table) for kind, nodes in by_type.items())
    notes = [] if sizes else ["no status of Cluster Autoscaler names it, so it has no maximum"]
    notes += [f"{one.name}: no price" for one in types if one.price is None]
    return NodePool(
        name,
        types,
        sum(size.minimum for size in sizes),
        sum(size.maximum for size in sizes) if sizes else None,
        current_nodes=len(members),
        place=place,
        notes=tuple(notes),
    )


def type_of_node(node: Node) -> str:
    """The instance type in the labels; empty if there is none."""
    return node.labels.get(INSTANCE_TYPE) or node.labels.get(OLD_INSTANCE_TYPE, "")


def _node_type(name: str, pool: str, nodes: Sequence[Node], table: InstanceTable) -> NodeType:
    """The common properties of the nodes; amounts are the least of them, so that a new node has them, too."""
    first = nodes[0]
    dropped = {HOSTNAME, ZONE, BETA_ZONE}
    labels = {
        key: value
        for key, value in first.labels.items()
        if key not in dropped and all(node.labels.get(key) == value for node in nodes)
    }
    is_spot = any(labels.get(key) == value for key, value in SPOT_LABELS.items())
    zones = Counter(map(zone_of, nodes))
    taints = tuple(
        taint
        for taint in first.taints
        if not taint.key.startswith(CONDITION_PREFIX) and all(taint in n.taints for n in nodes)
    )
    return NodeType(
        name,
        _least([node.capacity for node in nodes]),
        _least([node.allocatable for node in nodes]),
        {POOL_LABEL: pool} | ({CAPACITY_TYPE: SPOT} if is_spot else {}) | labels,
        taints,
        zones=tuple(sorted(zones)),
        price=_price(name, is_spot, nodes, table),
    )


def _price(name: str, is_spot: bool, nodes: Sequence[Node], table: InstanceTable) -> float | None:
    listed = table.types.get(name)
    if listed is not None:
        return listed.spot_price if is_spot else listed.price
    costs = Counter(node.annotations[COST] for node in nodes if COST in node.annotations)
    if not costs:
        return None
    try:
        price = float(costs.most_common(1)[0][0])
    except ValueError:
        return None
    return price if 0 < price < float("inf") else None


def _least(amounts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {
        name: min(one[name] for one in amounts)
        for name in amounts[0]
        if all(name in one for one in amounts)
    }
