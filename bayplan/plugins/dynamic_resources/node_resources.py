"""Node resources: devices that use up cpu, memory, storage or huge pages of their node.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go, which is behind the feature
gate DRANodeAllocatableResources. Devices are found by driver, pool and name; upstream leaves the driver out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...api.devices import Device, NodeAllocatableResourceMapping
from ...api.dra import AllocationResult, ResourceClaim
from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_status import NodeAllocatableResourceClaimStatus, NodeClaimStatuses
from ...api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Amounts,
    is_hugepages,
    pod_amounts,
    to_unit,
)
from ...api.text.quantity import NANO, ExactAmount, Quantity
from ...framework import SUCCESS, CycleState, Status, Verdict, failure, unresolvable, unschedulable
from ...framework.devices import Devices
from ...table import NodeInfo, NodeTable, Rows
from ...table.what_if import rows_in
from .claim_plans import AllocationError
from .claim_state import ClaimState
from .search import Taken

ONE = ExactAmount(NANO)


class DeviceUse(NamedTuple):
    """A device that a claim gets, and the part of its capacity."""

    device: Device
    consumed: Mapping[str, Quantity] | None


class NodeResources:
    """Resources of each node that the devices of a pod would use up."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def refuse_shared(
        self, known: ClaimState, pod: Pod, table: NodeTable, rows: Rows, verdict: Verdict
    ) -> None:
        """Refuse the nodes on which another pod has a claim of `pod` that uses up resources of the node."""
        allocated = [claim for claim in known.claims if claim.allocation is not None]
        if not allocated:
            return
        statuses = []
        for row in table.numbers(rows).tolist():
            users = _users(pod.namespace, table.pods[row].values())
            node = table.nodes[row]
            reached = [claim for claim in allocated if users and node and _reaches(claim, node)]
            found = (_sharing(claim.name, users.get(claim.name, set()), pod) for claim in reached)
            statuses.append(next((s for s in found if not s.is_success), SUCCESS))
        _refuse(verdict, statuses)

    def judge(
        self,
        state: CycleState,
        known: ClaimState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        verdict: Verdict,
    ) -> None:
        """Refuse the nodes that lack resources for the pod and its devices together; for others note the devices'
        use.
        """
        if known.answers is None or state.node_claims is None:
            return
        there = self._devices.table.numbers(rows_in(self._devices.table, table, rows)).tolist()
        # By position of the claim, the devices that another pod of the group is about to write to it.
        pending = {position: [*self._uses(wanted)] for position, wanted in known.pending.items()}
        statuses = []
        for position, row in enumerate(table.numbers(rows).tolist()):
            status = SUCCESS
            if verdict.codes[position] == 0 and table.nodes[row] is not None:
                taken = known.answers.find(there[position], known.keys) or []
                uses = {**pending, **_taken_by(known, taken)}
                try:
                    found = node_claims(pod, known, uses)
                except AllocationError as error:
                    verdict.error = failure(error)
                    return
                status = judge_node(pod, found, table.node_at(row))
                if status.is_success and found:
                    state.node_claims[table.names[row]] = found
            statuses.append(status)
        _refuse(verdict, statuses)

    def _uses(self, allocation: AllocationResult) -> Iterable[DeviceUse]:
        for result in allocation.devices.results or ():
            device = self._devices.inventory.device((result.driver, result.pool, result.device))
            if device is not None:
                yield DeviceUse(device, result.consumed_capacity)


def _taken_by(known: ClaimState, taken: Sequence[Sequence[Taken]]) -> dict[int, list[DeviceUse]]:
    """The devices that were found for each claim, by its position."""
    positions = [
        position
        for position, claim in enumerate(known.claims)
        if claim.allocation is None and position not in known.pending
    ]
    return {
        position: [DeviceUse(one.offer.device, _consumed(one)) for one in found]
        for position, found in zip(positions, taken, strict=False)
    }


def _consumed(taken: Taken) -> dict[str, Quantity] | None:
    return {name: use.quantity for name, use in taken.uses.items()} if taken.uses else None


def node_claims(
    pod: Pod, known: ClaimState, uses: Mapping[int, Iterable[DeviceUse]]
) -> NodeClaimStatuses:
    """Entries of the pod's status about devices that use up resources of the node, by the names of the claims.

    AllocationError if the use depends on a capacity of the device that is not consumed.
    """
    found: dict[str, tuple[str, dict[str, ExactAmount]]] = {}
    for position in sorted(uses):
        claim = known.claims[position]
        amounts: dict[str, ExactAmount] = {}
        for use in uses[position]:
            for resource, amount in _amounts(claim.key, use):
                total = amounts.get(resource)
                amounts[resource] = amount if total is None else total.plus(amount)
        if amounts:
            found[claim.uid] = (claim.name, amounts)
    if not found:
        return ()
    containers = _containers(pod, known)
    statuses = [
        NodeAllocatableResourceClaimStatus(
            resource_claim_name=name,
            containers=tuple(containers.get(uid, ())) or None,
            resources={resource: str(amount) for resource, amount in amounts.items()},
        )
        for uid, (name, amounts) in found.items()
    ]
    return tuple(sorted(statuses, key=lambda status: status.resource_claim_name))


def _amounts(claim: str, use: DeviceUse) -> Iterable[tuple[str, ExactAmount]]:
    for resource, mapping in sorted((use.device.node_allocatable_resource_mappings or {}).items()):
        amount = _amount(claim, resource, mapping, use)
        if amount is not None:
            yield resource, amount


def _amount(
    claim: str, resource: str, mapping: NodeAllocatableResourceMapping, use: DeviceUse
) -> ExactAmount | None:
    """Amount of a resource that is used; None if the device does not consume the capacity that it depends on."""
    multiplier = mapping.allocation_multiplier
    times = ONE if multiplier is None else ExactAmount.of(multiplier)
    key = mapping.capacity_key
    if not key:
        return times
    if use.consumed is None:
        text = f"ConsumedCapacity is nil, but Capacity key '{key}' is set in NodeAllocatableResourceMappings"
        raise AllocationError(
            f"claim {claim}, device {use.device.name}: {text} for resource {resource}"
        )
    if key not in use.consumed:
        return None
    consumed = ExactAmount.of(use.consumed[key])
    return ExactAmount(-(-consumed.nano * times.nano // NANO), consumed.notation)


def _containers(pod: Pod, known: ClaimState) -> dict[str, list[str]]:
    """The names of the containers with each claim, by its uid."""
    uids = {name: claim.uid for name, claim in zip(known.names, known.claims, strict=False)}
    found: dict[str, list[str]] = {}
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        for claim in (container.resources.claims if container.resources else None) or ():
            if claim.name in uids:
                found.setdefault(uids[claim.name], []).append(container.name)
    return found


def judge_node(pod: Pod, claims: NodeClaimStatuses, node: NodeInfo) -> Status:
    """Whether the node has the resources that the containers of the pod and the devices of its claims need together."""
    if not claims:
        return SUCCESS
    for claim in claims:
        if not claim.containers:
            text = "node-allocatable resource claim not referenced by any container within the pod"
            return unresolvable(f"claim {claim.resource_claim_name}: {text}")
    total = pod_amounts(pod.spec, claims=claims)
    if pod.spec.resources is not None and pod.spec.resources.requests is not None:
        parts = pod_amounts(pod.spec, claims=claims, pod_level=False)
        for name in sorted(total):
            if parts.get(name, 0) > total[name]:
                text = "is insufficient to cover the aggregated container and node-allocatable DRA requests"
                return unresolvable(f"pod level request for {name} {text}")
    return _fits(total, node)


def _fits(total: Amounts, node: NodeInfo) -> Status:
    offered, used = node.allocatable, node.requested
    reasons, is_hopeless = [], False
    names = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if total.get(name)]
    for name in (*names, *sorted(filter(is_hugepages, total))):
        wanted, capacity = to_unit(name, total[name]), offered.get(name, 0)
        if wanted > capacity - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            is_hopeless = is_hopeless or wanted > capacity
    if not reasons:
        return SUCCESS
    return unresolvable(*reasons) if is_hopeless else unschedulable(*reasons)


def _reaches(claim: ResourceClaim, node: Node) -> bool:
    """Whether the devices of an allocated claim can be used from the node."""
    selector = claim.allocation.node_selector if claim.allocation is not None else None
    return selector is None or selector.matches(node.labels, node.name)


def _users(namespace: str, pods: Iterable[Pod]) -> dict[str, set[str]]:
    """The uids of the pods with each claim of the namespace that uses up resources of their node."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        if pod.counts_claims and pod.namespace == namespace:
            for claim in pod.status.node_allocatable_resource_claim_statuses or ():
                found.setdefault(claim.resource_claim_name, set()).add(pod.uid)
    return found


def _sharing(name: str, users: set[str], pod: Pod) -> Status:
    if len(users) > 1:
        return unresolvable(f"node allocatable resource claim {name} shared by multiple pods")
    if users and pod.uid not in users:
        return unresolvable(
            f"node allocatable resource claim {name} is already used by another pod"
        )
    return SUCCESS


def _refuse(verdict: Verdict, statuses: Sequence[Status]) -> None:
    """Add refusals to a verdict; those rows are not refused yet."""
    found = Verdict.from_statuses(statuses)
    verdict.codes |= found.codes
    for reason, mask in found.reasons.items():
        known = verdict.reasons.get(reason)
        verdict.reasons[reason] = mask if known is None else known | mask
