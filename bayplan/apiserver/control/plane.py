"""Plane: all controllers of the embedded cluster, and when they run.

Controllers record changes synchronously, and work in small steps between requests, so that clients
are served in between. With a manual clock nothing runs by itself: `settle` does it all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ...api.pod_stages import StageRule
from ...clock import Clock, LoopAlarm, Timers
from ...cluster.memory.controllers import Controllers
from ...cluster.memory.cron_job_controller import CronJobController
from ...cluster.memory.jobs import ended_as
from ...cluster.memory.protection import Protected, Protection
from ...cluster.memory.resource_claims import ClaimController
from ...cluster.memory.workload_pods import WORKLOAD_KINDS
from ...errors import BayplanError
from ..registry.object_registry import ObjectRegistry
from ..registry.server_fields import PROTECTED
from .embedded_cluster import LiveCluster
from .fake_kubelets import NodeAgents
from .garbage import GarbageCollector
from .namespaces import DefinitionController, NamespaceController, ServiceAccountController
from .new_objects import resource_named
from .node_controller import NodeController
from .recorder import EventSweeper
from .statuses import BudgetController, QuotaController, StatusController
from .workload_controllers import PersistentVolumes, WorkloadControllers

# Finalizers: finalizers of claims in use, of bound volumes, and of pod groups with members.
# Mirrors pkg/controller/volume/{pvcprotection,pvprotection} and pkg/controller/scheduling/podgroupprotection.


class ProtectionController(Protection):
    """Watches the cluster; `run_once` removes the finalizers of unused objects."""

    def __init__(self, cluster: LiveCluster) -> None:
        super().__init__(cluster)
        self._registry = cluster.registry

    def on_add(self, obj: Any) -> None:
        """Handle an object that may already be terminating."""
        if isinstance(obj, Protected) and obj.is_terminating:
            self._leaving[obj.kind, obj.namespace, obj.name] = None
            self.has_work = True

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a terminating object, or a finished pod."""
        self.on_add(new)
        super().on_update(old, new)

    def _release(self, obj: Protected) -> None:
        resource = resource_named(obj.kind)
        record = self._registry.get(resource, obj.namespace, obj.name)
        self._registry.drop_finalizer(resource, record, PROTECTED[resource.storage])


log = logging.getLogger(__name__)
MAX_ROUNDS = 10_000
MOMENT_S = 0.005


class Controller(Protocol):
    """A controller with recorded work, done in steps."""

    @property
    def has_work(self) -> bool:
        """Whether work is pending."""

    def run_once(self) -> object:
        """Do some of it."""


class ControlPlane:
    """The controllers of one cluster. With `runs_pods` False, bound pods stay pending, and
    terminating ones stay until a client removes them; with `grace` False, terminating pods leave at
    once. With `controllers` False there are kubelets only: the controllers are those of a client."""

    def __init__(
        self,
        cluster: LiveCluster,
        clock: Clock,
        runs_pods: bool = True,
        gates: Mapping[str, bool] | None = None,
        grace: bool = True,
        stages: Sequence[StageRule] = (),
        controllers: bool = True,
    ) -> None:
        self.clock = clock
        self.timers = Timers(clock)
        self.cluster = cluster
        registry, store = cluster.registry, cluster.registry.store
        self._controllers: list[Controller] = [DefinitionController(store, registry)]
        EventSweeper(store, clock, self.timers)
        cluster.watch(registry.quotas.ledger)
        self.workloads = self._add_controllers(registry, gates) if controllers else None
        if runs_pods:
            agents = NodeAgents(cluster, clock, self.timers, grace=grace, rules=stages)
            self._controllers.append(agents)
            cluster.watch(agents)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: asyncio.Handle | None = None
        self._alarm = LoopAlarm(clock, self.wake)
        self._extra: list[Callable[[], bool]] = []
        store.follow(lambda change: self.wake())

    def _add_controllers(
        self, registry: ObjectRegistry, gates: Mapping[str, bool] | None
    ) -> Controllers:
        """Add all controllers, which begin with the objects that there are; returns those of workloads."""
        cluster, clock, timers = self.cluster, self.clock, self.timers
        store = registry.store
        workloads = WorkloadControllers(cluster, cluster.list("Pod"), clock, timers, gates)
        volumes = PersistentVolumes(cluster, timers)
        claims = ClaimController(cluster)
        nodes = NodeController(cluster, timers)
        protection = ProtectionController(cluster)
        budgets = BudgetController(cluster, clock)
        cron_jobs = CronJobController(
            cluster, clock, timers, lambda job: not ended_as(job), tell=cluster.note
        )
        quotas = QuotaController(cluster)
        statuses = StatusController(cluster, workloads, (clock, timers))
        self._controllers += [
            GarbageCollector(store, registry),
            NamespaceController(store, registry),
            ServiceAccountController(store, registry, timers),
            cron_jobs,
            workloads,
            volumes,
            claims,
            protection,
            nodes,
            budgets,
            quotas,
            statuses,
        ]
        cluster.watch(workloads, replay=False)
        for handler in (cron_jobs, volumes, claims, protection, nodes, budgets, statuses):
            cluster.watch(handler)
        for kind in WORKLOAD_KINDS:
            for workload in cluster.list(kind):
                workloads.on_add(workload)
        return workloads

    def also_run(self, work: Callable[[], bool]) -> None:
        """Also run `work` after changes; it returns whether more work is pending."""
        self._extra.append(work)

    @property
    def has_work(self) -> bool:
        """Whether some controller has pending work."""
        return any(controller.has_work for controller in self._controllers)

    def start(self) -> None:
        """Run from now on, on the loop of the caller."""
        self._loop = asyncio.get_running_loop()
        self.wake()

    def stop(self) -> None:
        """Stop running."""
        self._loop = None
        self._alarm.set(None, None)
        if self._due is not None:
            self._due.cancel()

    def wake(self) -> None:
        """Run soon: changes that arrive together are processed together."""
        if self._loop is not None and self._due is None:
            self._due = self._loop.call_later(MOMENT_S, self._run)

    def settle(self) -> None:
        """Do all pending work now."""
        for _ in range(MAX_ROUNDS):
            self.timers.fire_due()
            self._run_once()
            more = [work() for work in self._extra]
            if not self.has_work and not any(more):
                return
        raise AssertionError("controllers do not settle")

    def _run(self) -> None:
        self._due = None
        self._guarded(self.timers.fire_due)
        self._run_once()
        more = [self._guarded(work) for work in self._extra]
        if self._loop is None:
            return
        if any(more):
            self._go_on(self._loop)
        elif self.has_work:
            self.wake()
        self._alarm.set(self._loop, self.timers.next())

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run again after the requests and watches of this turn of the loop."""
        if self._due is not None:
            self._due.cancel()
        self._due = loop.call_soon(self._run)

    def _run_once(self) -> None:
        for controller in self._controllers:
            if controller.has_work:
                self._guarded(controller.run_once)

    def _guarded(self, work: Callable[[], object]) -> object:
        """Log a failure, so that the other controllers continue."""
        try:
            return work()
        except BayplanError as error:
            log.warning("%s: %s", type(error).__name__, error)
        except Exception:  # a fault of one controller must not end the others
            log.exception("a controller failed")
        return None
