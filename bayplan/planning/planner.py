"""Planner: the cheapest nodes from some pools on which the scheduler places every pod of a workload."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ..api.resources import PODS
from ..errors import InputError
from ..sim.settings import DEFAULT_SETTINGS, Settings
from ..sim.simulation import Simulation
from ..sim.world import InputObject
from ..table import Ints
from .fleet import Fleet, NodeGroupKey, all_pools, free_of, overdrawn_pools
from .node_plan import NodePlan, pending_by_workload, plan_of
from .plan_input import PlanInput, prepare_input
from .pools import NodePool
from .probing import Probe, probe_workload
from .searching import FleetSearch, OnSearch, SearchState
from .solver import load_highs
from .verifying import ANY_ZONE, NO_DEMANDS, Demands, Verifier

DEFAULT_TIME_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked of a plan."""

    demands: Demands = NO_DEMANDS
    keep_existing: bool = False
    """The nodes of the input stay, at no price."""
    time_limit_s: float = DEFAULT_TIME_LIMIT_S


DEFAULT_REQUEST = PlanRequest()


def plan_nodes(
    objects: Iterable[InputObject],
    pools: Sequence[NodePool],
    settings: Settings = DEFAULT_SETTINGS,
    request: PlanRequest = DEFAULT_REQUEST,
    on_state: OnSearch | None = None,
) -> NodePlan:
    """Find the nodes; raises InputError when a price is missing, there are no pods, or the input is wrong."""
    started = time.monotonic()
    load_highs()
    check_prices(pools)
    check_survival(pools, request.demands)
    objects = list(objects)
    names = [obj.name for obj in objects if obj.kind == "Node"] if request.keep_existing else []
    given = prepare_input(objects, names)
    if given.nodes and not request.keep_existing:
        count = _nodes(len(given.nodes))
        given.remarks.append(f"not used: {count} of the input; all nodes are planned")
    return search_plan(
        given, pools, settings, request, SearchState(started, request.time_limit_s), on_state
    )


def search_plan(
    given: PlanInput,
    pools: Sequence[NodePool],
    settings: Settings,
    request: PlanRequest,
    state: SearchState,
    on_state: OnSearch | None = None,
    candidates: Sequence[Fleet] = (),
    probe: Probe | None = None,
) -> NodePlan:
    """Search for the nodes of an input that was prepared."""
    if settings.seed is None:
        settings = replace(settings, seed=0)
    probe = probe or probe_workload(given, pools, settings, request.demands.headroom)
    verifier = Verifier(given, probe, settings, request.demands)
    if probe.classes:
        room = _kept_room(given, probe, settings) if given.kept else None
        FleetSearch(probe, verifier, request.demands, state, room, list(candidates), on_state).run()
        if state.best is not None:
            verifier.simulation_of(state.best)
        plan = plan_of(state, probe.options)
        if state.best is None:
            plan.notices += _used_up(plan, probe)
            _add_messages(plan, verifier)
    else:
        plan = NodePlan([], 0.0, 0.0, 0)
    plan.unplaceable = probe.unplaceable
    plan.notices += [*given.remarks, *probe.notes, *_bound_notes(probe), *_extender_notes(settings)]
    plan.simulations = verifier.runs
    demands = request.demands
    plan.demands = {
        "survive": demands.survive or None,
        "survivePriority": demands.survive_priority,
        "headroom": demands.headroom,
        "keepExisting": request.keep_existing,
    }
    return plan


def _bound_notes(probe: Probe) -> Iterator[str]:
    """Which needs of pods the bound leaves out, though a plan has room for them."""
    left_out = [
        *([f"the volumes of {_kinds(probe.mounting)}"] if probe.mounting else ()),
        *([f"the devices of {_kinds(probe.claiming)}"] if probe.claiming else ()),
    ]
    if left_out:
        yield f"the bound leaves out {' and '.join(left_out)}; plans are verified with them"


def _kinds(count: int) -> str:
    return "1 kind of pods" if count == 1 else f"{count:,} kinds of pods"


def _extender_notes(settings: Settings) -> Iterator[str]:
    """That extenders take part in simulations, and in nothing else."""
    if settings.config is not None and settings.config.extenders:
        urls = ", ".join(one.url_prefix for one in settings.config.extenders)
        yield (
            f"extenders ({urls}) are asked in every simulation that verifies a plan; "
            "the bound and the choice of types leave them out"
        )


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"


def check_prices(pools: Sequence[NodePool]) -> None:
    """Raise InputError with a line for each type without a price."""
    missing = [
        f"{pool.place}: {pool.name}: {one.name}: expected a price per hour above 0; got none"
        for pool in pools
        for one in pool.types
        if not one.price
    ]
    if missing:
        raise InputError("\n".join(missing))


def check_survival(pools: Sequence[NodePool], demands: Demands) -> None:
    """Raise InputError when no plan can lose a zone."""
    if demands.survive != ANY_ZONE:
        return
    zones = {zone for pool in pools for one in pool.types for zone in one.zones}
    if len(zones) < 2 or "" in zones:
        found = ", ".join(sorted(zone or "nodes without a zone" for zone in zones))
        raise InputError(f"--survive zone: expected pools with at least 2 zones; got {found}")


def _kept_room(given: PlanInput, probe: Probe, settings: Settings) -> Ints:
    """What the nodes that stay have left, all together; int64 per resource."""
    pods = [obj for obj in given.workload if obj.kind == "Pod"]
    simulation: Simulation = settings.simulation(
        [*given.surroundings(), *given.kept, *(pod for pod in pods if pod.node_name)],  # type: ignore[union-attr]
        pods_end=False,
    )
    simulation.proceed()
    room = np.zeros(len(probe.resources), dtype=np.int64)
    for node in given.kept_nodes:
        if not node.unschedulable:
            room += free_of(node.allocatable, probe.resources)
    for pod in simulation.cluster.list("Pod"):
        if pod.node_name:
            room -= free_of({**pod.requests, PODS: 1}, probe.resources)
    return np.maximum(room, 0)


def _used_up(plan: NodePlan, probe: Probe) -> list[str]:
    """The pools that have no further node, each with what limits it."""
    notices = []
    counts = plan.fleet.by_option()
    for pool in all_pools(probe.options):
        members = [i for i, one in enumerate(probe.options) if one.pool is pool]
        count = sum(counts[i] for i in members)
        if pool.maximum is not None and count >= pool.maximum:
            notices.append(f"{pool.name}: the maximum of {_nodes(pool.maximum)} is too small")
            continue
        more = [
            i for i in members if overdrawn_pools(_one_more(plan.fleet, i, probe), probe.options)
        ]
        if pool.limits and len(more) == len(members):
            notices.append(f"{pool.name}: its limits leave no room for one more node")
    return notices


def _one_more(fleet: Fleet, option: int, probe: Probe) -> Fleet:
    return fleet.changed({NodeGroupKey(option, probe.options[option].zones[0]): 1})


def _add_messages(plan: NodePlan, verifier: Verifier) -> None:
    """Why pods stay pending, in the scheduler's words."""
    simulation, pending = verifier.run(plan.fleet)
    for pod in pending:
        (name,) = pending_by_workload([pod])
        if simulation is not None:
            plan.messages.setdefault(name, simulation.message_of(pod))
