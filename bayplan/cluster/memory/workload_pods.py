"""Workload pods: the pods that controllers create and delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.pod_spec import PodSpec, intern_spec
from ...api.selectors import LabelSelector
from ...api.storage import PersistentVolumeClaim
from ...api.wire.interning import shared, shared_map
from ...api.wire.sourced import template_source, with_source
from ...api.workloads import (
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from ..objects.object_index import ControllerCluster
from . import deployments
from .admission import Admission, AdmissionError
from .default_class import with_default_class
from .pod_index import OwnedPods, PodIndex
from .stateful_sets import POD_INDEX, POD_NAME, REVISION_HASH, make_spec


class WorkloadPods:
    """The pods of all workloads of a cluster; new ones are admitted here unless the cluster does it."""

    def __init__(
        self, cluster: ControllerCluster, admission: Admission | None, pods: Iterable[Pod]
    ) -> None:
        self._cluster = cluster
        self._admission = admission
        self._pods = PodIndex(pods)

    def owned(self, workload: KubeObject) -> OwnedPods:
        """The pods of a workload."""
        return self._pods.owned_by(workload)

    def pods_on(self, node_name: str) -> list[Pod]:
        """The pods on a node, and daemons that wait for it, in the order in which they were added."""
        return self._pods.on_node(node_name)

    def _fill_up(
        self,
        owner: KubeObject,
        missing: int,
        template: PodTemplateSpec,
        labels: Mapping[str, str] | None = None,
    ) -> list[Pod]:
        """Create the missing pods."""
        if missing <= 0:
            return []
        pod = make_pod(owner, template, "", labels=labels)
        names = self._pods.free_names(owner, f"{owner.name}-")
        return [self._add(pod.replace(name=name)) for name in islice(names, missing)]

    def _keep(
        self,
        owner: ReplicaSet | ReplicationController,
        selector: LabelSelector | None,
        template: PodTemplateSpec,
        may_delete: bool,
    ) -> list[Pod]:
        """Keep the wanted number of pods."""
        owned = self._pods.owned_by(owner, selector)
        excess = len(owned.active) - checked(owner, owner.replicas)
        if may_delete and excess > 0:
            self._delete_some(owned.active.values(), excess, self._related(owner))
        return self._fill_up(owner, -excess, template)

    def _related(self, owner: ReplicaSet | ReplicationController) -> Iterable[Pod] | None:
        """The pods of all versions of its workload; None if there are no others."""
        return None

    def _delete_some(
        self, pods: Iterable[Pod], excess: int, related: Iterable[Pod] | None = None
    ) -> None:
        """Delete the surplus pods."""
        for pod in first_to_go(pods, related)[:excess] if excess > 0 else ():
            self._delete(pod)

    def _delete(self, pod: Pod) -> None:
        """Delete a pod, with its grace period."""
        self._cluster.delete(pod, pod.spec.grace_s)

    def _add(self, pod: Pod) -> Pod:
        """Create a pod."""
        admitted = pod if self._admission is None else self._admission.admit(pod)
        if self._admission is not None:
            self._admission.check(admitted)
        added = self._cluster.add(admitted)
        if self._pods.get(added.namespace, added.name) is not added:  # else it has its event
            self._pods.add(added)
        return added

    def _adopt(self, orphan: Pod) -> None:
        """Write the adopting owner on an orphaned pod, in a cluster where others read that."""
        key = self._pods.owner_of(orphan)
        owner = self._cluster.get(*key) if key is not None else None
        pod: Pod | None = self._cluster.get("Pod", orphan.namespace, orphan.name)
        if owner is not None and pod is not None and pod.controller is None:
            self._cluster.update(deployments.adopted(pod, owner))

    def _make_room(self, owner: KubeObject, name: str) -> bool:
        """Whether a pod called `name` can be created; a finished one of the owner is replaced."""
        present = self._pods.get(owner.namespace, name)
        if present is not None:
            controller = present.controller
            if not present.is_finished or controller is None or controller.name != owner.name:
                return False
            self._cluster.delete(present)
            self._pods.remove(present)
        return True

    def _add_claim(self, owner: StatefulSet, claim: PersistentVolumeClaim, pod_name: str) -> None:
        """Create a claim of one pod of the set."""
        claim = with_default_class(claim, self._cluster)
        if self._admission is not None:
            self._admission.check(claim)
        self._cluster.add(claim)


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def first_to_go(pods: Iterable[Pod], related: Iterable[Pod] | None = None) -> list[Pod]:
    """The pods in deletion order: pending ones, cheap ones, ones that share a node, young ones.

    `related` are the pods that a node may be shared with: those of all versions of a workload. Default: `pods`.
    """
    ranked = list(pods)
    sharing = Counter(pod.node_name for pod in (ranked if related is None else related))
    ranked.reverse()  # of equal ones the newest is deleted first
    ranked.sort(key=lambda pod: pod.status.start_time or "", reverse=True)
    ranked.sort(key=lambda pod: (bool(pod.node_name), deletion_cost(pod), -sharing[pod.node_name]))
    return ranked


def deletion_cost(pod: Pod) -> int:
    """The pod's deletion cost relative to the others."""
    text = pod.annotations.get(DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isdecimal() else 0


MAX_PODS_PER_WORKLOAD = 1_000_000


WORKLOAD_KINDS = (
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
)


def make_pod(
    owner: KubeObject,
    template: PodTemplateSpec,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod of `owner`, made from `template`, with the given overrides."""
    pod = Pod(
        name,
        owner.namespace,
        labels=shared_map({**template.labels, **(labels or {})}),
        annotations=shared_map({**template.annotations, **(annotations or {})}),
        owner_references=shared((deployments.owner_reference(owner),)),
        generate_name="" if isinstance(owner, StatefulSet) else f"{owner.name}-",
        node_name=template.node_name,
        spec=spec or template.spec,
    )
    source = template_source(template)
    return pod if source is None else with_source(pod, source)


def make_stateful_pod(
    stateful_set: StatefulSet,
    number: int,
    revision: str,
    claims: dict[str, PersistentVolumeClaim],
) -> Pod:
    """The pod with that ordinal."""
    template, name = stateful_set.spec.template, f"{stateful_set.name}-{number}"
    labels = {REVISION_HASH: revision, POD_NAME: name, POD_INDEX: str(number)}
    own = make_spec(template, claims)
    spec = None if own is None else intern_spec(own)
    return make_pod(stateful_set, template, name, labels=labels, spec=spec)


def checked(owner: KubeObject, replicas: int) -> int:
    """`replicas`, up to a sanity limit."""
    if replicas > MAX_PODS_PER_WORKLOAD:
        field = "parallelism" if owner.kind == "Job" else "replicas"
        fault = f"expected at most {MAX_PODS_PER_WORKLOAD}; got {replicas}"
        raise AdmissionError(owner, f"spec.{field}", fault)
    return replicas
