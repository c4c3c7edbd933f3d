"""New objects: complete objects for the controllers' creations.

A controller makes a pod from our type of a template, which omits many fields. Here the pod starts
as the stored template, and the controller's changes are carried over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...api.meta import KubeObject, controller_of
from ...api.pod import Pod
from ...api.wire.encode import to_dict
from ...api.wire.whole import carry_over
from ...api.workloads import Deployment, Job, ReplicaSet, StatefulSet, pod_template
from ...cluster.memory.deployments import TEMPLATE_HASH
from ...cluster.memory.rollouts import annotated
from ...cluster.memory.stateful_sets import REVISION_HASH
from ...cluster.objects.object_index import ClusterObject, ObjectIndex
from ..registry.resource_table import BY_KIND, ApiResource
from ..store.store import Store
from .revisions import Revisions

Tree = dict[str, Any]

_SORTED = msgspec.json.Encoder(order="deterministic")
_GROUPS = {kind: group for group, kind in BY_KIND if group not in ("events.k8s.io",)}


def resource_named(kind: str) -> ApiResource:
    """The resource of one of our kinds."""
    return BY_KIND[_GROUPS[kind], kind]


class Making:
    """Makes trees of objects to be stored."""

    def __init__(self, store: Store, mirror: ObjectIndex, revisions: Revisions) -> None:
        self._store = store
        self._mirror = mirror
        self._revisions = revisions

    def tree_of(self, obj: ClusterObject) -> Tree:
        """The object to be stored."""
        if isinstance(obj, Pod):
            return self._pod(obj)
        if isinstance(obj, ReplicaSet):
            return self._replica_set(obj)
        if isinstance(obj, Job):
            return self._job(obj)
        tree = to_dict(obj)
        _block_owner(tree["metadata"])
        return tree

    def read_template(self, workload: KubeObject) -> bytes:
        """The template of a stored workload, without its hash."""
        template = self._template(workload.kind, workload.namespace, workload.name)
        metadata = dict(template.get("metadata") or {})
        metadata.pop("creationTimestamp", None)
        labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != TEMPLATE_HASH}
        metadata["labels"] = labels
        return _SORTED.encode({**template, "metadata": metadata})

    def _template(self, kind: str, namespace: str, name: str) -> Tree:
        record = self._store.get(resource_named(kind).storage, (namespace, name))
        tree = record.decode() if record is not None else {}
        found: Tree = (tree.get("spec") or {}).get("template") or {}
        return found

    def _pod(self, pod: Pod) -> Tree:
        owner = pod.controller
        workload = self._mirror.get(owner.kind, pod.namespace, owner.name) if owner else None
        whole: Tree | None = None
        if isinstance(workload, StatefulSet):  # pods may be made from an earlier template
            revision = pod.labels.get(REVISION_HASH, "")
            whole = self._revisions.template(pod.namespace, revision)
            workload, _ = self._revisions.as_of(workload, revision) or (workload, "")
        template = pod_template(workload)
        if owner is None or template is None:
            return to_dict(pod)
        if whole is None:
            whole = self._template(owner.kind, pod.namespace, owner.name)
        made = Pod(
            "",
            pod.namespace,
            labels=template.labels,
            annotations=template.annotations,
            node_name=template.node_name,
            spec=template.spec,
        )
        tree: Tree = carry_over(whole, to_dict(made), to_dict(pod))
        tree["metadata"] = metadata = to_dict(pod)["metadata"]
        finalizers = (whole.get("metadata") or {}).get("finalizers")
        if finalizers is not None:
            metadata["finalizers"] = finalizers
        _block_owner(metadata)
        tree["metadata"].setdefault("generateName", f"{owner.name}-")
        if isinstance(workload, StatefulSet):
            tree["spec"] = {**tree["spec"], "hostname": pod.name}
            if workload.spec.service_name:
                tree["spec"]["subdomain"] = workload.spec.service_name
            _mount_claims(tree["spec"], workload, pod.name, whole)
        tree.pop("status", None)
        return tree

    def _replica_set(self, replica_set: ReplicaSet) -> Tree:
        owner = controller_of(replica_set.owner_references)
        place = ("Deployment", replica_set.namespace, owner.name if owner else "")
        deployment: Deployment | None = self._mirror.get(*place)
        if deployment is not None:
            replica_set = annotated(replica_set, deployment)
        tree = to_dict(replica_set)
        if owner is None:
            return tree
        whole = self._template(owner.kind, replica_set.namespace, owner.name)
        metadata = dict(whole.get("metadata") or {})
        metadata["labels"] = dict(replica_set.spec.template.labels)
        tree["spec"]["template"] = {**whole, "metadata": metadata}
        _block_owner(tree["metadata"])
        return tree

    def _job(self, job: Job) -> Tree:
        """A job with all fields of the template of its CronJob."""
        tree = to_dict(job)
        owner = controller_of(job.owner_references)
        if owner is not None and owner.kind == "CronJob":
            record = self._store.get("cronjobs.batch", (job.namespace, owner.name))
            whole = record.decode()["spec"]["jobTemplate"] if record is not None else {}
            tree["spec"] = whole.get("spec") or tree["spec"]
        tree.pop("status", None)
        _block_owner(tree["metadata"])
        return tree


def _block_owner(metadata: Tree) -> None:
    """Make the controller wait for the object when it is deleted in the foreground."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            owner.setdefault("blockOwnerDeletion", True)


def _mount_claims(spec: Tree, workload: StatefulSet, pod_name: str, template: Tree) -> None:
    """The volumes of a pod with its own claims; our shared specs do not keep the names of volumes."""
    names = [claim.name for claim in workload.spec.volume_claim_templates or ()]
    if not names:
        return
    others = (template.get("spec") or {}).get("volumes") or ()
    spec["volumes"] = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}}
        for name in names
    ] + [volume for volume in others if volume.get("name") not in names]
