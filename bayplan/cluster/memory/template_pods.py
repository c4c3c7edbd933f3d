"""Template pods: a pod of a workload, made from its template."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.pod_spec import PodSpec, intern_spec
from ...api.storage import PersistentVolumeClaim
from ...api.wire.interning import shared, shared_map
from ...api.wire.sourced import template_source, with_source
from ...api.workloads import PodTemplateSpec, StatefulSet
from . import deployments
from .admission import AdmissionError
from .stateful_sets import REVISION_HASH, identity_labels, make_spec

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
    labels = {REVISION_HASH: revision, **identity_labels(name, number)}
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
