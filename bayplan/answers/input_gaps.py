"""Input gaps: kinds that a dump lacks although a question depends on them, and autoscalers that will undo a change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..api.pod import Pod
from ..api.workloads import HorizontalPodAutoscaler
from ..cluster.memory.object_store import MemoryCluster
from ..cluster.objects.object_index import ClusterObject

NO_BUDGETS = (
    "the dump has no PodDisruptionBudgets, so none holds up an eviction; add pdb to kubectl get"
)


def eviction_gaps(cluster: MemoryCluster, pods: Iterable[Pod]) -> list[str]:
    """Notes on objects that the eviction of `pods` depends on and a dump lacks.

    A live cluster, a snapshot and a dump of all kinds have namespaces; they are complete, so missing objects do not
    exist. The same holds for manifests that no API server stored.
    """
    if any(namespace.creation_timestamp for namespace in cluster.list("Namespace")):
        return []
    stored = [pod for pod in pods if pod.creation_timestamp]
    if not stored:
        return []
    notes = [] if cluster.list("PodDisruptionBudget") else [NO_BUDGETS]
    without = [pod for pod in stored if _lacks_claim(cluster, pod)]
    if without:
        number = "1 pod uses a claim" if len(without) == 1 else f"{len(without):,} pods use claims"
        notes.append(
            f"{number} that the dump lacks, such as {without[0].key}: evicted, no node takes them; "
            "add pvc,pv,sc,csinodes to kubectl get"
        )
    return notes


def _lacks_claim(cluster: MemoryCluster, pod: Pod) -> bool:
    claims = [v.persistent_volume_claim for v in pod.spec.volumes or ()]
    names = [claim.claim_name for claim in claims if claim is not None]
    return any(cluster.get("PersistentVolumeClaim", pod.namespace, n) is None for n in names)


def autoscaler_notes(cluster: MemoryCluster, workload: ClusterObject) -> list[str]:
    """A note for each autoscaler that sets the number of the workload's pods."""
    notes = []
    found: Iterable[HorizontalPodAutoscaler] = cluster.list("HorizontalPodAutoscaler")
    for each in found:
        target: Any = each.spec.scale_target_ref
        named = (target.get("kind"), target.get("name")) if isinstance(target, dict) else None
        if each.namespace == workload.namespace and named == (workload.kind, workload.name):
            low, high = each.spec.min_replicas or 1, each.spec.max_replicas
            name = f"{workload.kind.lower()}/{workload.key}"
            limits = f"{low} to {high}"
            notes.append(
                f"horizontalpodautoscaler/{each.key} sets the number of pods of {name} ({limits}); it is not simulated"
            )
    return notes
