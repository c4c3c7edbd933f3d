"""Verifying: whether the scheduler places every pod on a fleet, also with a zone or a node gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..api.pod import Pod
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from ..sim.world import is_waiting
from .fleet import Fleet, NodeOption, fleet_objects
from .plan_input import PlanInput
from .probing import Probe, class_key

ANY_NODE, ANY_ZONE = "node", "zone"


@dataclass(frozen=True, slots=True)
class Demands:
    """What a plan must stand besides the workload."""

    survive: str = ""
    """`zone` or `node`: one of them may be gone."""
    survive_priority: int | None = None
    """Pods below it may wait then; None: no pod may."""
    headroom: float = 0.0
    """The share of every node that stays free."""


NO_DEMANDS = Demands()


@dataclass(slots=True)
class FleetVerdict:
    """What the scheduler makes of a fleet."""

    fleet: Fleet
    pending: list[Pod] = field(default_factory=list)
    """Pods without a node that a pool could hold."""
    loss: str = ""
    """What is gone when they are pending: empty, or a zone or type of node."""
    lost_zone: str | None = None
    simulation: Simulation | None = None

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
    ) -> None:
        self._given, self._probe, self._demands = given, probe, demands
        # Without a seed, ties would be broken differently in each run.
        self._settings = settings if settings.seed is not None else replace(settings, seed=0)
        self._known: dict[object, FleetVerdict] = {}
        self.runs = 0

    @property
    def options(self) -> Sequence[NodeOption]:
        """The types that fleets are made of."""
        return self._probe.options

    def verify(self, fleet: Fleet) -> FleetVerdict:
        """Place all pods on the fleet, and again on what is left of it after each loss that it must stand."""
        key = fleet.key()
        if key not in self._known:
            self._known[key] = self._verify(fleet)
        return self._known[key]

    def has_verified(self, fleet: Fleet) -> bool:
        """Whether the verdict about a fleet is there."""
        return fleet.key() in self._known

    def _verify(self, fleet: Fleet) -> FleetVerdict:
        simulation, pending = self.run(fleet)
        verdict = FleetVerdict(fleet, pending, simulation=simulation if not pending else None)
        if pending:
            return verdict
        for loss, zone, left in self._losses(fleet):
            _, missing = self.run(left)
            floor = self._demands.survive_priority
            missing = [pod for pod in missing if floor is None or pod.priority >= floor]
            if missing:
                return FleetVerdict(fleet, missing, loss, zone)
        return verdict

    def _losses(self, fleet: Fleet) -> Iterator[tuple[str, str | None, Fleet]]:
        if self._demands.survive == ANY_ZONE:
            for zone in fleet.zones():
                yield f"without zone {zone}", zone, fleet.without_zone(zone)
        elif self._demands.survive == ANY_NODE:
            for group, _ in fleet.key():
                name = self.options[group.option].type.name
                yield f"without a node of type {name}", None, fleet.changed({group: -1})

    def run(self, fleet: Fleet) -> tuple[Simulation | None, list[Pod]]:
        """Place all pods on a fleet; returns the simulation and the pods that stay pending."""
        objects = fleet_objects(fleet, self.options, self._demands.headroom)
        if not objects and not self._given.kept_nodes:
            return None, [one.pod for one in self._probe.classes for _ in range(one.count)]
        self.runs += 1
        everything = [*self._given.kept, *objects, *self._given.workload]
        simulation = self._settings.simulation(everything, pods_end=False)
        simulation.proceed()
        left_out = self._probe.unplaceable_keys
        waiting = [pod for pod in simulation.cluster.list("Pod") if is_waiting(pod)]
        if left_out:
            waiting = [pod for pod in waiting if class_key(pod) not in left_out]
        return simulation, waiting
