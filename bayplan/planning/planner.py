"""Planner: the cheapest nodes from some pools on which the scheduler places every pod of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ..api.resources import PODS
from ..choices import ANY_ZONE, PLAN_TIME_LIMIT_S
from ..config.plugin_args import LEAST_ALLOCATED, NodeResourcesFitArgs
from ..errors import InputError, counted
from ..manifests.timeline import InputObject
from ..sim.settings import DEFAULT_SETTINGS, Settings
from ..sim.simulation import Simulation
from ..sim.world import is_waiting
from ..table import Ints
from .attachments import UNLIMITED
from .first_fit import with_more
from .fleet import Fleet, NodeGroupKey, all_pools, free_of, overdrawn_pools, pools_allow
from .fleet_check import NO_DEMANDS, Demands, FleetVerdict, OtherSeeds, Verifier
from .fleet_search import WIDE_GAP, FleetSearch
from .node_plan import NodePlan, pending_by_workload, plan_of
from .node_probe import Probe, probe_workload
from .plan_input import PlanInput, prepare_input
from .pools import NodePool
from .search_state import OnSearch, SearchState
from .solver import load_highs
from .time_budget import TimeBudget

SEARCH_SHARE, TRUSTED_SHARE = 0.4, 0.7
"""Shares of the time limit at which the search ends that leaves other seeds out, the second if guesses are trusted."""
EXTRA_SHARE = 0.007
"""Share of the price up to which nodes are added for twice the pods that wait with another seed: with the next, it is
other pods."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Options of a plan."""

    demands: Demands = NO_DEMANDS
    keep_existing: bool = False
    """The nodes of the input stay, at no price."""
    time_limit_s: float = PLAN_TIME_LIMIT_S
    """Processor time."""
    spent_s: float = 0.0
    """Processor time that was spent before, and counts for the limit."""


DEFAULT_REQUEST = PlanRequest()


def plan_nodes(
    objects: Iterable[InputObject],
    pools: Sequence[NodePool],
    settings: Settings = DEFAULT_SETTINGS,
    request: PlanRequest = DEFAULT_REQUEST,
    on_state: OnSearch | None = None,
) -> NodePlan:
    """Find the nodes; raises InputError when a price is missing, there are no pods, or the input is wrong."""
    state = begin_search(pools, request)
    objects = list(objects)
    names = [obj.name for obj in objects if obj.kind == "Node"] if request.keep_existing else []
    given = prepare_input(objects, names)
    if given.nodes and not request.keep_existing:
        count = counted(len(given.nodes), "node")
        given.remarks.append(f"not used: {count} of the input; all nodes are planned")
    return search_plan(given, pools, settings, request, state, on_state)


def begin_search(pools: Sequence[NodePool], request: PlanRequest) -> SearchState:
    """Begin a search for a plan, and its time; raises InputError if there can be no plan."""
    state = SearchState(TimeBudget(request.time_limit_s, request.spent_s))
    load_highs()
    check_prices(pools)
    check_survival(pools, request.demands)
    return state


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
    verifier = Verifier(given, probe, settings, request.demands, state.budget)
    if probe.classes:
        room = _kept_room(given, probe, settings) if given.kept else None
        search = FleetSearch(
            probe, verifier, request.demands, state, room, list(candidates), on_state
        )
        limit_s = state.budget.limit_s
        search.run(SEARCH_SHARE * limit_s, TRUSTED_SHARE * limit_s)
        verdict = state.best or state.failed
        assert verdict is not None, "a search has a fleet, good or not"
        other_seeds = None
        if state.best is not None and not state.is_interrupted:
            try:
                verdict, other_seeds = steadied(state.best, search.probe, verifier)
            except KeyboardInterrupt:
                state.best, state.is_interrupted = verdict, True
            finally:
                verifier.close()
            state.price = verdict.fleet.price(probe.options)
        simulation = verifier.simulation_of(verdict)
        plan = plan_of(state, verdict, probe.options)
        plan.other_seeds = other_seeds
        plan.notices += _limit_notices(state)
        if state.best is None:
            plan.notices += used_up(plan, probe)
            if simulation is not None:
                plan.messages = _messages(simulation)
    else:
        plan = NodePlan([], 0.0, 0.0, 0)
    plan.unplaceable = probe.unplaceable
    plan.notices += [*given.remarks, *probe.notes, *notices(plan, probe, settings)]
    plan.simulations = verifier.runs
    plan.release = settings.release.patch
    demands = request.demands
    plan.demands = {
        "survive": demands.survive or None,
        "survivePriority": demands.survive_priority,
        "headroom": demands.headroom,
        "seeds": demands.seeds,
        "keepExisting": request.keep_existing,
    }
    return plan


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
    """The rest of the nodes that stay, all together; int64 per resource."""
    pods = [obj for obj in given.workload if obj.kind == "Pod"]
    simulation: Simulation = settings.simulation(
        [*given.surroundings(), *given.kept, *(pod for pod in pods if pod.node_name)],  # type: ignore[union-attr]  # pods only
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
    is_attachment = np.array([name in probe.attachments for name in probe.resources])
    return np.where(is_attachment, UNLIMITED, np.maximum(room, 0))


def _messages(simulation: Simulation) -> dict[str, str]:
    """The scheduler's messages about pending pods, by workload."""
    messages: dict[str, str] = {}
    for pod in filter(is_waiting, simulation.cluster.list("Pod")):
        (name,) = pending_by_workload([pod])
        messages.setdefault(name, simulation.message_of(pod))
    return messages


def _limit_notices(state: SearchState) -> Iterator[str]:
    """A notice if the time limit was over before the first plan was verified."""
    budget, first_s = state.budget, state.first_plan_s
    if first_s is not None and first_s > budget.limit_s:
        yield (
            f"the time limit of {budget.limit_s:g} s is too short: the first plan was verified after {first_s:.1f} s "
            f"of processor time, and a simulation takes {budget.run_s:.1f} s"
        )


ALIGNMENT = "NodeResourcesAlignment"
NOTED_GAP, NOTED_NODES = 0.04, 10
"""Gap to the bound, and number of nodes, from which on a score by the mix of resources may save nodes."""


def notices(plan: NodePlan, probe: Probe, settings: Settings) -> Iterator[str]:
    """Omissions of the bound and of the choice of types, and the reason for half-empty nodes."""
    yield from _bound_notices(probe)
    yield from _extender_notices(settings)
    if plan.lacks_room if plan.pending else plan.gap > WIDE_GAP:
        yield from _spreading_notices(settings)
    if plan.kept_apart:
        yield (
            f"affinity or spread constraints keep pods of {', '.join(plan.kept_apart)} from nodes with room: "
            "pools with further zones or types may do, or fewer replicas; another score does not help"
        )
    if not plan.pending and plan.gap > NOTED_GAP and plan.node_count >= NOTED_NODES:
        yield from _mix_notices(settings)


def _mix_notices(settings: Settings) -> Iterator[str]:
    """A notice if no score considers the mix of resources; none for schedulers with plugins of the user."""
    profiles = settings.effective_config.profiles
    if not settings.plugins and not any(ALIGNMENT in one.plugins.names() for one in profiles):
        yield (
            f"the scores of kube-scheduler leave cpu behind on some nodes and memory on others; with {ALIGNMENT} and "
            "MostAllocated fewer nodes may do (docs/plan.md)"
        )


def _spreading_notices(settings: Settings) -> Iterator[str]:
    """A notice if the scheduler spreads pods, which leaves no node empty for large pods that come late."""
    config = settings.effective_config
    for profile in config.profiles:
        args = profile.plugin_config.get("NodeResourcesFit")
        if not isinstance(args, NodeResourcesFitArgs):
            continue
        if args.scoring_strategy.type == LEAST_ALLOCATED:
            yield (
                f"{profile.scheduler_name} spreads pods over all nodes (NodeResourcesFit scores {LEAST_ALLOCATED}), "
                "so that large pods which come late find no node with room; with MostAllocated fewer nodes may do"
            )


def _bound_notices(probe: Probe) -> Iterator[str]:
    """Notices about needs of pods that the bound ignores, though a plan has room for them."""
    left_out = [
        *(
            [f"volumes and claims that {counted(probe.sharing, 'kind')} of pods share"]
            if probe.sharing
            else ()
        ),
        *(
            [f"which devices {counted(probe.claiming, 'kind')} of pods ask for"]
            if probe.claiming
            else ()
        ),
    ]
    if left_out:
        yield f"the bound leaves out {' and '.join(left_out)}; plans are verified with them"


def _extender_notices(settings: Settings) -> Iterator[str]:
    """A notice that extenders take part in simulations only."""
    if settings.config is not None and settings.config.extenders:
        urls = ", ".join(one.url_prefix for one in settings.config.extenders)
        yield (
            f"extenders ({urls}) are asked in every simulation that verifies a plan; "
            "the bound and the choice of types leave them out"
        )


def used_up(plan: NodePlan, probe: Probe) -> list[str]:
    """The pools that have no further node, each with its limit."""
    notices = []
    counts = plan.fleet.by_option()
    for pool in all_pools(probe.options):
        members = [i for i, one in enumerate(probe.options) if one.pool is pool]
        count = sum(counts[i] for i in members)
        if pool.maximum is not None and count >= pool.maximum:
            notices.append(
                f"{pool.name}: the maximum of {counted(pool.maximum, 'node')} is too small"
            )
            continue
        groups = [NodeGroupKey(i, probe.options[i].zones[0]) for i in members]
        larger = (plan.fleet.changed({group: 1}) for group in groups)
        more = [fleet for fleet in larger if overdrawn_pools(fleet, probe.options)]
        if pool.limits and len(more) == len(members):
            notices.append(f"{pool.name}: its limits leave no room for one more node")
    return notices


def steadied(
    verdict: FleetVerdict, probe: Probe, verifier: Verifier
) -> tuple[FleetVerdict, OtherSeeds]:
    """A good fleet on which no pod waits with other seeds either, as far as there is time to find one.

    Tried in the order of their prices: dearer fleets that the search found to be good, and the fleet with nodes for the
    pods that would wait. More nodes are not enough, because they change where the other pods go. The fleet with the
    least risk is taken when the time is over.
    """
    found = verifier.try_other_seeds(verdict.fleet)
    failed, price = found.failed, verdict.fleet.price(probe.options)
    dearer = [one for one in verifier.good_verdicts() if one.fleet.price(probe.options) > price]
    while not found.is_steady:
        fleet = None if failed is None else with_room_for(failed, probe)
        most = np.inf if fleet is None else fleet.price(probe.options)
        if dearer and dearer[0].fleet.price(probe.options) <= most:
            more = dearer.pop(0)
            others = verifier.try_other_seeds(more.fleet)
        elif fleet is None or not verifier.has_time():
            break
        else:
            failed = verifier.try_other_seeds(fleet, only_hard=True).failed
            if failed is not None:
                continue
            more = verifier.verify(fleet)
            if not more.is_good:
                failed = more
                continue
            others = verifier.try_other_seeds(fleet)
            failed = others.failed
        if not others.tried:
            break
        if others.risk <= found.risk:
            verdict, found = more, others
        if others.is_steady:
            break
    return verdict, found


def with_room_for(failed: FleetVerdict, probe: Probe) -> Fleet | None:
    """The fleet with nodes for twice the pods that wait if they cost little, else for them; None if pools have none."""
    price = failed.fleet.price(probe.options)
    for times, most in ((2, price * (1 + EXTRA_SHARE)), (1, np.inf)):
        fleet = with_more(failed, times, probe)
        if (
            fleet is not None
            and fleet.price(probe.options) <= most
            and pools_allow(fleet, probe.options)
        ):
            return fleet
    return None
