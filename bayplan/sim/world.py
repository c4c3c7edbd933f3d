"""World: the cluster of a simulation, with everything besides scheduling.

Objects pass admission, controllers create missing pods, kubelets end pods, and the timeline runs
its events, all on one clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

from msgspec.structs import replace

from ..api.cron_jobs import CronJob
from ..api.custom_workloads import CustomWorkload
from ..api.dra import ResourceClaim
from ..api.limits import LimitRange, ResourceQuota
from ..api.meta import ObjectMeta
from ..api.node import Node
from ..api.pod import Pod
from ..api.pod_groups import PodGroup, Workload
from ..api.pod_stages import StageRule
from ..api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ..api.wire.whole import apply_patch
from ..api.workloads import (
    Deployment,
    Namespace,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from ..clock import ManualClock, Timers
from ..cluster.memory.absent_owners import AbsentOwners
from ..cluster.memory.admission import (
    Admission,
    AdmissionError,
    AdmissionRefusedError,
    admit_namespace,
    admit_storage,
)
from ..cluster.memory.admission_defaults import admit_devices, admit_groups
from ..cluster.memory.budget_controller import DisruptionController
from ..cluster.memory.controllers import Controllers
from ..cluster.memory.kubelets import Kubelets
from ..cluster.memory.object_store import MemoryCluster
from ..cluster.memory.protection import Protection
from ..cluster.memory.provisioners import Provisioning
from ..cluster.memory.quotas import QuotaLedger
from ..cluster.memory.refusals import AdmissionRefusal
from ..cluster.memory.resource_claims import ClaimController
from ..cluster.memory.volume_controller import VolumeController
from ..cluster.memory.workload_pods import WORKLOAD_KINDS
from ..cluster.objects.object_index import ClusterObject
from ..cluster.objects.pod_life import moment_of, timestamp
from ..errors import ConflictError, DecodeError, InputError
from ..manifests.timeline import (
    InputObject,
    ObjectPatch,
    Timeline,
    TimelineEvent,
    TimelineTarget,
    WorkloadScale,
    created_at,
)
from .absent_replica_sets import absence_note, absent_replica_sets
from .agenda import Agenda, start_time
from .cron_runs import CronRuns
from .input_checks import check_times, joined, refuse_immutable, refuse_no_nodes
from .stand_ins import StandIns

PlaceOf: TypeAlias = Callable[[InputObject], str]
"""Returns the place of an object, for errors; empty if unknown."""
QUOTA_DELAY_S = 0.1
"""Time until a quota counts without a deleted pod."""


class World:
    """A cluster filled with `objects`. Raises InputError when an API server would reject one, or there is no node.

    With `is_recorded`, events besides scheduling come from the recording: no controller creates
    pods, no kubelet ends them, and nodes may be added later. Volumes and claims still follow from
    placements. With `nodes_come`, there may be no node at the start.
    """

    def __init__(
        self,
        objects: Sequence[InputObject],
        place_of: PlaceOf,
        provisioning: Provisioning | None = None,
        is_recorded: bool = False,
        gates: Mapping[str, bool] | None = None,
        nodes_come: bool = False,
    ) -> None:
        self._originals: dict[int, tuple[ClusterObject, ClusterObject]] = {}
        """By id of an object that stands for another: that, and the object, so that its id stays its own."""
        self._place_of: PlaceOf = lambda obj: place_of(self._originals.get(id(obj), (obj,))[0])
        self._gates = gates or {}
        self._is_recorded = is_recorded
        self.clock = ManualClock(
            start_time(obj for obj in objects if not isinstance(obj, Timeline))
        )
        self.timers = Timers(self.clock)
        self.agenda = Agenda(self.clock, self.timers)
        self.cluster = MemoryCluster(self.clock, self.agenda)
        self._ledger = QuotaLedger(self.cluster, self._release_later)
        self._has_quotas = False
        self._admission = Admission(self.cluster, self._ledger)
        self._refused: list[AdmissionRefusal] = []
        """Pods and claims by themselves that a limit range or a quota refused."""
        self._cron = CronRuns(self.cluster, self.clock, self.agenda)
        self.remarks: list[str] = []
        """Notes on objects of the input that are not simulated as they are."""
        self._volumes = VolumeController(self.cluster, provisioning, self.agenda)
        self._claims = ClaimController(self.cluster)
        self._absent_owners = AbsentOwners(self.cluster)
        self.budgets = DisruptionController(self.cluster, self.clock)
        self._groups: Protection | None = None
        """Deletes groups when they have no members; None until one is deleted."""
        self.after_settling: Callable[[], None] | None = None
        """Called after the controllers' work."""
        self._namespaces: set[str] = set()
        self._daemons: deque[Pod] = deque()
        self._stage_rules: tuple[StageRule, ...] = ()
        others = [obj for obj in objects if not isinstance(obj, Pod)]
        if not is_recorded and not nodes_come:
            refuse_no_nodes(others)
        given = (obj for obj in objects if not isinstance(obj, Timeline))
        has_stand_ins = any(isinstance(obj, CustomWorkload) for obj in others)
        self._stand_ins = StandIns(given if has_stand_ins else (), self._gates)
        present, later, timelines = self._sort(objects)
        if has_stand_ins:
            present = self._with_stand_ins(present)
        absent = [] if is_recorded else absent_replica_sets(present)
        if absent:
            self.remarks.append(absence_note(absent))
        self._load([*present, *absent] if absent else present)
        for obj in later:
            self._expect(TimelineEvent(created_at(obj), add=(obj,)), obj, "")
        for timeline in timelines:
            for i, event in enumerate(timeline.events):
                self._expect(event, timeline, f"timeline: {event.path or f'events[{i}]'}")

    def begin(self, pods_end: bool = True, until_s: float | None = None) -> None:
        """Start controllers and kubelets; existing watchers are notified before them.

        Unless `pods_end`, pods with a duration never finish, and no CronJob runs. With `until_s`, CronJobs run as often
        as they are due until then; else once.
        """
        if pods_end and not self._is_recorded:
            rules, has_end = self._stage_rules, until_s is not None
            self.cluster.watch(Kubelets(self.cluster, self.clock, self.agenda, rules, has_end))
        if not self._is_recorded:
            self.cluster.watch(self._controllers, replay=False)
            self.cluster.watch(self._absent_owners, replay=False)
            self.budgets.begin()
        self.cluster.watch(self._volumes)
        self.cluster.watch(self._claims)
        self._volumes.run()
        self._claims.run()
        for pod in self.cluster.list("Pod"):
            if pod.node_name and pod.is_terminating and not self._is_recorded:
                self._expect_end(pod)
        if not self._is_recorded:
            self.remarks += self._cron.begin(self._controllers.owned, until_s, runs=pods_end)

    def settle(self) -> None:
        """Run the controllers' pending work."""
        if self.budgets.is_urgent:
            self.budgets.run()
        if self._absent_owners.has_work:
            for pod in self._absent_owners.take_missing():
                self._add(pod, is_replacement=True)
        if self._controllers.has_work:
            with self._faults_placed(None, ""):
                self._controllers.run()
                if self._cron.run(has_ended=True):
                    self._controllers.run()
        elif self._cron.run(has_ended=False):
            with self._faults_placed(None, ""):
                self._controllers.run()
        self._volumes.run()
        self._claims.run()
        if self._groups is not None and self._groups.has_work:
            self._groups.run_once()
        if self.after_settling is not None:
            self.after_settling()

    def refusals(self) -> list[AdmissionRefusal]:
        """Refusals by limit ranges and quotas: pods and claims by themselves, then pods of workloads."""
        return [
            *self._refused,
            *self._controllers.refused.listed(self.cluster, self._controllers.owned),
        ]

    def remove_done_job(self, pod: Pod) -> None:
        """Delete the job of a finished pod, if it was the last one."""
        self._controllers.remove_done_job(pod)

    def next_daemon(self) -> Pod | None:
        """A daemon that came with its node and was not tried yet; each is returned once."""
        if not self._daemons:
            self._daemons.extend(self._controllers.take_first_daemons())
        return self._daemons.popleft() if self._daemons else None

    # Filling the cluster

    def _sort(
        self, objects: Iterable[InputObject]
    ) -> tuple[list[ClusterObject], list[ClusterObject], list[Timeline]]:
        """The initial objects, later ones, and timelines."""
        present: list[ClusterObject] = []
        later: list[ClusterObject] = []
        timelines: list[Timeline] = []
        for obj in objects:
            if isinstance(obj, (Pod, Node)) and not obj.annotations:
                present.append(obj)
            elif isinstance(obj, Timeline):
                timelines.append(obj)
                self._stage_rules += obj.stages
                for i, event in enumerate(obj.events):
                    for j, added in enumerate(event.add):
                        self._check(added, obj, f"timeline: events[{i}].add[{j}]")
            else:
                self._check(obj, obj, "")
                (later if created_at(obj) else present).append(obj)
        return present, later, timelines

    def _with_stand_ins(self, objects: Iterable[ClusterObject]) -> list[ClusterObject]:
        """The objects, with replica sets in the place of custom workloads."""
        found: list[ClusterObject] = []
        for obj in objects:
            if not isinstance(obj, CustomWorkload):
                found.append(obj)
                continue
            made, remark = self._stand_ins.make(obj)
            self.remarks.append(remark)
            for stand_in in made:
                found.append(stand_in)
                self._originals[id(stand_in)] = obj, stand_in
        return found

    def _check(self, obj: ClusterObject, source: InputObject, path: str) -> None:
        """Reject invalid times."""
        with self._faults_placed(source, path):
            check_times(obj)

    def _load(self, objects: Sequence[ClusterObject]) -> None:
        """Everything but pods first, then running pods, then pending ones, with those of workloads between."""
        pods = [obj for obj in objects if isinstance(obj, Pod)]
        others = [obj for obj in objects if not isinstance(obj, Pod)]
        named: dict[int, ClusterObject] = {}
        with self._faults_placed(None, ""):
            for obj in filter(_is_needed_first, others):
                self.cluster.add(self._admitted(obj))
            for obj in others:
                if not _is_needed_first(obj):
                    own = self._admitted(obj)
                    if self._is_allowed(own):
                        added = self.cluster.add(own)
                        if not obj.name:
                            self._originals[id(added)] = obj, added
                            named[id(obj)] = added
            self._follow_quotas()
            admitted = self._admission.admit_all(pods)
            both = zip(pods, admitted, strict=True)
            waiting = {id(obj): pod for obj, pod in both if not obj.node_name and is_waiting(obj)}
            settled = (pod for pod in admitted if pod.node_name or pod.is_finished)
            stored = iter(self.cluster.add_pods(settled))
            for i, pod in enumerate(admitted):
                if pod.node_name or pod.is_finished:
                    admitted[i] = next(stored)
            time = self.clock, self.agenda
            present = (pod for pod in admitted if pod.name)
            self._controllers = Controllers(
                self.cluster, self._admission, present, gates=self._gates, time=time
            )
            in_order = objects if waiting else others
            if named:
                in_order = [named.get(id(obj), obj) for obj in in_order]
            self._load_pending(in_order, waiting)
        for namespace in dict.fromkeys(pod.namespace for pod in self.cluster.list("Pod")):
            self._need_namespace(namespace)

    def _load_pending(self, objects: Sequence[ClusterObject], pods: Mapping[int, Pod]) -> None:
        """Add pending pods, admitted, by the id of the given one, and those of workloads."""
        for obj in objects:
            if isinstance(obj, Pod):
                pod = None if obj.node_name else pods.get(id(obj))
                if pod is not None and self._is_allowed(pod):
                    self.cluster.add(pod)
            elif obj.kind in WORKLOAD_KINDS and not isinstance(obj, Node) and not self._is_recorded:
                self._controllers.sync(obj)

    def _is_allowed(self, obj: ClusterObject, old: ClusterObject | None = None) -> bool:
        """Whether limit ranges and quotas allow an object, or its change; one that they refuse is recorded."""
        refusal = "" if self._is_recorded else self.refusal_of(obj, old)
        if refusal:
            number = int(old is None and isinstance(obj, Pod | PersistentVolumeClaim))
            refused = AdmissionRefusal(obj.kind, obj.namespace, obj.name, number, refusal)
            self._refused.append(refused)
        return not refusal

    def refusal_of(self, obj: ClusterObject, old: ClusterObject | None = None) -> str:
        """Reason why a limit range or a quota refuses a new object, which was admitted, or its change; empty if none
        does.
        """
        self._follow_quotas()
        try:
            self._admission.check(obj, old)
        except AdmissionRefusedError as error:
            return str(error)
        return ""

    def _follow_quotas(self) -> None:
        """Count the use, from the first quota on."""
        if not self._has_quotas and self.cluster.count("ResourceQuota") and not self._is_recorded:
            self._has_quotas = True
            self.cluster.watch(self._ledger)

    def _release_later(self, pod: Pod, release: Callable[[], None]) -> None:
        """Release the use of a deleted pod in a quota a moment later, and try pods again that were refused."""

        def happen() -> None:
            release()
            self._controllers.retry_refused(pod.namespace)

        self.agenda.after(QUOTA_DELAY_S, happen)

    def _need_namespace(self, name: str) -> None:
        """Create an undeclared namespace, so that selectors find it."""
        if name and name not in self._namespaces:
            self._namespaces.add(name)
            with suppress(ConflictError):
                self.cluster.add(admit_namespace(Namespace(metadata=ObjectMeta(name=name))))

    # Later events

    def _expect_end(self, pod: Pod) -> None:
        """Schedule the end of an input pod that is already terminating."""

        def leave() -> None:
            stored = self.cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None and stored.uid == pod.uid:
                self.cluster.delete(stored)

        leaves = moment_of(pod.deletion_timestamp) or self.clock.now()
        self.agenda.after(max((leaves - self.clock.now()).total_seconds(), 0), leave)

    def arrive(self, obj: ClusterObject) -> None:
        """Add an object of a stream, whose time has come; raises InputError when it is invalid."""
        self._check(obj, obj, "")
        self.happen(TimelineEvent(created_at(obj), add=(obj,)), obj)

    def _expect(self, event: TimelineEvent, source: InputObject, path: str) -> None:
        self.agenda.after(event.at_s, lambda: self.happen(event, source, path))

    def happen(
        self,
        event: TimelineEvent,
        source: InputObject | None = None,
        path: str = "",
        is_replacement: bool = False,
    ) -> None:
        """Run an event now; raises InputError, about `path` of `source`, when it is invalid.

        The replacement of a pod that was taken off is not refused by limit ranges and quotas.
        """
        for i, obj in enumerate(event.add):
            with self._faults_placed(source, path and f"{path}.add[{i}]"):
                self._add(obj, is_replacement)
        for i, change in enumerate(event.change):
            with self._faults_placed(source, path and f"{path}.change[{i}]"):
                self._change(change)
        for scale in event.scale:
            with self._faults_placed(source, path):
                self._scale(scale)
        for i, ref in enumerate(event.remove):
            with self._faults_placed(source, path and f"{path}.remove[{i}]"):
                self._remove(ref)
        with self._faults_placed(source, path):
            self.settle()

    def _add(self, given: ClusterObject, is_replacement: bool = False) -> None:
        for obj in self._with_stand_ins((given,)):
            self._add_one(obj, is_replacement)

    def _add_one(self, obj: ClusterObject, is_replacement: bool) -> None:
        self._need_namespace(obj.namespace)
        if isinstance(obj, Namespace):
            self._namespaces.add(obj.name)
        elif isinstance(obj, Pod):
            obj = self._admission.admit(obj)
        obj = self._admitted(obj)
        if is_replacement or self._is_allowed(obj):
            self.cluster.add(obj)
            self._follow_quotas()
            if isinstance(obj, CronJob):
                self.remarks += self._cron.follow(obj)

    def _admitted(self, obj: ClusterObject) -> ClusterObject:
        """An object as the API server would store it; pods are admitted by `Admission`."""
        if isinstance(obj, Namespace):
            return admit_namespace(obj)
        if isinstance(obj, PodGroup | Workload) and not self._is_recorded:
            return admit_groups(obj, self.cluster, self._gates)
        return admit_devices(admit_storage(obj, None if self._is_recorded else self.cluster))

    def _change(self, change: ObjectPatch) -> None:
        stored = self._find(change.ref)
        if stored is not None:
            changed = apply_patch(stored, change.patch)
            assert isinstance(changed, Pod | Node | type(stored)), (
                "a patch does not change the kind"
            )
            self._check(changed, changed, "")
            refuse_immutable(stored, changed)
            if self._is_allowed(changed, stored):
                self.cluster.update(changed)

    def _scale(self, scale: WorkloadScale) -> None:
        stored = self._find(scale.ref)
        if stored is not None:
            scaled = Deployment | ReplicaSet | ReplicationController | StatefulSet
            assert isinstance(stored, scaled), "a series names a workload with replicas"
            spec = replace(stored.spec, replicas=scale.replicas)
            self.cluster.update(replace(stored, spec=spec))

    def _remove(self, ref: TimelineTarget) -> None:
        """Delete an object as `kubectl delete` does. The pods of a node are deleted with it at once."""
        stored = self._find(ref)
        match stored:
            case None:
                return
            case Pod():
                self.cluster.delete(stored, stored.spec.grace_s)
                return
            case PersistentVolume() | PersistentVolumeClaim():
                self._volumes.delete(stored, timestamp(self.clock))
                return
            case ResourceClaim():
                self._claims.delete(stored, timestamp(self.clock))
                return
            case PodGroup():
                if self._groups is None:
                    self._groups = Protection(self.cluster)
                    self.cluster.watch(self._groups, replay=False)
                self._groups.delete(stored, timestamp(self.clock))
                return
        self.cluster.delete(stored)
        if isinstance(stored, Node):
            # The controllers of a recording get no changes.
            every, there = self.cluster.list("Pod"), self._controllers.pods_on(stored.name)
            for pod in list(every) if self._is_recorded else there:
                if pod.node_name == stored.name and not pod.is_finished:
                    self.cluster.delete(pod)
        elif isinstance(stored, Namespace):
            self._namespaces.discard(stored.name)
            for kind in self.cluster.kinds():
                for obj in list(self.cluster.list(kind, stored.name)):
                    self.cluster.delete(obj, obj.spec.grace_s if isinstance(obj, Pod) else 0)

    def _find(self, ref: TimelineTarget) -> ClusterObject | None:
        """The object that a timeline names; None when it was deleted earlier by the simulation
        itself."""
        found: ClusterObject | None = self.cluster.get(ref.kind, ref.namespace, ref.name)
        if found is None and not self.cluster.was_deleted(ref.kind, ref.namespace, ref.name):
            raise InputError(f"expected an object that is there by then; got {ref}")
        return found

    @contextmanager
    def _faults_placed(self, source: InputObject | None, path: str) -> Iterator[None]:
        """Add the place to an error: `path` of `source`, else that of its object."""
        try:
            yield
        except AdmissionError as error:
            place = self._place_of(error.obj if source is None else source)
            raise InputError(joined(place, path, str(error))) from None
        except ConflictError as error:
            place = self._place_of(source) if source is not None else "input"
            raise InputError(joined(place, path, f"expected each name once; {error}")) from None
        except (DecodeError, InputError) as error:
            if source is None:
                raise
            raise InputError(joined(self._place_of(source), path, str(error))) from None


def _is_needed_first(obj: ClusterObject) -> bool:
    """Whether admission of other objects depends on the object."""
    return isinstance(obj, (LimitRange, ResourceQuota, StorageClass))


def is_waiting(pod: Pod) -> bool:
    """Whether the pod needs a node; a terminating pod without a node does not."""
    return not pod.node_name and not pod.is_finished and not pod.is_terminating
