"""Rightsizing: which nodes of a cluster to remove and which to add, in which order, and where their pods land.

The nodes are matched to types; a plan is made for all pods; what both have stays. New nodes come first; then the others
are cordoned, and drained one by one, the emptiest first, as `what-if drain` does it.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..answers.what_if import ask_what_if
from ..answers.what_if.draining import Drain
from ..answers.what_if.node_changes import Cordon
from ..api.node import BETA_ZONE, ZONE, Node
from ..api.pod import Pod
from ..api.resources import CPU
from ..cluster.objects import ClusterObject
from ..errors import InputError
from ..sim.settings import Settings
from ..sim.world import InputObject
from .fleet import Fleet, NodeGroupKey, NodeOption
from .node_exchange import NodeExchange
from .node_groups import group_of_node, type_of_node
from .node_plan import NodePlan
from .node_types import NodeType
from .plan_input import prepare_input
from .planner import PlanRequest, check_prices, check_survival, search_plan
from .pools import NodePool
from .probing import probe_workload
from .searching import OnSearch, SearchState
from .solver import load_highs


def rightsize(
    objects: Iterable[InputObject],
    pools: Sequence[NodePool],
    settings: Settings,
    request: PlanRequest,
    on_state: OnSearch | None = None,
) -> NodePlan:
    """Plan the nodes of a cluster again; raises InputError when it has none, or the input is wrong."""
    started = time.monotonic()
    load_highs()
    check_prices(pools)
    check_survival(pools, request.demands)
    objects = list(objects)
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    if not nodes:
        raise InputError("--existing: expected nodes in the input; got none")
    matched = {node.name: find_type(node, pools) for node in nodes}
    unknown = [name for name, one in matched.items() if one is None]
    if settings.seed is None:
        settings = replace(settings, seed=0)
    given = prepare_input(objects, unknown)
    types = [one for one in matched.values() if one is not None]
    probe = probe_workload(given, pools, settings, request.demands.headroom, types)
    current = _current_fleet(nodes, matched, probe.options)
    state = SearchState(started, request.time_limit_s)
    plan = search_plan(given, pools, settings, request, state, on_state, [current], probe)
    price = sum(one.price or 0.0 for one in matched.values() if one is not None)
    plan.exchange = NodeExchange(price, unknown=unknown)
    if plan.is_complete:
        _exchange(plan, plan.exchange, objects, matched, settings)
    return plan


def find_type(node: Node, pools: Sequence[NodePool]) -> NodeType | None:
    """The type of a node: by its instance type, in its group if a pool has that name; else by equal amounts."""
    name, group, zone = type_of_node(node), group_of_node(node), zone_of(node)
    types = [one for pool in pools for one in pool.types if zone in one.zones]
    same = [one for one in types if one.name == name] or [
        one for one in types if dict(one.allocatable) == node.allocatable
    ]
    return next((one for one in same if one.pool == group), same[0] if same else None)


def zone_of(node: Node) -> str:
    """The zone of a node; empty if it has none."""
    return node.labels.get(ZONE) or node.labels.get(BETA_ZONE, "")


def _current_fleet(
    nodes: Sequence[Node], matched: dict[str, NodeType | None], options: Sequence[NodeOption]
) -> Fleet:
    """The nodes of the cluster as a fleet; those that no pod of the workload can run on are left out."""
    fleet = Fleet()
    for node in nodes:
        one, zone = matched[node.name], zone_of(node)
        for number, option in enumerate(options):
            if option.type is one and zone in option.zones:
                fleet[NodeGroupKey(number, zone)] += 1
                break
    return fleet


def _exchange(
    plan: NodePlan,
    exchange: NodeExchange,
    objects: Sequence[InputObject],
    matched: dict[str, NodeType | None],
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
    nodes = [obj for obj in objects if isinstance(obj, Node) and matched[obj.name] is not None]
    for node in sorted(nodes, key=lambda node: (-use[node.name], node.name)):
        one = matched[node.name]
        assert one is not None, "nodes without a type are left out above"
        key = one, zone_of(node)
        if wanted[key] > 0:
            wanted[key] -= 1
            exchange.kept.append(node.name)
        else:
            exchange.removed.insert(0, node.name)
            exchange.types[node.name] = one.name
    added = _new_nodes(wanted, {node.name for node in nodes}, exchange)
    if not exchange.removed:
        return
    drains = [Drain((name,), force=True) for name in exchange.removed]
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
