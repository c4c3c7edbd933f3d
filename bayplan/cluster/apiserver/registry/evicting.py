"""Evicting: delete a pod unless a disruption budget forbids it.

Mirrors pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....api.causes import Cause
from ....api.workloads import PodDisruptionBudget
from . import pods
from .errors import StatusError, bad_request, forbidden, too_many_requests
from .registry import DeleteOptions, ObjectRegistry
from .resources import BY_STORAGE

Tree = dict[str, Any]
BUDGETS = BY_STORAGE["poddisruptionbudgets.policy"]
UNGUARDED = ("Succeeded", "Failed", "Pending")
MAX_DISRUPTED = 2000
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(
    registry: ObjectRegistry,
    namespace: str,
    name: str,
    eviction: Mapping[str, Any],
    options: DeleteOptions,
) -> None:
    """Delete the pod as an Eviction requests; raises StatusError (429) when its budget does not
    allow it."""
    given = (eviction.get("metadata") or {}).get("name")
    if given != name:
        raise bad_request("name in URL does not match name in Eviction object")
    record = registry.get(pods.PODS, namespace, name)
    pod = record.decode()
    pods.check_preconditions(pods.PODS, pod, options.uid, options.resource_version)
    is_leaving = bool(pod["metadata"].get("deletionTimestamp"))
    if not is_leaving and (pod.get("status") or {}).get("phase") not in UNGUARDED:
        _ask_budget(registry, namespace, pod, options.dry_run)
    if not options.dry_run:
        status = {**(pod.get("status") or {})}
        pods.set_condition(status, CONDITION, registry.now())
        registry.write(pods.PODS, record, {**pod, "status": status})
    registry.delete(pods.PODS, namespace, name, replace(options, resource_version=""))


def _ask_budget(registry: ObjectRegistry, namespace: str, pod: Tree, dry_run: bool) -> None:
    """Take one disruption from the budget of the pod, or reject the eviction."""
    labels = pod["metadata"].get("labels") or {}
    found: list[PodDisruptionBudget] = [
        budget
        for budget in registry.lister.list("PodDisruptionBudget", namespace)
        if budget.spec.selector is not None and budget.spec.selector.matches(labels)
    ]
    if not found:
        return
    if len(found) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, of which an eviction can ask but one."
        )
        raise StatusError(500, "InternalError", message)
    budget, status = found[0], found[0].status
    if not _is_ready(pod):
        if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
            return
        if status.current_healthy >= status.desired_healthy > 0:
            return
    _take(registry, budget, pod["metadata"]["name"], dry_run)


def _take(
    registry: ObjectRegistry, budget: PodDisruptionBudget, pod_name: str, dry_run: bool
) -> None:
    status = budget.status
    if status.observed_generation < budget.metadata.generation:
        message = f"The disruption budget {budget.name} is still being processed by the server."
        raise _refusal(message)
    if len(budget.disrupted_pods) > MAX_DISRUPTED:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(BUDGETS, budget.name, problem)
    if status.disruptions_allowed <= 0:
        message = (
            f"The disruption budget {budget.name} needs {status.desired_healthy} healthy pods"
            f" and has {status.current_healthy} currently"
        )
        raise _refusal(message)

    def taken(tree: Tree) -> Tree:
        said = tree.setdefault("status", {})
        said["disruptionsAllowed"] = status.disruptions_allowed - 1
        said["disruptedPods"] = {**(said.get("disruptedPods") or {}), pod_name: registry.now()}
        return tree

    registry.update(BUDGETS, budget.namespace, budget.name, taken, "status", dry_run)


def _refusal(message: str) -> StatusError:
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return too_many_requests(text, [Cause("DisruptionBudget", message)], 10)


def _is_ready(pod: Tree) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
