"""Shadow: a scheduler beside that of the simulation, on which an autoscaler tries nodes that do not exist.

It has the same configuration and plugins, and follows the cluster of the simulation. Its cluster also has the nodes
that boot, and for the time of a question the nodes that could be launched; pods are put on nodes on trial. Nothing of
it reaches the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from ..answers.still_cluster import StillCluster
from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.pod_groups import labelled_group_of, pod_group_of
from ..clock import Clock
from ..cluster.objects import ClusterObject, WatchHandler
from ..scheduler import Decision, FirstByName, Inquiry, SchedulerSettings, build_scheduler
from ..scheduler.inquiry import fill_in_order
from ..sim.settings import Settings
from ..table import Bools, Ints, NodeTable


class ShadowScheduler:
    """Answers where a pod could run, with the scheduler's own filters. Watches the simulation's cluster."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        config = settings.effective_config
        # An answer is about all nodes, also in a profile that samples them.
        profiles = tuple(replace(p, percentage_of_nodes_to_score=None) for p in config.profiles)
        self._cluster = StillCluster()
        self._scheduler = build_scheduler(
            replace(config, percentage_of_nodes_to_score=None, profiles=profiles),
            self._cluster,
            SchedulerSettings(
                clock=clock,
                ties=FirstByName(),
                plugins=settings.plugins,
                feature_gates=settings.feature_gates,
                faults_are_fatal=True,
            ),
        )
        self._cluster.watch(ShadowFeed(self._scheduler))
        self._depth = 0
        """Of trials within each other."""
        self._on_trial: list[Pod] = []
        self._lifted: list[Pod] = []
        self._moved: dict[str, str] = {}
        """By uid: the nodes of pods that are still elsewhere in the simulation."""

    @property
    def table(self) -> NodeTable:
        """The nodes that exist, boot, or are tried."""
        return self._scheduler.cache.table

    @property
    def version(self) -> int:
        """Changes with every object other than a pod or a node."""
        return self._cluster.version

    @property
    def profiles(self) -> frozenset[str]:
        """The names of the schedulers that the configuration has."""
        return frozenset(self._scheduler.profiles)

    # The cluster of the simulation

    def on_add(self, obj: Any) -> None:
        """Take over an object."""
        self._cluster.put_in(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Take over a change."""
        if isinstance(new, Pod) and new.uid in self._moved:
            if new.is_terminating or new.is_finished:
                self.on_delete(new)
                return
            new = new.with_node(self._moved[new.uid])
        self._cluster.put_in(new)

    def on_delete(self, obj: Any) -> None:
        """Take over a deletion."""
        if isinstance(obj, Pod):
            self._moved.pop(obj.uid, None)
        known = self._cluster.get(obj.kind, obj.namespace, obj.name)
        if known is not None:
            self._cluster.take_out(known)

    def move(self, pod: Pod, node_name: str) -> None:
        """Have a pod where it will be created again, from now until it is evicted."""
        self._cluster.take_out(pod)
        self._cluster.put_in(pod.with_node(node_name))
        self._moved[pod.uid] = node_name

    # Questions

    def put(self, objects: Iterable[ClusterObject]) -> None:
        """Add or replace objects that the simulation does not have."""
        for obj in objects:
            self._cluster.put_in(obj)

    def drop(self, objects: Iterable[ClusterObject]) -> None:
        """Remove such objects."""
        for obj in objects:
            self.on_delete(obj)

    def ask(self, pod: Pod) -> Inquiry:
        """The scheduler's inquiry about a pod now."""
        return Inquiry(self._scheduler, pod)

    def totals(self, pod: Pod) -> Ints:
        """int64 per row of the table: the score of a node, negative where the pod does not fit."""
        return self.decide(pod).totals

    def decide(self, pod: Pod) -> Decision:
        """The same as a decision: the best node, and the totals on demand."""
        found = Inquiry(self._scheduler, pod).decision()
        self._scheduler.faults.check()
        return found

    def copies(self, pod: Pod) -> Ints | None:
        """int64 per row: how many pods like this one fit beside each other; None if more than amounts decides."""
        return Inquiry(self._scheduler, pod).copies()

    def fill(
        self, pods: Sequence[Pod], order: Ints, places: Sequence[Ints], ranks: Ints
    ) -> Bools | None:
        """Which pods get a node on each of some sets of rows (`fill_in_order`); None if there is no quick answer."""
        return fill_in_order(self._scheduler, pods, order, places, ranks)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Pods that are placed or taken off within it are back where they were at its end. Trials may be nested."""
        placed, lifted = len(self._on_trial), len(self._lifted)
        if not self._depth:
            self._trial = self._scheduler.cache.begin_trial(hides_terms=False)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.take_back(len(self._on_trial) - placed)
            if not self._depth:
                self._scheduler.cache.end_trial()
            for pod in self._lifted[lifted:]:
                if self._depth:
                    self._trial.restore(pod)
                self._scheduler.cache.pod_groups.set_pod(pod)
            del self._lifted[lifted:]

    def place(self, pod: Pod, node_name: str) -> None:
        """Put a waiting pod on a node, within a trial."""
        self._trial.assume(pod, pod.with_node(node_name))
        self._on_trial.append(pod)

    def take_back(self, count: int) -> None:
        """Take the last `count` placed pods off their nodes."""
        for pod in reversed(self._on_trial[len(self._on_trial) - count :]):
            self._trial.forget(pod)
        del self._on_trial[len(self._on_trial) - count :]

    def lift(self, pod: Pod) -> Pod:
        """Take a running pod off its node, within a trial; returns the same pod, waiting."""
        self._trial.remove(pod)
        self._lifted.append(pod)
        return pod.replace(node_name="", status=EMPTY_STATUS)

    def pods_on(self, node_name: str) -> Mapping[str, Pod]:
        """The pods on a node, by uid; not to be kept."""
        row = self.table.row_of.get(node_name)
        return {} if row is None else self.table.pods[row]

    def node(self, name: str) -> Node | None:
        """A node that exists or boots."""
        return self._cluster.get("Node", "", name)


class ShadowFeed:
    """Passes events to a scheduler that has no pod to place, without the pods that do not count for others."""

    def __init__(self, scheduler: WatchHandler) -> None:
        self._scheduler = scheduler

    def on_add(self, obj: Any) -> None:
        """An object came."""
        if not isinstance(obj, Pod) or counts_for_others(obj):
            self._scheduler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """An object changed."""
        if not isinstance(new, Pod):
            self._scheduler.on_update(old, new)
            return
        did, does = counts_for_others(old), counts_for_others(new)
        if did and does:
            self._scheduler.on_update(old, new)
        elif does:
            self._scheduler.on_add(new)
        elif did:
            self._scheduler.on_delete(old)

    def on_delete(self, obj: Any) -> None:
        """An object went."""
        if not isinstance(obj, Pod) or counts_for_others(obj):
            self._scheduler.on_delete(obj)


def counts_for_others(pod: Pod) -> bool:
    """Whether the place of another pod may depend on it: it has a node, is nominated to one, or is of a group."""
    return bool(
        pod.node_name or pod.nominated_node_name or pod_group_of(pod) or labelled_group_of(pod)
    )
