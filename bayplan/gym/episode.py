"""Episode: a simulation that stops at each pod with a feasible node, so that an agent can choose."""

from __future__ import annotations

import numpy as np

from ..api.pod import Pod
from ..engine import Decision
from ..framework import MAX_SCORE
from ..manifests.timeline import InputObject
from ..scheduler import Attempt, Inquiry, QueuedPodInfo, RandomTies, TieBreak
from ..scheduler.select_host import Ordered
from ..sim import SimulationReport
from ..sim.measures.amounts import free_parts
from ..sim.settings import Settings
from ..table import Bools, Ints, NodeTable

NO_ROW = -1


class AgentChoice(TieBreak):
    """Chooses the row that is set, if the pod fits there; otherwise another tie-break chooses among the best."""

    reads_others = True

    def __init__(self, otherwise: TieBreak) -> None:
        self.row = NO_ROW
        self._otherwise = otherwise

    def choose(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        place = int(np.searchsorted(rows, self.row))
        if self.row != NO_ROW and place < len(rows) and rows[place] == self.row:
            return place
        return self._otherwise.choose(tied, rows, table, search)

    def choose_best(self, decision: Decision, table: NodeTable, search: Ordered) -> int:
        if self.row != NO_ROW and decision.ranked.total_at(self.row) >= 0:
            return self.row
        return self._otherwise.choose_best(decision, table, search)


class PodToPlace:
    """A popped pod, with the present scores of the nodes."""

    __slots__ = ("mask", "queued", "scores")

    def __init__(self, queued: QueuedPodInfo, scores: Ints) -> None:
        self.queued = queued
        self.scores = scores
        """int64 per row: the scheduler's own total; negative where the pod does not fit."""
        self.mask: Bools = scores >= 0
        """bool per row: the pod fits."""

    @property
    def pod(self) -> Pod:
        return self.queued.pod


def has_choice(pod: Pod) -> bool:
    """Whether a node is chosen for the pod by its score.

    Members of pod groups are placed with their group; pods that name their node, or are nominated to one, go there.
    """
    is_bound_to_one = bool(pod.spec.pin or pod.nominated_node_name)
    return not is_bound_to_one and pod.spec.scheduling_group is None


class Episode:
    """One run of a workload from its start to its end."""

    def __init__(self, objects: list[InputObject], settings: Settings) -> None:
        self._choice = AgentChoice(RandomTies(settings.seed or 0))
        self.simulation = settings.simulation(objects, ties=self._choice)
        self.simulation.begin()

    @property
    def table(self) -> NodeTable:
        """The nodes of the scheduler."""
        return self.simulation.scheduler.cache.table

    def free_parts(self) -> dict[str, Ints]:
        """Free amounts of resources that a plugin divides into parts, such as GPUs: int64 per row and part."""
        table, found = self.table, dict[str, Ints]()
        live = np.flatnonzero(table.live)
        names = [table.names[i] for i in live]
        for name, parts in free_parts(self.simulation.scheduler, names).items():
            found[name] = np.zeros((len(table), parts.shape[1]), dtype=np.int64)
            found[name][live] = parts
        return found

    @property
    def highest_score(self) -> int:
        """The most that the scores of a profile add up to."""
        profiles = self.simulation.scheduler.profiles.values()
        return max(
            MAX_SCORE * sum(weight for _, weight in profile.scoring.scores) for profile in profiles
        )

    def next_pod(self) -> PodToPlace | None:
        """Continue to the next pod that fits on some node and is placed by scores; None at the end. Other pods are
        scheduled as usual.
        """
        simulation = self.simulation
        while (queued := simulation.next_pod()) is not None:
            if has_choice(queued.pod):
                found = PodToPlace(queued, Inquiry(simulation.scheduler, queued.pod).totals())
                if found.mask.any():
                    return found
            simulation.try_pod(queued)
        return None

    def place(self, found: PodToPlace, row: int = NO_ROW) -> Attempt | None:
        """Place the pod on the node of `row`, or where the scheduler would."""
        self._choice.row = row
        try:
            return self.simulation.try_pod(found.queued)
        finally:
            self._choice.row = NO_ROW

    def report(self) -> SimulationReport:
        """The result, after the end."""
        return self.simulation.run()
