"""Budgets: how many pods of a PodDisruptionBudget may be evicted, and the message for an eviction.

Mirrors the arithmetic of pkg/controller/disruption and the checks of
pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ...api.meta import controller_of
from ...api.pod import Pod
from ...api.wire.kinds import resource_name
from ...api.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus
from ...errors import BayplanError

Find: TypeAlias = Callable[[str, str, str], Any]
"""The object of a kind, namespace and name; None when there is none."""

UNSCALABLE = ("DaemonSet", "Job", "Node")
"""Owners of pods that have no number of replicas."""
ALWAYS_ALLOW = "AlwaysAllow"


class BudgetSyncError(BayplanError):
    """The expected number of pods cannot be determined; no pod may be evicted."""


class PodOwner(NamedTuple):
    """The controller of a pod, from its owner reference."""

    kind: str
    name: str


def owner_of(pod: Pod) -> PodOwner | None:
    """The controller of the pod; None for an unmanaged one, which is not counted."""
    owner = pod.controller
    return None if owner is None else PodOwner(owner.kind, owner.name)


def budget_status(
    budget: PodDisruptionBudget,
    pods: Mapping[str, Pod],
    healthy: int,
    owners: Mapping[PodOwner, int],
    find: Find,
    owners_may_be_absent: bool,
) -> PodDisruptionBudgetStatus:
    """The status of the budget with these pods, by name; those that are being evicted are not `healthy`.

    Pods of a controller that is not in the cluster count as all that it wants, if `owners_may_be_absent`. Raises
    BudgetSyncError when the number of expected pods is unknown.
    """
    at_least, at_most = budget.spec.min_available, budget.spec.max_unavailable
    expected = desired = 0
    if at_most is None and isinstance(at_least, int):
        expected, desired = len(pods), at_least
    elif at_most is not None or at_least is not None:
        wanted: dict[PodOwner, int] = {}  # replica sets of one deployment count once
        for owner, count in owners.items():
            found = _scale(owner, budget.namespace, find)
            if found is not None:
                wanted[found[0]] = found[1]
            elif owners_may_be_absent:
                wanted[owner] = count
            else:
                raise BudgetSyncError(f'found no controllers for pod "{next(iter(pods))}"')
        expected = sum(wanted.values())
        if at_most is not None:
            desired = max(expected - share_of(at_most, expected), 0)
        elif at_least is not None:
            desired = share_of(at_least, expected)
    return PodDisruptionBudgetStatus(
        disruptions_allowed=max(healthy - desired, 0) if expected > 0 else 0,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        observed_generation=budget.metadata.generation,
    )


def share_of(amount: int | str, whole: int) -> int:
    """A number, or a percentage of the whole such as 30%, rounded up."""
    if isinstance(amount, int):
        return amount
    number = amount.removesuffix("%")
    return math.ceil(int(number) * whole / 100) if number.isdecimal() else 0


def _scale(owner: PodOwner, namespace: str, find: Find) -> tuple[PodOwner, int] | None:
    workload = find(owner.kind, namespace, owner.name)
    if workload is None:
        return None
    if owner.kind in UNSCALABLE:
        kind = resource_name(workload.api_version, owner.kind)
        raise BudgetSyncError(f"{kind} does not implement the scale subresource")
    above = controller_of(workload.metadata.owner_references or ())
    if owner.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
        owner = PodOwner(above.kind, above.name)
        workload = find(above.kind, namespace, above.name)
    if workload is None or not hasattr(workload, "replicas"):
        return None
    return owner, workload.replicas


class EvictionVerdict(NamedTuple):
    """A budget's verdict on an eviction."""

    takes_one: bool = False
    """Whether the eviction is allowed and uses up one disruption of the budget."""
    refusal: str = ""
    """Reason why it is not allowed; empty when it is."""
    is_early: bool = False
    """Whether the status of the budget is older than its spec."""


def ask_budget(
    budget: PodDisruptionBudget, is_ready: bool, sync_problem: str = ""
) -> EvictionVerdict:
    """Whether a pod of the budget may be evicted; `sync_problem` is the message of its failed controller."""
    status, name = budget.status, budget.name
    if not is_ready:
        if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
            return EvictionVerdict()
        if status.current_healthy >= status.desired_healthy > 0:
            return EvictionVerdict()
    if status.observed_generation < budget.metadata.generation:
        text = f"The disruption budget {name} is still being processed by the server."
        return EvictionVerdict(refusal=text, is_early=True)
    if status.disruptions_allowed > 0:
        return EvictionVerdict(takes_one=True)
    if sync_problem:
        text = f"does not allow evicting pods currently because it failed sync: {sync_problem}"
    elif status.current_healthy <= status.desired_healthy:
        text = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    else:
        text = "does not allow evicting pods currently"
    return EvictionVerdict(refusal=f"The disruption budget {name} {text}")
