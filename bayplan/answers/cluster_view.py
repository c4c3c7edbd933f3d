"""Cluster view: a read-only cluster at one moment with a scheduler to query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias

from msgspec.structs import replace

from ..api.pod import EMPTY_STATUS, Pod
from ..clock import Clock, ManualClock
from ..cluster.objects import ClusterObject
from ..config import SchedulerConfiguration, default_config
from ..framework import Status
from ..runtime import ProfileRuntime
from ..scheduler import (
    FirstByName,
    GroupInquiry,
    Inquiry,
    PluginSource,
    Scheduler,
    SchedulerSettings,
    build_scheduler,
)
from ..scheduler.extender import MakeTransport, make_http_transport
from ..scheduler.inquiry import profile_of
from ..sim import Simulation
from ..sim.settings import Settings
from ..table import NodeTable
from .settlement import AS_READ, SettledPods
from .still_cluster import StillCluster

Step: TypeAlias = tuple[ClusterObject | None, ClusterObject | None]
"""An object and its replacement; None means absent."""


class ClusterView:
    """The cluster made of `objects`, as the scheduler sees it. Every node is judged, regardless of
    percentageOfNodesToScore; queries have no side effects.

    Instead of objects it can have the cluster of a `simulation`, which must not run any more: both have one cache, so
    that its nodes and running pods need not be counted again.
    """

    def __init__(
        self,
        objects: Iterable[ClusterObject],
        config: SchedulerConfiguration | None = None,
        *,
        plugins: Iterable[PluginSource] = (),
        feature_gates: Mapping[str, bool] | None = None,
        clock: Clock | None = None,
        extender_transport: MakeTransport = make_http_transport,
        simulation: Simulation | None = None,
    ) -> None:
        config = config or default_config(feature_gates)
        self.config = config
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
                plugins=plugins,
                feature_gates=feature_gates,
                explain=True,
                faults_are_fatal=True,
                extender_transport=extender_transport,
            ),
        )
        self.cluster.watch(self.scheduler, replay=simulation is None)
        if simulation is not None:
            waiting = [pod for pod in self.cluster.list("Pod") if not pod.node_name]
            _take_over(waiting, simulation.scheduler, self.scheduler)
        self.scheduler.faults.check()
        self._versions = count(1)
        self.settlement = AS_READ
        """Result for the waiting pods before the question."""
        self.settled = SettledPods()

    @classmethod
    def with_settings(
        cls,
        objects: Iterable[ClusterObject],
        settings: Settings,
        clock: Clock | None = None,
        simulation: Simulation | None = None,
    ) -> ClusterView:
        """The cluster of `objects`, for the scheduler of these settings."""
        return cls(
            objects,
            settings.config,
            plugins=settings.plugins,
            feature_gates=settings.feature_gates,
            clock=clock,
            simulation=simulation,
        )

    @property
    def table(self) -> NodeTable:
        """The node table."""
        return self.scheduler.cache.table

    def pods(self) -> list[Pod]:
        """All pods of the cluster."""
        return list(self.cluster.list("Pod"))

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
        """Replace an object for good; None stands for one that does not exist."""
        if new is None:
            if old is not None:
                self.cluster.take_out(self.cluster.get(old.kind, old.namespace, old.name))  # type: ignore[arg-type]  # it was put in before
            return
        if isinstance(new, Pod):
            # The queue ignores an update with the same resource version.
            new = new.replace(resource_version=f"{next(self._versions)}?")
        self.cluster.put_in(new)


def _take_over(waiting: Sequence[Pod], old: Scheduler, new: Scheduler) -> None:
    """Give the pods without a node to another scheduler with the same cache, where they come one after the other."""
    for held in list(old.waiting_pods):
        old.cache.forget_pod(held.pod)
    for pod in waiting:
        old.cache.pod_groups.remove_pod(pod)
    for pod in waiting:
        new.on_add(pod)


def _judging_all_nodes(config: SchedulerConfiguration) -> SchedulerConfiguration:
    profiles = tuple(replace(p, percentage_of_nodes_to_score=None) for p in config.profiles)
    return replace(config, percentage_of_nodes_to_score=None, profiles=profiles)
