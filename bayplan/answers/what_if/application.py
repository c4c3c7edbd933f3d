"""Application: the effects of `kubectl apply` of manifests, with the roll-outs of their workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from ...api.custom_workloads import CustomWorkload
from ...api.meta import KubeObject, controller_of
from ...api.pod import Pod
from ...api.wire.kinds import group_of
from ...api.wire.sourced import Documents
from ...api.wire.whole import apply_patch, merge_patch
from ...api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from ...clock import Clock
from ...cluster.memory import daemons
from ...cluster.memory.deployments import has_new_template, read_template
from ...cluster.memory.object_store import MemoryCluster
from ...cluster.memory.pod_index import is_there
from ...cluster.objects.object_index import ClusterObject
from ...manifests.overlay import Key, key_of, patch_of
from ...manifests.timeline import TimelineTarget
from ..courses import RolloutCourse, RolloutStall, RolloutStep
from ..input_gaps import autoscaler_notes
from ..stage import Stage
from .change import ClusterChange

Rolled: TypeAlias = Deployment | StatefulSet | DaemonSet

READY = "pods count as ready as soon as they have a node"
OTHER_FIELDS = "bayplan.dev/other-fields"
"""Annotation of a template that differs from the former one in fields that do not affect placement only."""
UNKNOWN_FIELDS = "has no record of an earlier kubectl apply: changes of fields that placement ignores are not seen"
UNCHANGED_POD = "exists already: the spec of a pod cannot be replaced"
UNCHANGED_CUSTOM = (
    "exists already: its pods stay as they are, since only its controller could change them; "
    "what-if scale changes their number"
)
OWNED_KINDS = ("ReplicaSet", "StatefulSet", "Deployment", "Job", "Pod")


@dataclass(frozen=True, slots=True)
class Apply(ClusterChange):
    """Apply manifests in their order, as `kubectl apply` does, and follow the roll-outs to their end."""

    objects: tuple[ClusterObject, ...]
    documents: Documents | None = None
    """Their manifests as they were written; without them values that are defaults do not count as given."""

    @property
    def text(self) -> str:
        names = [f"{obj.kind.lower()}/{obj.key}" for obj in self.objects]
        more = f" and {len(names) - 3} more" if len(names) > 4 else ""
        return f"apply {', '.join(names[:3] if more else names)}{more}"

    def apply(self, stage: Stage) -> None:
        rollouts = _Rollouts(stage, {pod.uid for pod in stage.cluster.list("Pod")})
        stage.cluster.watch(rollouts, replay=False)
        for obj in self.objects:
            self._apply_one(stage, obj, rollouts)
        stage.settle(stage.on_progress)
        rollouts.end()
        stage.courses += rollouts.courses()
        if any(course.steps for course in rollouts.courses()):
            stage.notes.append(READY)

    def _apply_one(self, stage: Stage, obj: ClusterObject, rollouts: _Rollouts) -> None:
        if isinstance(obj, CustomWorkload) and _has_objects(stage.cluster, obj):
            stage.notes.append(f"{obj} {UNCHANGED_CUSTOM}")
            return
        there = stage.cluster.get(obj.kind, obj.namespace, obj.name)
        if isinstance(obj, Rolled) and obj.name:
            rollouts.follow(obj)
        if there is None:
            stage.add((obj,))
        elif isinstance(obj, Pod):
            stage.notes.append(f"pod/{obj.key} {UNCHANGED_POD}")
            return
        else:
            ref = TimelineTarget(obj.kind, obj.namespace, obj.name)
            stage.patch(ref, self._patch(stage, there, obj))
        now = stage.cluster.get(obj.kind, obj.namespace, obj.name)
        if isinstance(now, Rolled):
            rollouts.applied(there, now)
            if there is None or _replicas(there) != _replicas(now):
                stage.notes += autoscaler_notes(stage.cluster, now)

    def _patch(self, stage: Stage, there: ClusterObject, obj: ClusterObject) -> dict[str, Any]:
        """The patch with the effect of the application; a template that differs in any field makes new pods."""
        document = self.documents.of(obj) if self.documents is not None else None
        patch, is_new = patch_of(there, obj, document)
        if not isinstance(there, Rolled):
            return patch
        made = apply_patch(there, patch)
        if not isinstance(made, Rolled) or has_new_template(there, made):
            return patch
        if is_new:
            digest = sha256(msgspec.json.encode(document)).hexdigest()[:16]
            note = {"template": {"metadata": {"annotations": {OTHER_FIELDS: digest}}}}
            marked: dict[str, Any] = merge_patch(patch, {"spec": note})
            return marked
        if is_new is None and document is not None:
            stage.notes.append(f"{obj.kind.lower()}/{obj.key} {UNKNOWN_FIELDS}")
        return patch


def _has_objects(cluster: MemoryCluster, workload: CustomWorkload) -> bool:
    """Whether a custom workload owns objects in the cluster."""
    wanted = workload.kind, workload.namespace, workload.name
    for kind in OWNED_KINDS:
        for obj in cluster.list(kind):
            owner = controller_of(obj.owner_references)
            if owner is None:
                continue
            if (f"{owner.kind}.{group_of(owner.api_version)}", obj.namespace, owner.name) == wanted:
                return True
    return False


@dataclass
class _Rollouts:
    """Follows the pods of applied workloads."""

    stage: Stage
    before: set[str]
    """The uids of the pods before the change."""
    _courses: dict[Key, RolloutCourse] = field(default_factory=dict)
    _with_new_template: set[Key] = field(default_factory=set)
    _has_ended: bool = False

    def __post_init__(self) -> None:
        self._clock: Clock = self.stage.simulation.clock
        self._began_s = self._clock.monotonic()

    def follow(self, workload: Rolled) -> None:
        """Follow the pods of a workload from now on."""
        name = f"{workload.kind.lower()}/{workload.key}"
        self._courses.setdefault(key_of(workload), RolloutCourse(name, 0))

    def applied(self, there: ClusterObject | None, now: Rolled) -> None:
        """Record whether the template changed; an unchanged workload is not followed."""
        if not isinstance(there, Rolled) or has_new_template(there, now):
            self._with_new_template.add(key_of(now))
        elif _replicas(there) == _replicas(now) and key_of(now) not in self._with_new_template:
            del self._courses[key_of(now)]

    def end(self) -> None:
        """Stop following, and state for each workload how far it got."""
        self._has_ended = True
        cluster, places = self.stage.cluster, self.stage.places()
        pods: dict[Key, list[Pod]] = {key: [] for key in self._courses}
        for pod in cluster.list("Pod"):
            key = _workload_key(cluster, pod) if is_there(pod) else None
            if key in pods:
                pods[key].append(pod)
        for key, course in self._courses.items():
            workload = cluster.get(*key)
            assert isinstance(workload, Rolled), "it was applied"
            new = pods[key]
            if key in self._with_new_template:
                new = [pod for pod in new if self._has_template(pod, workload)]
            course.updated = sum(bool(pod.node_name) for pod in new)
            course.left = len(pods[key]) - len(new)
            course.wanted = _wanted(cluster, workload)
            course.stalls = list(self._stalls(key, new, places.message_of))
            if not course.stalls and (course.left or course.updated < course.wanted):
                course.stalls = [RolloutStall(_unfinished(workload))]

    def _has_template(self, pod: Pod, workload: Rolled) -> bool:
        """Whether a pod is of the workload's new version."""
        owner = pod.controller
        if isinstance(workload, Deployment) and owner is not None:
            stored = self.stage.cluster.get(owner.kind, pod.namespace, owner.name)
            if isinstance(stored, ReplicaSet):
                return read_template(stored) == read_template(workload)
        return pod.uid not in self.before

    def courses(self) -> list[RolloutCourse]:
        """One per workload, in the order in which they were applied."""
        return list(self._courses.values())

    def _stalls(
        self, key: Key, new: list[Pod], message_of: Callable[[Pod], str]
    ) -> Iterator[RolloutStall]:
        by_cause: dict[str, list[str]] = {}
        for pod in new:
            if not pod.node_name:
                by_cause.setdefault(message_of(pod), []).append(pod.key)
        for cause, names in by_cause.items():
            yield RolloutStall(cause, tuple(names))
        for refusal in self.stage.refused:
            if self._is_of(refusal.kind, refusal.namespace, refusal.name, key):
                yield RolloutStall(refusal.message)

    def _is_of(self, kind: str, namespace: str, name: str, key: Key) -> bool:
        """Whether a refused workload is the applied one, or a replica set of it."""
        if (kind, namespace, name) == key:
            return True
        stored = self.stage.cluster.get(kind, namespace, name)
        owner = controller_of(stored.owner_references) if isinstance(stored, KubeObject) else None
        return owner is not None and (owner.kind, namespace, owner.name) == key

    # Changes of pods, as the cluster reports them

    def on_add(self, obj: ClusterObject) -> None:
        """Count a new pod."""
        step = self._step_of(obj, is_created=True)
        if step is not None:
            step.created += 1

    def on_update(self, old: ClusterObject, new: ClusterObject) -> None:
        """Count a pod that got a node, or whose deletion began."""
        if not isinstance(old, Pod) or not isinstance(new, Pod):
            return
        if new.node_name and not old.node_name:
            step = self._step_of(new)
            if step is not None:
                step.placed[new.node_name] = step.placed.get(new.node_name, 0) + 1
        if new.is_terminating and not old.is_terminating:
            self._count_deleted(new)

    def on_delete(self, obj: ClusterObject) -> None:
        """Count a deleted pod, unless its deletion was counted when it began."""
        if isinstance(obj, Pod) and not obj.is_terminating:
            self._count_deleted(obj)

    def _count_deleted(self, pod: Pod) -> None:
        step = self._step_of(pod)
        if step is not None:
            step.deleted += 1

    def _step_of(self, obj: ClusterObject, is_created: bool = False) -> RolloutStep | None:
        """The current step of the pod's workload; a new pod begins the next if pods were placed or deleted."""
        if self._has_ended or not isinstance(obj, Pod):
            return None
        course = self._courses.get(_workload_key(self.stage.cluster, obj) or ("", "", ""))
        if course is None:
            return None
        last = course.steps[-1] if course.steps else None
        if last is None or (is_created and (last.placed or last.deleted)):
            last = RolloutStep(self._clock.monotonic() - self._began_s)
            course.steps.append(last)
        return last


def _replicas(workload: Rolled) -> int | None:
    return None if isinstance(workload, DaemonSet) else workload.replicas


def _wanted(cluster: MemoryCluster, workload: Rolled) -> int:
    """Number of pods that the workload should have."""
    if not isinstance(workload, DaemonSet):
        return workload.replicas
    return daemons.count_wanted(workload, cluster.list("Node"))


def _unfinished(workload: Rolled) -> str:
    """Reason why pods of a former version stay although none waits."""
    if isinstance(workload, Deployment):
        return "the deployment is paused" if workload.spec.paused else "its limits allow no step"
    return "its update strategy keeps pods of the former version"


def _workload_key(cluster: MemoryCluster, pod: Pod) -> Key | None:
    """The workload of a pod: its controller, or the Deployment that controls its replica set."""
    owner = pod.controller
    if owner is None:
        return None
    if owner.kind == "ReplicaSet":
        stored = cluster.get(owner.kind, pod.namespace, owner.name)
        above = controller_of(stored.owner_references) if stored is not None else None
        owner = above or owner
    return owner.kind, pod.namespace, owner.name
