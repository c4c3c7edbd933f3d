"""Stage: a cluster at one moment that can be changed to see the consequences.

Every question begins here: `begin` has the scheduler try the pods that wait, as `bayplan simulate`
does, so all questions are about the same cluster. Running pods stay where they are unless a change
moves them. Time advances only as far as the scheduler needs it: no pod finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory.absent_owners import is_bare, stays_with_node, successor_of
from ..cluster.memory.object_store import MemoryCluster
from ..cluster.memory.pod_index import is_there
from ..cluster.memory.refusals import AdmissionRefusal
from ..cluster.objects.object_index import ClusterObject
from ..errors import InputError
from ..manifests.timeline import InputObject, ObjectPatch, TimelineTarget, created_at
from ..sim import GroupOutcome, Timeline, TimelineEvent
from ..sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ..sim.totals import ClusterTotals
from ..sim.world import is_waiting
from ..trials import SettledPods, Settlement, TrialCluster
from .budget_effects import BudgetCounts
from .courses import Course
from .node_use import cluster_totals

PlaceOf = Callable[[InputObject], str]


@dataclass(frozen=True)
class PodPlaces:
    """The pods of a cluster at one moment. Objects are immutable: a pod that is the same object later is unchanged."""

    pods: Mapping[tuple[str, str], Pod]
    """By namespace and name, those included that have finished or are terminating."""
    messages: Mapping[str, str]
    """By uid, why a pod is pending."""

    @cached_property
    def waiting(self) -> dict[str, str]:
        """The pending pods by `namespace/name`, with the reason."""
        return {
            pod.key: self.message_of(pod)
            for pod in self.pods.values()
            if not pod.node_name and is_there(pod)
        }

    @property
    def running(self) -> int:
        """Number of pods with a node."""
        return sum(1 for pod in self.pods.values() if pod.node_name and is_there(pod))

    def message_of(self, pod: Pod) -> str:
        """Reason why the pod is pending; empty if it is not, or was not tried."""
        return self.messages.get(pod.uid, "")


class Stage:
    """A cluster of `objects` and the scheduler of `settings`. The given objects are never modified.

    With `as_is`, questions are about the cluster as it was read: no waiting pod is placed before them. Raises
    InputError for a Timeline: the question is about one moment, before later events.
    """

    def __init__(
        self,
        objects: Iterable[InputObject],
        settings: Settings = DEFAULT_SETTINGS,
        place_of: PlaceOf | None = None,
        *,
        as_is: bool = False,
    ) -> None:
        self.settings = settings
        self.settlement = Settlement(as_is=as_is, kubernetes_version=settings.release.patch)
        """Result for the waiting pods in `begin`."""
        present = _at_once(objects, place_of or (lambda obj: ""))
        self.simulation = settings.simulation(present, place_of, pods_end=False)
        self.reasons: dict[str, str] = {}
        """Reason why a pod was removed from its node, by `namespace/name`."""
        self.lost: list[Pod] = []
        """Removed pods that no controller recreates."""
        self.notes: list[str] = []
        """Remarks on the changes that were made."""
        self.courses: list[Course] = []
        """Courses of the changes that are made in steps."""
        self.on_progress: OnProgress | None = None
        """Called while such a change is made."""
        self.groups: list[GroupOutcome] = []
        """The pod groups when it settled last."""
        self._settled = SettledPods()
        self.simulation.begin()

    @property
    def cluster(self) -> MemoryCluster:
        return self.simulation.cluster

    @cached_property
    def budgets(self) -> BudgetCounts:
        """The disruption budgets, counted from the first call on."""
        return BudgetCounts(self.cluster)

    def begin(self, on_progress: OnProgress | None = None) -> None:
        """Place the waiting pods, unless the question is about the cluster as it was read."""
        if self.settlement.as_is:
            waiting = sum(map(is_waiting, self.cluster.list("Pod")))
            self.settlement = Settlement(waiting=waiting, as_is=True, **self._beside())
            self.groups = self.simulation.group_outcomes()
            return
        self.settle(on_progress)
        placed, pending = len(self._settled.placed), len(self._settled.pending)
        self.settlement = Settlement(
            waiting=placed + pending,
            placed=placed,
            preempted=len(self.cluster.evictions),
            **self._beside(),
        )
        # The draws of ties after a change do not depend on the number of draws before it.
        self.simulation.scheduler.ties.restart()

    def _beside(self) -> dict[str, Any]:
        """Parts of a settlement besides numbers of pods."""
        return {
            "refused": self.refused,
            "remarks": list(self.simulation.remarks),
            "kubernetes_version": self.settings.release.patch,
        }

    @property
    def refused(self) -> list[AdmissionRefusal]:
        """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""
        return self.simulation.refusals

    def leave_waiting_alone(self) -> None:
        """Keep the scheduler from trying the pods that wait."""
        for pod in [pod for pod in self.cluster.list("Pod") if is_waiting(pod)]:
            self.simulation.scheduler.on_delete(pod)

    def settle(self, on_progress: OnProgress | None = None) -> None:
        """Run the scheduler until nothing changes."""
        self.simulation.proceed(on_progress)
        results = self.simulation.pod_results()
        self._settled = SettledPods.of(results, self.cluster.evictions)
        self.groups = self.simulation.group_outcomes()

    def view(self) -> TrialCluster:
        """A read-only view of the cluster as it is now; the stage must not be changed or run afterwards."""
        simulation = self.simulation
        view = TrialCluster((), self.settings, simulation.clock, simulation=simulation)
        view.settlement, view.settled = self.settlement, self._settled
        return view

    def places(self) -> PodPlaces:
        """The placements, as they were settled last."""
        return PodPlaces(self.cluster.by_name("Pod"), self._settled.pending)

    def totals(self) -> ClusterTotals:
        """The resources of all nodes as they are."""
        return cluster_totals(self.simulation.scheduler.cache.table)

    # Changes

    def add(self, objects: Sequence[ClusterObject]) -> None:
        """Add objects."""
        self.simulation.happen(TimelineEvent(0, add=tuple(objects)))

    def patch(self, ref: TimelineTarget, patch: Mapping[str, Any]) -> None:
        """Apply a JSON merge patch to an object."""
        self.simulation.happen(TimelineEvent(0, change=(ObjectPatch(ref, patch),)))

    def remove(self, ref: TimelineTarget) -> None:
        """Delete an object, as `kubectl delete` does."""
        self.simulation.happen(TimelineEvent(0, remove=(ref,)))

    def update_node(self, node: Node) -> None:
        """Replace a node."""
        self.cluster.update(node)

    def evict(self, pod: Pod, why: str) -> Pod:
        """Remove the pod from its node at once; a pending copy takes its place."""
        self.budgets.follow(pod)
        self.budgets.take(pod)
        return self.exchange(pod, successor_of(pod), why)

    def exchange(self, pod: Pod, successor: Pod, why: str) -> Pod:
        """Delete the pod and add another of its name."""
        self._take_off(pod, why)
        return self._add(successor)

    def drive_off(self, pod: Pod, why: str) -> bool:
        """Remove the pod from its node permanently or, if a controller recreates it, as an eviction does.

        False for a pod that stays with its node, and ends with it.
        """
        if stays_with_node(pod):
            self._take_off(pod, why)
            return False
        if not is_bare(pod):
            self.evict(pod, why)
            return True
        self.budgets.follow(pod)
        self.budgets.take(pod)
        self.lost.append(pod)
        self._take_off(pod, f"{why}: not recreated")
        return True

    def pods_on(self, node_name: str) -> list[Pod]:
        """The pods on a node, without finished and terminating ones."""
        row = self.simulation.scheduler.cache.table.row_of.get(node_name)
        if row is None:
            return []
        held = self.simulation.scheduler.cache.table.pods[row].values()
        stored = (self.cluster.get("Pod", pod.namespace, pod.name) for pod in held)
        return [pod for pod in stored if pod is not None and is_there(pod)]

    def _take_off(self, pod: Pod, why: str) -> None:
        self.reasons[pod.key] = why
        self.cluster.delete(pod)

    def _add(self, pod: Pod) -> Pod:
        if self.cluster.get("Pod", pod.namespace, pod.name) is None:
            self.simulation.happen(TimelineEvent(0, add=(pod,)), is_replacement=True)
        stored = self.cluster.get("Pod", pod.namespace, pod.name)
        assert isinstance(stored, Pod), "it was just added"
        return stored


def _at_once(objects: Iterable[InputObject], place_of: PlaceOf) -> list[ClusterObject]:
    """The current objects."""
    present: list[ClusterObject] = []
    for obj in objects:
        if isinstance(obj, Timeline):
            if obj.stages:
                continue  # in a question pods are ready and do not end
            place = place_of(obj)
            expected = (
                "expected a cluster at one moment; got a Timeline, which `bayplan simulate` plays; "
                "its --until and --to write the cluster at a moment"
            )
            raise InputError(f"{place}: {expected}" if place else expected)
        if not obj.annotations or not created_at(obj):
            present.append(obj)
    return present
