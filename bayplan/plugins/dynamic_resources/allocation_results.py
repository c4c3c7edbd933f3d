"""Allocation results: the status of a claim that was given devices.

Mirrors the end of Allocate and createNodeSelector of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ...api.dra import (
    MAX_ALTERNATIVES,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from ...api.selectors import NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement
from ...releases.release import Release
from .claim_plans import ClaimPlan, RequestPlan
from .search import Taken


def make_allocation(
    plan: ClaimPlan,
    taken: Sequence[Taken],
    node_name: str,
    source: random.Random,
    release: Release,
) -> AllocationResult:
    """The allocation of a claim; `source` gives names to shares of devices."""
    config = _config(plan, taken, release.copies_config_once)
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(one, source) for one in taken), config=tuple(config) or None
        ),
        node_selector=_node_selector(taken, node_name),
    )


def _result(taken: Taken, source: random.Random) -> DeviceRequestAllocationResult:
    plan, offer, uses = taken
    driver, pool, name = offer.id
    share = UUID(int=source.getrandbits(128), version=4) if offer.is_shared else None
    return DeviceRequestAllocationResult(
        request=plan.name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if plan.is_admin else None,
        tolerations=plan.tolerations,
        binding_conditions=offer.device.binding_conditions,
        binding_failure_conditions=offer.device.binding_failure_conditions,
        share_id=None if share is None else str(share),
        consumed_capacity={n: use.quantity for n, use in uses.items()} if uses else None,
    )


def _config(plan: ClaimPlan, taken: Sequence[Taken], is_copied_once: bool) -> list[dict[str, Any]]:
    """Configuration of classes and claim for the drivers: of each class once, then of the claim."""
    if not plan.has_config:
        return []
    chosen = [_chosen(options, taken) for options in plan.requests]
    by_class: dict[str, list[RequestPlan]] = {}
    for option in chosen:
        by_class.setdefault(option.device_class.name, []).append(option)
    config: list[dict[str, Any]] = []
    for options in by_class.values():
        names = [option.name for option in options]
        for entry in options[0].device_class.spec.config or ():
            config.append({**entry, "source": "FromClass", "requests": names})
    for entry in plan.devices.config or ():
        wanted = entry.get("requests") or []
        if not wanted:
            config.append({**entry, "source": "FromClaim"})
            continue
        for option in chosen:
            if option.request in wanted or option.name in wanted:
                config.append({**entry, "source": "FromClaim"})
                if is_copied_once:
                    break
    return config


def _chosen(options: tuple[RequestPlan, ...], taken: Sequence[Taken]) -> RequestPlan:
    """The served alternative of a request."""
    used = {one.plan for one in taken}
    return next((option for option in options if option in used), options[0])


def _node_selector(taken: Sequence[Taken], node_name: str) -> NodeSelector | None:
    """The nodes from which the devices can be used; None for all."""
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for _, offer, _ in taken:
        spec, device = offer.slice.spec, offer.device
        per_device = spec.per_device_node_selection
        where = device.node_name if per_device else spec.node_name
        selector = device.node_selector if per_device else spec.node_selector
        if where is not None or device.binds_to_node:
            named = Requirement(key=NAME_FIELD, operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
        for term in selector.terms[:1] if selector is not None else ():
            _add_new(term.fields, fields)
            _add_new(term.expressions, expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(
        match_fields=tuple(fields) or None, match_expressions=tuple(expressions) or None
    )
    return NodeSelector(node_selector_terms=(term,))


def _add_new(wanted: Sequence[Requirement], known: list[Requirement]) -> None:
    """Add the missing conditions; the order of values is ignored."""
    for requirement in wanted:
        if requirement.canonical() not in [other.canonical() for other in known]:
            known.append(requirement)


def score_taken(taken: Sequence[Taken]) -> int:
    """Points for alternatives: earlier ones get more; each counts once, whatever the number of its devices."""
    chosen = {one.plan: MAX_ALTERNATIVES - one.plan.position for one in taken}
    return sum(points for plan, points in chosen.items() if plan.alternative)


def score_allocated(claim: ResourceClaim, allocation: AllocationResult | None) -> int:
    """Points for the alternatives of a claim that has its devices, or is about to get them."""
    results = allocation.devices.results or () if allocation is not None else ()
    used = {result.request for result in results if "/" in result.request}
    return sum(
        MAX_ALTERNATIVES - i
        for request in claim.spec.devices.requests or ()
        for i, option in enumerate(request.first_available or ())
        if f"{request.name}/{option.name}" in used
    )


def has_alternatives(claims: Sequence[ResourceClaim]) -> bool:
    """Whether some request has alternatives; otherwise all nodes score 0."""
    for claim in claims:
        for request in claim.spec.devices.requests or ():
            if request.first_available is not None:
                return True
    return False
