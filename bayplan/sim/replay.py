"""Replay: a recorded cluster in virtual time, with another scheduler in place of the recorded one.

The recorded scheduler's actions are left out and compared: its bindings, and its writes to volumes
and claims. Everything else happens as recorded: pods and nodes are added, changed and deleted. So
each pod exists for as long as it did, unless our scheduler preempts it, or its node is deleted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from ..api.dra import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME, ResourceClaim
from ..api.meta import KubeObject
from ..api.node import Node
from ..api.pod import Pod
from ..api.pod_status import DISRUPTION_TARGET, PodStatus
from ..api.storage import PersistentVolume, PersistentVolumeClaim
from ..cluster.objects.object_index import WatchHandler
from ..errors import InputError
from ..manifests.timeline import TimelineEvent, TimelineTarget
from ..scheduler import Attempt, Inquiry, QueuedPodInfo
from ..scheduler.assessment import assess
from .recording_file import ADDED, DELETED, RecordedEvent, Recording
from .replay_report import PodPlacement, ReplayedPod, ReplayReport
from .settings import DEFAULT_SETTINGS, Settings
from .simulation import OnProgress, Simulation

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PREEMPTED = "PreemptionByScheduler"
DECIDED_KINDS = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)
"""Writes to these kinds follow from placements, so they are recomputed."""


HEARD_EVERY_S = 0.02
"""Seconds within which events are delivered together, because scheduling takes no time here, unlike in a real
cluster.
"""


def heard_at(moment_s: float) -> float:
    """Time when the scheduler receives the events of a moment."""
    return math.ceil(round(moment_s / HEARD_EVERY_S, 6)) * HEARD_EVERY_S


class Replay(WatchHandler):
    """One replay; `run` it once. Raises InputError for inconsistent recordings."""

    def __init__(self, recording: Recording, settings: Settings = DEFAULT_SETTINGS) -> None:
        self._recording = recording
        profiles = settings.effective_config.profiles
        self._schedulers = {profile.scheduler_name for profile in profiles}
        self._compared: dict[str, ReplayedPod] = {}
        self._nodes_then = _recorded_nodes(recording)
        self._simulation = _AttemptedSimulation(
            self._try, recording.objects, is_recorded=True, **settings.scheduler()
        )
        self._cluster = self._simulation.cluster
        for obj in recording.objects:
            if isinstance(obj, Pod) and not obj.node_name:
                self._compare(obj, 0.0)
        for event in recording.events:
            self._simulation.expect(heard_at(event.at_s), partial(self._happen, event))

    def run(self, on_progress: OnProgress | None = None) -> ReplayReport:
        """Run the replay."""
        self._simulation.begin()
        self._cluster.watch(self, replay=False)
        report = self._simulation.run(on_progress, until_s=heard_at(self._recording.duration_s))
        return ReplayReport(
            list(self._compared.values()),
            report.preempted,
            report.time_s,
            report.seconds,
            report.use_over_time(),
            report.totals,
            report.release,
        )

    def _happen(self, event: RecordedEvent) -> None:
        obj = event.obj
        stored = self._cluster.get(obj.kind, obj.namespace, obj.name)
        try:
            if isinstance(obj, Pod):
                self._happen_to_pod(event, obj, stored)
            elif event.type == DELETED:
                self._remove(stored)
            elif stored is None:
                if event.type == ADDED and not is_decided(obj):
                    self._add(obj)
            elif not isinstance(obj, DECIDED_KINDS):
                self._cluster.update(_unversioned(obj))
        except InputError as error:
            raise InputError(
                f"recording: {event.at_s:g} s: {obj.kind} {obj.key}: {error}"
            ) from None

    # Pods

    def _happen_to_pod(self, event: RecordedEvent, pod: Pod, stored: Pod | None) -> None:
        if event.type == DELETED:
            if stored is not None and stored.uid == pod.uid:
                self._cluster.delete(stored)
            return
        is_ours = self._is_ours(pod)
        if is_ours and pod.uid not in self._compared and event.type == ADDED:
            self._compare(pod, event.at_s)
        known = self._compared.get(pod.uid)
        if known is not None and pod.node_name and known.recorded is None:
            known.recorded = PodPlacement(pod.node_name, event.at_s)
        if stored is not None and stored.uid != pod.uid:
            # a new pod of the same name; the deletion was not recorded
            self._cluster.delete(stored)
            stored = None
        if stored is None:
            if event.type == ADDED:
                self._add(_undecided(pod) if is_ours else pod)
            return  # our scheduler preempted it, or it was deleted with its node
        self._change_pod(pod, stored, is_ours)

    def _change_pod(self, pod: Pod, stored: Pod, is_ours: bool) -> None:
        """Update the pod as recorded, except for a scheduler's placement."""
        leaves = pod.deletion_timestamp
        if leaves is not None and was_preempted(pod):
            leaves = None  # a scheduling decision; ours decides independently
        if leaves is not None and not stored.node_name and is_ours:
            self._cluster.delete(stored)
            return
        changed = pod.replace(
            node_name=stored.node_name if is_ours else pod.node_name,
            status=_status(pod.status, stored.status),
            deletion_timestamp=stored.deletion_timestamp or leaves,
            resource_version=stored.resource_version,
            generation=stored.generation,
        )
        if _differs(changed, stored):
            self._cluster.update(changed)

    def _is_ours(self, pod: Pod) -> bool:
        """Whether our scheduler is responsible for the pod's placement."""
        by_kubelet = any(owner.kind == "Node" for owner in pod.owner_references)
        was_there = pod.uid not in self._compared and self._was_running(pod)
        return pod.scheduler_name in self._schedulers and not by_kubelet and not was_there

    def _was_running(self, pod: Pod) -> bool:
        """Whether the pod was on its node when the recording began."""
        stored = self._cluster.get("Pod", pod.namespace, pod.name)
        return stored is not None and stored.uid == pod.uid and bool(stored.node_name)

    def _compare(self, pod: Pod, at_s: float) -> None:
        if pod.scheduler_name in self._schedulers:
            self._compared[pod.uid] = ReplayedPod(pod, at_s)

    def _try(self, pod: Pod) -> None:
        """Note before an attempt whether the recorded node is as good as any."""
        known, node_name = self._compared.get(pod.uid), self._nodes_then.get(pod.uid, "")
        scheduler = self._simulation.scheduler
        if known is None or node_name not in scheduler.cache.table.row_of:
            return
        known.is_equal = assess(Inquiry(scheduler, pod), node_name, in_full=False).is_best

    def on_update(self, old: Any, new: Any) -> None:
        """Note a pod that is bound; one that is created with its node is not bound by us."""
        if isinstance(new, Pod) and new.node_name and not old.node_name:
            known = self._compared.get(new.uid)
            if known is not None:
                known.replayed = PodPlacement(new.node_name, self._simulation.clock.monotonic())

    # Everything else

    def _add(self, obj: Any) -> None:
        self._simulation.happen(TimelineEvent(0.0, add=(obj,)))

    def _remove(self, stored: Any) -> None:
        if stored is None:
            return
        if isinstance(stored, Node):
            for pod in self._cluster.list("Pod"):
                known = self._compared.get(pod.uid)
                if known is not None and pod.node_name == stored.name:
                    then = known.recorded.node_name if known.recorded else ""
                    known.is_lost = then != stored.name
            ref = TimelineTarget("Node", "", stored.name)
            self._simulation.happen(TimelineEvent(0.0, remove=(ref,)))
        else:
            self._cluster.delete(stored)


class _AttemptedSimulation(Simulation):
    """A simulation that announces each attempt at a single pod."""

    def __init__(self, tried: Callable[[Pod], None], *objects: Any, **options: Any) -> None:
        super().__init__(*objects, **options)
        self._tried = tried

    def try_pod(self, queued: QueuedPodInfo) -> Attempt | None:
        self._tried(queued.pod)
        return super().try_pod(queued)


def _recorded_nodes(recording: Recording) -> dict[str, str]:
    """The first node of each pod that got one, by uid."""
    found: dict[str, str] = {}
    for event in recording.events:
        if isinstance(event.obj, Pod) and event.obj.node_name:
            found.setdefault(event.obj.uid, event.obj.node_name)
    return found


def is_decided(obj: Any) -> bool:
    """Whether the object was created by a decision, or is recreated for its pod."""
    match obj:
        case ResourceClaim():
            return POD_CLAIM_NAME in obj.annotations or EXTENDED_RESOURCE_CLAIM in obj.annotations
        case PersistentVolume():
            return PROVISIONED_BY in obj.annotations
    return False


def was_preempted(pod: Pod) -> bool:
    """Whether the pod was preempted."""
    condition = pod.status.condition(DISRUPTION_TARGET)
    return condition is not None and condition.reason == PREEMPTED


def _undecided(pod: Pod) -> Pod:
    """The pod before any scheduler handled it."""
    status = _status(pod.status, PodStatus(phase="Pending"))
    return pod.replace(node_name="", status=status, deletion_timestamp=None)


def _status(recorded: PodStatus, ours: PodStatus) -> PodStatus:
    """Our status, with the kubelet's resource fields."""
    return replace(
        ours,
        container_statuses=recorded.container_statuses,
        init_container_statuses=recorded.init_container_statuses,
        resources=recorded.resources,
        allocated_resources=recorded.allocated_resources,
    )


def _differs(changed: Pod, stored: Pod) -> bool:
    """Whether a relevant field of the pod changed."""
    return (
        changed.spec is not stored.spec
        or changed.node_name != stored.node_name
        or changed.labels != stored.labels
        or changed.annotations != stored.annotations
        or changed.deletion_timestamp != stored.deletion_timestamp
        or changed.status != stored.status
    )


def _unversioned(obj: Any) -> Any:
    """The object for an update that ignores the resource version."""
    if isinstance(obj, KubeObject):
        return replace(obj, metadata=replace(obj.metadata, resource_version="", uid=""))
    return obj.replace(uid="")
