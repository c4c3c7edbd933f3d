"""Trial cluster: a scheduler on a copy of a cluster: make a change, get an answer, undo the change.

The one hypothetical cluster. Questions replace objects for a while (`changed`). Autoscalers follow a simulation, add
nodes that could be launched (`put`, `drop`), and place pods or take them off within a `trial`, which changes only the
table of nodes. Nothing of it reaches the cluster that was copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.pod_groups import GroupPreemptor, labelled_group_of, pod_group_of
from ..clock import Clock, ManualClock
from ..cluster.memory.refusals import AdmissionRefusal
from ..cluster.objects.object_index import ClusterObject, ObjectIndex
from ..config.types import SchedulerConfiguration
from ..framework import Status
from ..framework.handle import NoClient
from ..releases.release import DEFAULT_RELEASE
from ..runtime import ProfileRuntime
from ..scheduler import (
    Decision,
    FirstByName,
    GroupInquiry,
    Inquiry,
    Scheduler,
    SchedulerSettings,
    build_scheduler,
)
from ..scheduler.extender import MakeTransport, make_http_transport
from ..scheduler.inquiry import fill_in_order, profile_of
from ..sim import PodResult, Simulation
from ..sim.html_summary import ShownAnswer, as_release
from ..sim.settings import DEFAULT_SETTINGS, Settings
from ..table import Bools, Ints, NodeTable

Step: TypeAlias = tuple[ClusterObject | None, ClusterObject | None]
"""An object and its replacement; None if it is absent."""


class Settlement(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods that waited when the cluster was read, and those that were placed before the question."""

    waiting: int = 0
    placed: int = 0
    preempted: int = 0
    as_is: bool = False
    """Whether the question is about the cluster as read, without placing pods."""
    refused: list[AdmissionRefusal] = []
    """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""
    remarks: list[str] = []
    """Notes on objects of the input that are not simulated as they are."""
    kubernetes_version: str = DEFAULT_RELEASE.patch
    """The kube-scheduler whose decisions these are, and those of the answer."""

    @property
    def notices(self) -> list[str]:
        """Remarks to print with the answer."""
        return [*(f"refused: {refusal}" for refusal in self.refused), *self.remarks]

    @property
    def text(self) -> str:
        """`after placing 21 of 25 waiting pods`, with the release unless it is the default one; empty without both."""
        return ", ".join(filter(None, (self._placed_text, as_release(self.kubernetes_version))))

    @property
    def _placed_text(self) -> str:
        if not self.waiting:
            return ""
        if self.as_is:
            return f"about the cluster as it was read, in which {_pods(self.waiting)} wait"
        if not self.placed:
            text = f"after trying {_pods(self.waiting, 'waiting')}: none fits"
        elif self.placed == self.waiting:
            text = f"after placing {_pods(self.placed, 'waiting')}"
        else:
            text = f"after placing {self.placed:,} of {_pods(self.waiting, 'waiting')}"
        return f"{text}, preempting {self.preempted:,}" if self.preempted else text


class SettledAnswer(ShownAnswer):
    """An answer to a question before which the waiting pods were placed."""

    __slots__ = ()

    settled: Settlement

    @property
    def release(self) -> str:
        """The kube-scheduler whose decisions the answer is made of."""
        return self.settled.kubernetes_version


NONE_WAITED = Settlement()
AS_READ = Settlement(as_is=True)


def _pods(number: int, which: str = "") -> str:
    return f"{number:,} {which} pod{'' if number == 1 else 's'}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class SettledPods:
    """The pods that waited when the cluster was read, by uid.

    Every question is about one moment: the cluster after the scheduler has tried all pods that wait.
    """

    placed: Mapping[str, list[Pod]] = field(default_factory=dict)
    """The pods that got a node, each with those that were preempted for it."""
    pending: Mapping[str, str] = field(default_factory=dict)
    """The pods that did not, each with the reason."""

    @classmethod
    def of(
        cls, results: Iterable[PodResult], evictions: Iterable[tuple[Pod, Pod | GroupPreemptor]]
    ) -> SettledPods:
        """From the results of placing them, and the pods that were preempted with their preemptors."""
        placed: dict[str, list[Pod]] = {}
        pending: dict[str, str] = {}
        for result in results:
            if result.is_placed:
                placed[result.pod.uid] = []
            else:
                pending[result.pod.uid] = result.attempt.message
        for victim, preemptor in evictions:
            if preemptor.uid in placed:
                placed[preemptor.uid].append(victim)
        return cls(placed, pending)


class StillCluster(ObjectIndex, NoClient):
    """The objects of a trial cluster: the lister has all of them, writes of the scheduler are discarded."""

    @classmethod
    def of(cls, cluster: ObjectIndex) -> StillCluster:
        """A cluster with the objects of `cluster`, whose watchers are not notified of temporary replacements."""
        still = cls()
        still._objects, still._spaces = cluster._objects, cluster._spaces
        still._log = cluster._log
        return still


class TrialCluster:
    """The cluster made of `objects`, for the scheduler of these settings. Every node is judged, regardless of
    percentageOfNodesToScore; questions have no side effects.

    Instead of objects it can have the cluster of a `simulation`, which must not run any more: both have one cache, so
    that its nodes and running pods need not be counted again. It can also watch the cluster of one that runs.
    Unless `in_full`, attempts have no explanations, and pods that wait and do not count for others are not queued.
    """

    def __init__(
        self,
        objects: Iterable[ClusterObject] = (),
        settings: Settings = DEFAULT_SETTINGS,
        clock: Clock | None = None,
        *,
        simulation: Simulation | None = None,
        extender_transport: MakeTransport = make_http_transport,
        in_full: bool = True,
    ) -> None:
        self.config = config = settings.effective_config
        self.is_sampled = any(config.percentage_for(p) is not None for p in config.profiles)
        """Whether percentageOfNodesToScore would limit the search to a share of the nodes."""
        self.has_extenders = bool(config.extenders)
        self.cluster = StillCluster() if simulation is None else StillCluster.of(simulation.cluster)
        for obj in objects:
            self.cluster.put_in(obj)
        self.scheduler: Scheduler = build_scheduler(
            _judging_all_nodes(config),
            self.cluster,
            SchedulerSettings(
                clock=clock or ManualClock(),
                cache=simulation.scheduler.cache if simulation is not None else None,
                ties=FirstByName(),
                plugins=settings.plugins,
                feature_gates=settings.feature_gates,
                explain=in_full,
                faults_are_fatal=True,
                extender_transport=extender_transport,
            ),
        )
        feed = self.scheduler if in_full else _FeedOfOthers(self.scheduler)
        self.cluster.watch(feed, replay=simulation is None)
        if simulation is not None:
            waiting = [pod for pod in self.cluster.list("Pod") if not pod.node_name]
            _take_over(waiting, simulation.scheduler, self.scheduler)
        self.scheduler.faults.check()
        self._versions = count(1)
        self.settlement = replace(AS_READ, kubernetes_version=settings.release.patch)
        """Result for the waiting pods before the question."""
        self.settled = SettledPods()
        self._depth = 0
        """Depth of nested trials."""
        self._on_trial: list[Pod] = []
        self._lifted: list[Pod] = []
        self._moved: dict[str, str] = {}
        """By uid: the nodes of pods that are still elsewhere in the cluster that is watched."""

    # The cluster

    @property
    def table(self) -> NodeTable:
        """The node table."""
        return self.scheduler.cache.table

    @property
    def version(self) -> int:
        """Changes with every object other than a pod or a node."""
        return self.cluster.version

    def pods(self) -> list[Pod]:
        """All pods of the cluster."""
        return list(self.cluster.list("Pod"))

    def pods_on(self, node_name: str) -> Mapping[str, Pod]:
        """The pods on a node, by uid; valid until the next change."""
        row = self.table.row_of.get(node_name)
        return {} if row is None else self.table.pods[row]

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return self.cluster.get("Node", "", name)

    def node_names(self) -> list[str]:
        """The names of all nodes."""
        return [node.name for node in self.cluster.list("Node")]

    def profile_of(self, pod: Pod) -> ProfileRuntime:
        """The profile of `pod`; raises InputError when there is none."""
        return profile_of(self.scheduler, pod)

    def plugin_args(self, pod: Pod, plugin: str) -> Any:
        """The arguments of a plugin in the profile of `pod`; None when it has none."""
        profile = self.config.profile_named(pod.scheduler_name)
        return None if profile is None else profile.plugin_config.get(plugin)

    # Answers

    def gate(self, pod: Pod) -> Status:
        """The PreEnqueue status of the pod; SUCCESS when nothing holds it back."""
        status = self.profile_of(pod).run_pre_enqueue(pod)
        self.scheduler.faults.check()
        return status

    def ask(self, pod: Pod) -> Inquiry:
        """The scheduler's inquiry about `pod` now."""
        return Inquiry(self.scheduler, pod)

    def ask_group(self, pods: Sequence[Pod]) -> GroupInquiry:
        """The scheduler's inquiry about the pod group whose members `pods` wait."""
        return GroupInquiry(self.scheduler, pods)

    def totals(self, pod: Pod) -> Ints:
        """int64 per row of the table: the score of a node, negative where the pod does not fit."""
        return self.decide(pod).ranked.totals()

    def decide(self, pod: Pod) -> Decision:
        """The decision about a pod: the best node, and the totals on demand."""
        found = Inquiry(self.scheduler, pod).decision()
        self.scheduler.faults.check()
        return found

    def copies(self, pod: Pod) -> Ints | None:
        """int64 per row: the number of copies of the pod that fit; None if more than amounts decides."""
        return Inquiry(self.scheduler, pod).copies()

    def fill(
        self, pods: Sequence[Pod], order: Ints, places: Sequence[Ints], ranks: Ints
    ) -> Bools | None:
        """The pods that get a node on each of some sets of rows (`fill_in_order`); None if there is no quick answer."""
        return fill_in_order(self.scheduler, pods, order, places, ranks)

    # Changes of objects

    @contextmanager
    def changed(self, steps: Iterable[Step]) -> Iterator[None]:
        """Replace some objects until the end of the block."""
        done: list[Step] = []
        try:
            for old, new in steps:
                self.replace_object(old, new)
                done.append((old, new))
            yield
        finally:
            for old, new in reversed(done):
                self.replace_object(new, old)

    @contextmanager
    def taken_off(self, pod: Pod) -> Iterator[Pod]:
        """The cluster in which `pod`, which has a node, is pending; yields the pending pod."""
        waiting = pod.replace(node_name="", status=EMPTY_STATUS)
        # Delete before adding: no pod ever moves from a node into the queue.
        with self.changed([(pod, None), (None, waiting)]):
            yield waiting

    def replace_object(self, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """Replace an object permanently; None stands for an absent object."""
        if new is None:
            if old is not None:
                self.cluster.take_out(self.cluster.get(old.kind, old.namespace, old.name))  # type: ignore[arg-type]  # it was put in before
            return
        if isinstance(new, Pod):
            # The queue ignores an update with the same resource version.
            new = new.replace(resource_version=f"{next(self._versions)}?")
        self.cluster.put_in(new)

    def put(self, objects: Iterable[ClusterObject]) -> None:
        """Add or replace objects."""
        for obj in objects:
            self.cluster.put_in(obj)

    def drop(self, objects: Iterable[ClusterObject]) -> None:
        """Remove such objects."""
        for obj in objects:
            self.on_delete(obj)

    # Trials: changes of the table alone

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Pods that are placed or taken off within it are back where they were at its end. Trials may be nested."""
        placed, lifted = len(self._on_trial), len(self._lifted)
        if not self._depth:
            self._trial = self.scheduler.cache.begin_trial(hides_terms=False)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.take_back(len(self._on_trial) - placed)
            if not self._depth:
                self.scheduler.cache.end_trial()
            for pod in self._lifted[lifted:]:
                if self._depth:
                    self._trial.restore(pod)
                self.scheduler.cache.pod_groups.set_pod(pod)
            del self._lifted[lifted:]

    def place(self, pod: Pod, node_name: str) -> None:
        """Put a waiting pod on a node, within a trial."""
        self._trial.assume(pod, pod.with_node(node_name))
        self._on_trial.append(pod)

    def place_again(self, pods: Iterable[Pod], node_name: str) -> None:
        """Count the host ports of placed pods anew: when their node is replaced within a trial, they are dropped."""
        for pod in pods:
            if pod.spec.host_ports:
                self._trial.forget(pod)
                self._trial.assume(pod, pod.with_node(node_name))

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

    # A cluster that is watched

    def on_add(self, obj: Any) -> None:
        """Take over an object."""
        self.cluster.put_in(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Take over a change."""
        if isinstance(new, Pod) and new.uid in self._moved:
            if new.is_terminating or new.is_finished:
                self.on_delete(new)
                return
            new = new.with_node(self._moved[new.uid])
        self.cluster.put_in(new)

    def on_delete(self, obj: Any) -> None:
        """Take over a deletion."""
        if isinstance(obj, Pod):
            self._moved.pop(obj.uid, None)
        known = self.cluster.get(obj.kind, obj.namespace, obj.name)
        if known is not None:
            self.cluster.take_out(known)

    def move(self, pod: Pod, node_name: str) -> None:
        """Have a pod where it will be created again, from now until it is evicted."""
        self.cluster.take_out(pod)
        self.cluster.put_in(pod.with_node(node_name))
        self._moved[pod.uid] = node_name


class _FeedOfOthers:
    """Passes changes on to a scheduler that has no pod to place, without the pods that do not count for others."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def on_add(self, obj: Any) -> None:
        """Handle an added object."""
        if not isinstance(obj, Pod) or counts_for_others(obj):
            self._scheduler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a changed object."""
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
        """Handle a deleted object."""
        if not isinstance(obj, Pod) or counts_for_others(obj):
            self._scheduler.on_delete(obj)


def counts_for_others(pod: Pod) -> bool:
    """Whether the place of another pod may depend on it: it has a node, is nominated to one, or is of a group."""
    return bool(
        pod.node_name or pod.nominated_node_name or pod_group_of(pod) or labelled_group_of(pod)
    )


def _take_over(waiting: Sequence[Pod], old: Scheduler, new: Scheduler) -> None:
    """Give the pods without a node to another scheduler with the same cache, which schedules them in turn."""
    for held in list(old.waiting_pods):
        old.cache.forget_pod(held.pod)
    for pod in waiting:
        old.cache.pod_groups.remove_pod(pod)
    for pod in waiting:
        new.on_add(pod)


def _judging_all_nodes(config: SchedulerConfiguration) -> SchedulerConfiguration:
    profiles = tuple(replace(p, percentage_of_nodes_to_score=None) for p in config.profiles)
    return replace(config, percentage_of_nodes_to_score=None, profiles=profiles)
