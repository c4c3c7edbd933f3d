"""Stage: a cluster at one moment, in which things are changed to see what follows.

Pods that run stay where they are, unless a change moves them; pods that wait are tried. Time passes only as far as
the scheduler needs it: no pod runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory import ClusterObject, MemoryCluster
from ..errors import InputError
from ..sim import Timeline, TimelineEvent
from ..sim.timeline import Change, ObjectRef, created_at
from ..sim.world import InputObject
from .owners import AbsentOwners, is_there, successor_of
from .settings import DEFAULT_SETTINGS, OnProgress, Settings

PlaceOf = Callable[[InputObject], str]


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where a pod is; for one that waits, why."""

    pod: Pod
    message: str = ""

    @property
    def is_waiting(self) -> bool:
        return not self.pod.node_name


class Stage:
    """A cluster of `objects` and the scheduler of `settings`. Nothing that is done here reaches the objects.

    InputError for a Timeline: a question is about one moment. What comes later is not there yet.
    """

    def __init__(
        self,
        objects: Iterable[InputObject],
        settings: Settings = DEFAULT_SETTINGS,
        place_of: PlaceOf | None = None,
    ) -> None:
        self.settings = settings
        present = _at_once(objects, place_of or (lambda obj: ""))
        self.simulation = settings.simulation(present, place_of, pods_end=False)
        self.reasons: dict[str, str] = {}
        """Why a pod was taken off its node, by `namespace/name`."""
        self.taken_off: list[Pod] = []
        """The pods that were, against their budgets."""
        self.lost: list[Pod] = []
        """Those of them that nobody makes anew."""
        self._replaced: set[str] = set()
        self.simulation.begin()
        self.cluster.watch(AbsentOwners(self.cluster, self._make_anew), replay=False)

    @property
    def cluster(self) -> MemoryCluster:
        return self.simulation.cluster

    def settle(self, on_progress: OnProgress | None = None) -> dict[str, PodPlace]:
        """Let the scheduler work until nothing changes any more; returns where the pods are, by key."""
        report = self.simulation.run(on_progress)
        messages = {result.pod.uid: result.attempt.message for result in report.pending}
        return {
            pod.key: PodPlace(pod, messages.get(pod.uid, ""))
            for pod in self.cluster.list("Pod")
            if is_there(pod)
        }

    # What can be done to it

    def add(self, objects: Sequence[ClusterObject]) -> None:
        """Objects come."""
        self.simulation.happen(TimelineEvent(0, add=tuple(objects)))

    def patch(self, ref: ObjectRef, patch: Mapping[str, Any]) -> None:
        """A JSON merge patch is laid over an object."""
        self.simulation.happen(TimelineEvent(0, change=(Change(ref, patch),)))

    def remove(self, ref: ObjectRef) -> None:
        """An object is deleted, as `kubectl delete` does."""
        self.simulation.happen(TimelineEvent(0, remove=(ref,)))

    def update_node(self, node: Node) -> None:
        """A node is not as it was."""
        self.cluster.update(node)

    def evict(self, pod: Pod, why: str) -> Pod:
        """The pod goes from its node at once, and one like it waits in its stead."""
        self.taken_off.append(pod)
        return self.exchange(pod, successor_of(pod), why)

    def exchange(self, pod: Pod, successor: Pod, why: str) -> Pod:
        """The pod goes, and another of its name comes instead."""
        self._replaced.add(pod.key)
        self._take_off(pod, why)
        self._replaced.discard(pod.key)
        return self._add(successor)

    def lose(self, pod: Pod, why: str) -> None:
        """The pod goes from its node, and nobody makes another."""
        self.taken_off.append(pod)
        self.lost.append(pod)
        self._take_off(pod, why)

    def dismiss(self, pod: Pod, why: str) -> None:
        """The pod goes from its node, where it is not wanted any more."""
        self._take_off(pod, why)

    def pods_on(self, node_name: str) -> list[Pod]:
        """The pods on a node, but for those that are finished or going."""
        row = self.simulation.scheduler.cache.table.row_of.get(node_name)
        if row is None:
            return []
        held = self.simulation.scheduler.cache.table.pods[row].values()
        stored = (self.cluster.get("Pod", pod.namespace, pod.name) for pod in held)
        return [pod for pod in stored if pod is not None and is_there(pod)]

    def _take_off(self, pod: Pod, why: str) -> None:
        self.reasons[pod.key] = why
        self.cluster.delete(pod)

    def _make_anew(self, pod: Pod) -> None:
        if pod.key not in self._replaced:
            self._add(pod)

    def _add(self, pod: Pod) -> Pod:
        if self.cluster.get("Pod", pod.namespace, pod.name) is None:
            self.add((pod,))
        stored = self.cluster.get("Pod", pod.namespace, pod.name)
        assert isinstance(stored, Pod), "it was just added"
        return stored


def _at_once(objects: Iterable[InputObject], place_of: PlaceOf) -> list[ClusterObject]:
    """The objects that are there now."""
    present: list[ClusterObject] = []
    for obj in objects:
        if isinstance(obj, Timeline):
            place = place_of(obj)
            expected = (
                "expected a cluster at one moment; got a Timeline, which `bayplan simulate` plays"
            )
            raise InputError(f"{place}: {expected}" if place else expected)
        if not created_at(obj):
            present.append(obj)
    return present
