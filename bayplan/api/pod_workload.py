"""Pod workload: the owner of a pod."""

from __future__ import annotations

from typing import TypeAlias

from .pod import Pod

TEMPLATE_HASH = "pod-template-hash"
BARE = "Pod"

WorkloadKey: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name."""


def workload_of(pod: Pod) -> tuple[str, str]:
    """Kind and name of the pod's owner: the Deployment of its ReplicaSet, another owner, or the pod itself."""
    owner = pod.controller
    if owner is None:
        return BARE, pod.name
    suffix = f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return "Deployment", owner.name.removesuffix(suffix)
    return owner.kind, owner.name


def workload_key(pod: Pod) -> WorkloadKey:
    """Key that the pods of a workload share; those of a namespace without an owner share one with an empty name."""
    kind, name = workload_of(pod)
    return pod.namespace, kind, "" if kind == BARE else name
