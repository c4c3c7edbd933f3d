"""Rightsizing: which nodes of a cluster to remove and which to add, in which order, and where their pods land.

The nodes are matched to types; a plan is made for the pods of all nodes that may be removed (`find_staying`); nodes
that both have stay. New nodes come first; then the others are cordoned, and drained one by one, the emptiest first, as
`what-if drain` does it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..answers.what_if import ask_what_if
from ..answers.what_if.node_changes import Cordon, cordoned
from ..answers.what_if.rounds import Drain
from ..api.node import Node
from ..api.pod import Pod
from ..api.resources import CPU
from ..cluster.memory.absent_owners import is_static
from ..cluster.objects.object_index import ClusterObject
from ..errors import InputError
from ..manifests.timeline import InputObject, Timeline
from ..sim.settings import Settings
from .fleet import Fleet, NodeGroupKey, NodeOption
from .node_groups import group_of_node, type_of_node, zone_of
from .node_plan import NodeExchange, NodePlan
from .node_probe import class_key, probe_workload
from .node_types import NodeType
from .plan_input import prepare_input
from .planner import PlanRequest, begin_search, search_plan
from .pools import NodePool
from .search_state import OnSearch


def rightsize(
    objects: Iterable[InputObject],
    pools: Sequence[NodePool],
    settings: Settings,
    request: PlanRequest,
    on_state: OnSearch | None = None,
) -> NodePlan:
    """Plan the nodes of a cluster again; raises InputError when it has none, or the input is wrong."""
    state = begin_search(pools, request)
    objects = list(objects)
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    if not nodes:
        raise InputError("--existing: expected nodes in the input; got none")
    matched = {node.name: find_type(node, pools) for node in nodes}
    if settings.seed is None:
        settings = replace(settings, seed=0)
    staying = find_staying(nodes, (obj for obj in objects if isinstance(obj, Pod)), matched)
    objects = settled(objects, settings)
    pools = pools_without(pools, staying, matched)
    given = prepare_input(objects, list(staying))
    given.kept = [cordoned(obj) if isinstance(obj, Node) else obj for obj in given.kept]
    removable = {
        name: one for name, one in matched.items() if one is not None and name not in staying
    }
    types = list(removable.values())
    probe = probe_workload(
        given, pools, settings, request.demands.headroom, types, needs_pods=False
    )
    current = _current_fleet(nodes, removable, probe.options)
    plan = search_plan(given, pools, settings, request, state, on_state, [current], probe)
    plan.exchange = NodeExchange(
        _price(matched.values()),
        _price(matched[name] for name in staying),
        staying=staying,
        unknown=[name for name, reason in staying.items() if reason == NO_TYPE],
    )
    _play(plan, plan.exchange, objects, removable, probe.unplaceable_keys, settings)
    return plan


def _price(types: Iterable[NodeType | None]) -> float:
    return sum(one.price or 0.0 for one in types if one is not None)


def _play(
    plan: NodePlan,
    exchange: NodeExchange,
    objects: Sequence[InputObject],
    removable: dict[str, NodeType],
    unplaceable: Collection[tuple[object, ...]],
    settings: Settings,
) -> None:
    """Find the steps, unless a pod that runs on a removable node has no place in the plan."""
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    left_out = [pod for pod in pods if class_key(pod) in unplaceable]
    exchange.is_possible = not plan.pending and not any(
        pod.node_name in removable for pod in left_out
    )
    if exchange.is_possible:
        _exchange(plan, exchange, objects, removable, settings)
        for pod in left_out:
            exchange.pending.pop(pod.key, None)  # named among those that fit no pool


def find_type(node: Node, pools: Sequence[NodePool]) -> NodeType | None:
    """The type of a node: by its instance type, in its group if a pool has that name; else by equal amounts."""
    name, group, zone = type_of_node(node), group_of_node(node), zone_of(node)
    types = [one for pool in pools for one in pool.types if zone in one.zones]
    same = [one for one in types if one.name == name] or [
        one for one in types if dict(one.allocatable) == node.allocatable
    ]
    return next((one for one in same if one.pool == group), same[0] if same else None)


def _current_fleet(
    nodes: Sequence[Node], removable: dict[str, NodeType], options: Sequence[NodeOption]
) -> Fleet:
    """The removable nodes as a fleet; those that no pod of the workload can run on are left out."""
    fleet = Fleet()
    for node in nodes:
        one, zone = removable.get(node.name), zone_of(node)
        for number, option in enumerate(options):
            if option.type is one and zone in option.zones:
                fleet[NodeGroupKey(number, zone)] += 1
                break
    return fleet


def _exchange(
    plan: NodePlan,
    exchange: NodeExchange,
    objects: Sequence[InputObject],
    removable: dict[str, NodeType],
    settings: Settings,
) -> None:
    """Find the nodes that stay, and play the rest: add, then drain."""
    wanted: Counter[tuple[NodeType, str]] = Counter()
    for group, count in plan.fleet.items():
        wanted[plan.options[group.option].type, group.zone] += count
    use: defaultdict[str, int] = defaultdict(int)
    for obj in objects:
        if isinstance(obj, Pod) and obj.node_name:
            use[obj.node_name] += obj.requests.get(CPU, 0) + 1
    nodes = [obj for obj in objects if isinstance(obj, Node) and obj.name in removable]
    for node in sorted(nodes, key=lambda node: (-use[node.name], node.name)):
        one = removable[node.name]
        key = one, zone_of(node)
        if wanted[key] > 0:
            wanted[key] -= 1
            exchange.kept.append(node.name)
        else:
            exchange.removed.insert(0, node.name)
            exchange.types[node.name] = one.name
    taken = {obj.name for obj in objects if isinstance(obj, Node)}
    added = _new_nodes(wanted, taken, exchange)
    if not exchange.removed:
        return
    drains = [Drain((name,), force=True, delete_emptydir_data=True) for name in exchange.removed]
    changes = [Cordon(tuple(exchange.removed)), *drains]
    answer = ask_what_if([*objects, *added], changes, settings)
    exchange.moves = [move for move in answer.pods if move.was.node in exchange.removed]
    exchange.pending = answer.pending_after


def _new_nodes(
    wanted: Counter[tuple[NodeType, str]], taken: set[str], exchange: NodeExchange
) -> list[ClusterObject]:
    objects: list[ClusterObject] = []
    for (one, zone), count in wanted.items():
        stem = "-".join(filter(None, ("new", one.pool, one.name, zone)))
        names = (name for i in itertools.count(1) if (name := f"{stem}-{i}") not in taken)
        for name in itertools.islice(names, count):
            objects += one.make_objects(name, zone)
            exchange.added.append(name)
            exchange.types[name] = one.name
    return objects


CONTROL_PLANE_KEYS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Labels and taints of the nodes of a control plane."""
CONTROL_PLANE, STATIC_PODS, NO_TYPE = "control plane", "static pods", "of no type of the pools"


def find_staying(
    nodes: Iterable[Node], pods: Iterable[Pod], types: Mapping[str, NodeType | None]
) -> dict[str, str]:
    """The reason of each node that stays, by name; `types` has the type of each node, None if none matches.

    Nodes of a control plane run the cluster itself, static pods cannot be moved by the API server, and the price
    of a node without a type is unknown. Such nodes keep their pods; no other pod is planned on them.
    """
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
    return [*timelines, *simulation.cluster.objects()]


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
