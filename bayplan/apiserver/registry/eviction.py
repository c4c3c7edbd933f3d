"""Eviction: delete a pod unless a disruption budget forbids it.

Mirrors pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...api.rules.field_causes import Cause
from ...api.workloads import PodDisruptionBudget
from ...cluster.memory.budget_controller import TOO_MANY
from ...cluster.memory.budgets import ask_budget
from . import pods
from .object_registry import DeleteOptions, ObjectRegistry
from .resource_table import BY_STORAGE
from .status_errors import StatusError, bad_request, forbidden, too_many_requests

Tree = dict[str, Any]
BUDGETS = BY_STORAGE["poddisruptionbudgets.policy"]
UNGUARDED = ("Succeeded", "Failed", "Pending")
MAX_DISRUPTED = 2000
RETRY_S = 10
SYNC_FAILED = "SyncFailed"
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
        pods.set_conditions(status, [CONDITION], registry.now())
        registry.write(pods.PODS, record, {**pod, "status": status})
    registry.delete(pods.PODS, namespace, name, replace(options, resource_version=""))


def _ask_budget(registry: ObjectRegistry, namespace: str, pod: Tree, dry_run: bool) -> None:
    """Take one disruption from the budget of the pod, or reject the eviction."""
    labels = pod["metadata"].get("labels") or {}
    found: list[PodDisruptionBudget] = [
        budget
        for budget in registry.lister.list("PodDisruptionBudget", namespace)
        if budget.selects(namespace, labels)
    ]
    if not found:
        return
    if len(found) > 1:
        raise StatusError(500, "InternalError", TOO_MANY)
    budget = found[0]
    if len(budget.disrupted_pods) > MAX_DISRUPTED:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(BUDGETS, budget.name, problem)
    verdict = ask_budget(budget, _is_ready(pod), _sync_problem(registry, budget))
    if verdict.refusal:
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        cause = Cause("DisruptionBudget", verdict.refusal)
        raise too_many_requests(text, [cause], RETRY_S if verdict.is_early else None)
    if verdict.takes_one:
        _take(registry, budget, pod["metadata"]["name"], dry_run)


def _take(
    registry: ObjectRegistry, budget: PodDisruptionBudget, pod_name: str, dry_run: bool
) -> None:
    """Count the pod as evicted."""

    def taken(tree: Tree) -> Tree:
        said = tree.setdefault("status", {})
        said["disruptionsAllowed"] = budget.status.disruptions_allowed - 1
        said["disruptedPods"] = {**(said.get("disruptedPods") or {}), pod_name: registry.now()}
        return tree

    registry.update(BUDGETS, budget.namespace, budget.name, taken, "status", dry_run)


def _sync_problem(registry: ObjectRegistry, budget: PodDisruptionBudget) -> str:
    """Reason why the budget's controller failed; empty when it did not."""
    tree = registry.get(BUDGETS, budget.namespace, budget.name).decode()
    for condition in (tree.get("status") or {}).get("conditions") or ():
        if condition.get("reason") == SYNC_FAILED and condition.get("status") == "False":
            return str(condition.get("message") or "")
    return ""


def _is_ready(pod: Tree) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
