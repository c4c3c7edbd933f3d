"""Workload pods: the pods that controllers create and delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.storage import PersistentVolumeClaim
from ...api.workloads import PodTemplateSpec, StatefulSet
from ..objects import ControllerCluster
from .admission import Admission
from .default_class import with_default_class
from .pod_index import OwnedPods, PodIndex
from .scale_in import first_to_go
from .template_pods import make_pod


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
        """The pods on a node, and daemons that wait for it, in the order in which they came."""
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

    def _delete_some(self, pods: Iterable[Pod], excess: int) -> None:
        """Delete the surplus pods."""
        for pod in first_to_go(pods)[:excess] if excess > 0 else ():
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
        if self._pods.get(added.namespace, added.name) is not added:  # else it was told of it
            self._pods.add(added)
        return added

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
