"""Template pods: a pod of a workload, made from its template."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.sharing import shared, shared_map
from ...api.sourced import template_source, with_source
from ...api.workloads import PodTemplateSpec, StatefulSet
from . import deployments


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
        spec=template.spec,
    )
    source = template_source(template)
    if source is not None:
        pod = with_source(pod, source)
    return pod if spec is None else pod.with_spec(spec)
