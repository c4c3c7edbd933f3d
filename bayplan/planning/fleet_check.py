"""Fleet check: whether the scheduler places every pod on a fleet, also without one zone or one node."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from ..api.pod import Pod
from ..choices import ANY_NODE, ANY_ZONE, PLAN_SEEDS
from ..cluster.memory.absent_owners import is_daemon
from ..sim.plain_part import PlainPart
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from ..sim.world import is_waiting
from ..table import Ints
from .fleet import Fleet, NodeOption, fleet_objects, node_names
from .node_probe import Probe, class_key, pending_counts
from .plan_input import PlanInput
from .time_budget import TimeBudget
from .workers import FleetTask, WorkerPool, count_workers

COLLECT_EVERY = 8
MOST_OTHER_SEEDS, MOST_FAILED, FIRST_SEEDS = 64, 3, 8
"""Other seeds that are tried, and how many of the first ones may fail until a plan gets nodes for the pods that wait;
after them, one may."""
LONG_S = 0.02
"""Workers are started when a simulation takes longer than this."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Demands on a plan besides the workload."""

    survive: str = ""
    """`zone` or `node`: one of them may fail."""
    survive_priority: int | None = None
    """Pods below it may wait then; None if no pod may."""
    headroom: float = 0.0
    """The share of every node that stays free."""
    seeds: int = PLAN_SEEDS
    """Number of seeds with which every pod must be placed: ties between nodes are broken at random."""


NO_DEMANDS = Demands()


@dataclass(slots=True)
class OtherSeeds(PlainPart):
    """Whether a plan holds with further seeds."""

    PLAIN = "tried held mostPending"

    tried: int = 0
    held: int = 0
    """Number of seeds with which every pod is placed."""
    most_pending: int = 0
    """The most pods that stay pending with one of them."""
    failed: FleetVerdict | None = field(default=None, compare=False)
    """The verdict with the others: of each class the most pods that stay pending with one of them."""

    @property
    def is_steady(self) -> bool:
        """Whether every pod is placed with each seed that was tried."""
        return self.held == self.tried

    @property
    def risk(self) -> float:
        """The estimated share of all seeds with which pods stay pending, by the rule of succession."""
        return (self.tried - self.held + 1) / (self.tried + 2)


@dataclass(slots=True)
class FleetVerdict:
    """The scheduler's result for a fleet."""

    fleet: Fleet
    pending: list[Pod] = field(default_factory=list)
    """Pods without a node that a pool could hold."""
    missing: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 per class: how many of them belong to it."""
    zones: frozenset[str] = frozenset()
    """The zones in which further nodes may help; all if empty."""
    idle: Fleet = field(default_factory=Fleet)
    """The nodes of a good fleet that run no pod but those of daemons."""
    simulation: Simulation | None = None
    """The simulation of a good fleet that was verified by this process."""

    @property
    def is_good(self) -> bool:
        """Whether every pod has a node."""
        return not self.pending


class Verifier:
    """Runs simulations of a workload on fleets; each fleet is run once."""

    def __init__(
        self,
        given: PlanInput,
        probe: Probe,
        settings: Settings,
        demands: Demands,
        budget: TimeBudget | None = None,
    ) -> None:
        self._given, self._probe, self._demands = given, probe, demands
        self.budget = budget or TimeBudget(np.inf)
        # Without a seed, ties would be broken differently in each run.
        self.settings = settings if settings.seed is not None else replace(settings, seed=0)
        self._known: dict[object, FleetVerdict] = {}
        self._good: dict[object, FleetVerdict] = {}
        self.runs = 0
        has_extenders = settings.config is not None and bool(settings.config.extenders)
        # Connections to extenders cannot be shared by processes.
        self._workers = WorkerPool(
            self._work, 0 if has_extenders else count_workers(), self.budget.add
        )
        self._seeds = range(1, demands.seeds)
        """Further seeds that a fleet is verified with."""
        self._most_runs = 0
        """Number of simulations that the longest verification took."""
        self._hard_seeds: list[int] = []
        """Those of the other seeds with which pods stayed pending on some fleet."""
        self._held: defaultdict[object, set[int]] = defaultdict(set)
        """By fleet, the other seeds with which every pod was placed."""

    @property
    def options(self) -> Sequence[NodeOption]:
        """The types that fleets are made of."""
        return self._probe.options

    def verify(self, fleet: Fleet) -> FleetVerdict:
        """Place all pods on the fleet, and again on the rest of it after each loss that it must stand."""
        key = fleet.key()
        if key not in self._known:
            before, answer = self.runs, self._workers.take(FleetTask(fleet))
            if answer is None:
                self._known[key] = self._verify(fleet)
            else:
                self._known[key], runs = answer
                self.runs += runs
            self._most_runs = max(self._most_runs, self.runs - before)
            if self._known[key].is_good:
                self._good[key] = self._known[key]
        return self._known[key]

    def has_time(self) -> bool:
        """Whether one more fleet can be verified before the limit."""
        return self.budget.has_time_for(max(self._most_runs, 1 + len(self._seeds)))

    def announce(self, fleets: Sequence[Fleet]) -> None:
        """Announce the fleets to be verified next, so that workers can begin with some."""
        if self.budget.run_s > LONG_S:
            self._workers.announce([FleetTask(one) for one in fleets if not self.has_verified(one)])

    def simulation_of(self, verdict: FleetVerdict) -> Simulation | None:
        """The simulation of a fleet, which is run again unless this process found it to be good."""
        if verdict.simulation is None:
            verdict.simulation = self.run(verdict.fleet)[0]
        return verdict.simulation

    def close(self) -> None:
        """End the workers."""
        self._workers.end()

    def has_verified(self, fleet: Fleet) -> bool:
        """Whether the verdict about a fleet is known."""
        return fleet.key() in self._known

    def _work(self, task: FleetTask) -> tuple[FleetVerdict, int]:
        """In a worker: the verdict without the simulation, and how many simulations were run for it."""
        self._workers.forsake()
        before, (fleet, seed) = self.runs, task
        verdict = self._verdict(fleet, *self.run(fleet, seed)) if seed else self._verify(fleet)
        verdict.simulation = None
        return verdict, self.runs - before

    def _verify(self, fleet: Fleet) -> FleetVerdict:
        simulation, pending = self.run(fleet)
        verdict = self._verdict(fleet, simulation, pending)
        if pending or simulation is None:
            return verdict
        verdict.simulation, verdict.idle = simulation, self._idle(fleet, simulation)
        for i in range(len(self._seeds)):
            tied = self._with_seed(fleet, self._seeds[i:])
            if tied.pending:
                return tied
        for zone, left in self._losses(fleet):
            _, missing = self.run(left)
            floor = self._demands.survive_priority
            missing = [pod for pod in missing if floor is None or pod.priority >= floor]
            if missing:
                zones = {
                    name for one in self.options for name in one.zones if zone and name != zone
                }
                counts = pending_counts(self._probe, missing)
                return FleetVerdict(fleet, missing, counts, frozenset(zones))
        return verdict

    def _verdict(
        self, fleet: Fleet, simulation: Simulation | None, pending: list[Pod]
    ) -> FleetVerdict:
        """The result of one simulation; pods that are spread need nodes in the zones with the fewest pods like them."""
        zones: set[str] = set()
        spread = {class_key(pod) for pod in pending if pod.spec.topology_spread_constraints}
        if simulation is not None and spread:
            zone_of = {name: group.zone for name, group in node_names(fleet, self.options)}
            counts = {key: Counter(dict.fromkeys(fleet.zones(), 0)) for key in spread}
            for pod in simulation.cluster.list("Pod"):
                if pod.node_name in zone_of and (key := class_key(pod)) in counts:
                    counts[key][zone_of[pod.node_name]] += 1
            for one in counts.values():
                zones |= {zone for zone, count in one.items() if count == min(one.values())}
        return FleetVerdict(fleet, pending, pending_counts(self._probe, pending), frozenset(zones))

    def _idle(self, fleet: Fleet, simulation: Simulation) -> Fleet:
        used = {pod.node_name for pod in simulation.cluster.list("Pod") if not is_daemon(pod)}
        names = node_names(fleet, self.options)
        return Fleet(Counter(group for name, group in names if name not in used))

    def _losses(self, fleet: Fleet) -> Iterator[tuple[str | None, Fleet]]:
        """The lost zone, if there is one, and the remaining nodes."""
        if self._demands.survive == ANY_ZONE:
            for zone in fleet.zones():
                yield zone, Fleet({group: n for group, n in fleet.items() if group.zone != zone})
        elif self._demands.survive == ANY_NODE:
            for group, _ in fleet.key():
                yield None, fleet.changed({group: -1})

    def try_other_seeds(self, fleet: Fleet, only_hard: bool = False) -> OtherSeeds:
        """Place all pods with further seeds, until pods stay pending with some or there is no time for one more.

        Seeds with which pods stayed pending on an earlier fleet come first; with `only_hard` there are no others. Those
        that were tried on this fleet before count, too. Once pods stay pending, there has to be time for a fleet with
        more nodes.
        """
        held, first = self._held[fleet.key()], self._demands.seeds
        found = OtherSeeds(len(held), len(held))
        others = () if only_hard else range(first, first + MOST_OTHER_SEEDS)
        seeds = [one for one in dict.fromkeys([*self._hard_seeds, *others]) if one not in held]
        failed: list[FleetVerdict] = []
        for i, seed in enumerate(seeds):
            if len(failed) == MOST_FAILED or (failed and i >= FIRST_SEEDS):
                break
            further = len(self._hard_seeds) + 1 + len(self._seeds) if failed else 0
            if not self.budget.has_time_for(1 + further):
                break
            verdict = self._with_seed(fleet, seeds[i:])
            found.tried += 1
            if not verdict.pending:
                held.add(seed)
                found.held += 1
                continue
            failed.append(verdict)
            if seed not in self._hard_seeds:
                self._hard_seeds.append(seed)
        if failed:
            found.failed = _together(failed)
            found.most_pending = len(found.failed.pending)
        return found

    def _with_seed(self, fleet: Fleet, seeds: Sequence[int]) -> FleetVerdict:
        """The result with the first of these seeds; the others are next."""
        if self.budget.run_s > LONG_S:
            soon = seeds[: 1 + self._workers.size]
            self._workers.announce([FleetTask(fleet, seed) for seed in soon])
        answer = self._workers.take(FleetTask(fleet, seeds[0]))
        if answer is None:
            return self._verdict(fleet, *self.run(fleet, seeds[0]))
        verdict: FleetVerdict = answer[0]
        self.runs += answer[1]
        return verdict

    def good_verdicts(self) -> list[FleetVerdict]:
        """All fleets that were found to be good, the cheapest first."""
        return sorted(self._good.values(), key=lambda one: one.fleet.price(self.options))

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        """Place all pods on a fleet; returns the simulation and the pods that stay pending."""
        objects = fleet_objects(fleet, self.options, self._demands.headroom)
        if not objects and not self._given.kept_nodes:
            return None, [one.pod for one in self._probe.classes for _ in range(one.count)]
        started_s = self.budget.spent_s()
        self.runs += 1
        if self.runs % COLLECT_EVERY == 0:
            gc.collect()  # simulations contain reference cycles, and garbage collection is off while one runs
        everything = [*self._given.kept, *objects, *self._given.workload]
        seed = (self.settings.seed or 0) + further_seed
        settings = replace(self.settings, seed=seed) if further_seed else self.settings
        simulation = settings.simulation(everything, pods_end=False)
        simulation.proceed()
        self.budget.note_run(self.budget.spent_s() - started_s)
        left_out = self._probe.unplaceable_keys
        waiting = [pod for pod in simulation.cluster.list("Pod") if is_waiting(pod)]
        if left_out:
            waiting = [pod for pod in waiting if class_key(pod) not in left_out]
        return simulation, waiting


def _together(failed: Sequence[FleetVerdict]) -> FleetVerdict:
    """The largest number of pods of each class that stay pending with one seed."""
    worst = max(failed, key=lambda one: len(one.pending))
    missing: Ints = np.maximum.reduce([one.missing for one in failed])
    zones = frozenset[str]().union(*(one.zones for one in failed))
    return FleetVerdict(worst.fleet, worst.pending, missing, zones)
