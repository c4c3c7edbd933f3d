"""Claim plans: the requests of claims, worked out once for all claims with equal requests.

Mirrors the checks of validateDeviceRequest in
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
"""

from __future__ import annotations

import msgspec

from ...api.dra import (
    ALL_DEVICES,
    EXACT_COUNT,
    MAX_RESULTS,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    WantedDevices,
)
from ...api.taints import Toleration
from ...api.text.quantity import Quantity
from ...errors import BayplanError
from ...framework.devices import DeviceClasses, DeviceFeatures, Selection


class AllocationError(BayplanError):
    """The devices of a claim cannot be searched for; the attempt fails."""


class NoSuchClassError(AllocationError):
    """A request names a missing class, or has alternatives while their feature gate is off; the pod waits."""


class RequestPlan(msgspec.Struct, frozen=True, eq=False):
    """A request, or one of its alternatives."""

    request: str
    alternative: str
    device_class: DeviceClass
    selection: Selection
    wants_all: bool
    count: int
    is_admin: bool
    capacity: dict[str, Quantity] | None
    capacity_key: object
    tolerations: tuple[Toleration, ...] | None
    position: int = 0
    """Position among the alternatives; 0 if there are none."""
    fault: str = ""
    """Reason why no device can be searched for; found out at the first node that is searched."""

    @property
    def name(self) -> str:
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def own_name(self) -> str:
        """The name without the name of the parent request, as in errors of the search."""
        return self.alternative or self.request


class ClaimPlan(msgspec.Struct, frozen=True, eq=False):
    """Requests of one claim: for each request its alternatives, one of which must be served."""

    requests: tuple[tuple[RequestPlan, ...], ...]
    constraints: tuple[DeviceConstraint, ...]
    devices: DeviceClaim
    is_plain: bool
    """Whether its requests are plain counts of devices, within the limit of a claim."""
    has_config: bool
    """Whether it, or a class it names, has parameters for the drivers."""


def plan_claim(devices: DeviceClaim, classes: DeviceClasses, where: str) -> ClaimPlan:
    """The plan for a claim; `where` names the claim in errors.

    Raises NoSuchClassError, or AllocationError for a request without a class.
    """
    requests = tuple(_options(request, classes, where) for request in devices.requests or ())
    constraints = devices.constraints or ()
    is_plain = not constraints and all(_is_plain(options) for options in requests)
    is_plain = is_plain and sum(options[0].count for options in requests) <= MAX_RESULTS
    classes_named = [plan.device_class for options in requests for plan in options]
    has_config = bool(devices.config) or any(c.spec.config for c in classes_named)
    return ClaimPlan(requests, constraints, devices, is_plain, has_config)


def _is_plain(options: tuple[RequestPlan, ...]) -> bool:
    plan = options[0]
    return not (plan.alternative or plan.wants_all or plan.is_admin or plan.capacity or plan.fault)


def _options(request: DeviceRequest, classes: DeviceClasses, where: str) -> tuple[RequestPlan, ...]:
    if request.exactly is not None:
        return (_plan_request(request, request.exactly, "", 0, classes, where),)
    if request.first_available:
        if not classes.features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise NoSuchClassError(f"resource claim {where}, request {request.name}: {text}")
        return tuple(
            _plan_request(request, option, option.name, i, classes, where)
            for i, option in enumerate(request.first_available)
        )
    text = f"resource claim {where}, request {request.name}: unknown request type"
    raise NoSuchClassError(text)


def _plan_request(
    request: DeviceRequest,
    wanted: WantedDevices,
    alternative: str,
    position: int,
    classes: DeviceClasses,
    where: str,
) -> RequestPlan:
    name = f"{request.name}/{alternative}" if alternative else request.name
    if not wanted.device_class_name:
        raise AllocationError(f"request {name}: unsupported request type")
    device_class = classes.get(wanted.device_class_name)
    if device_class is None:
        text = f"request {name}: device class {wanted.device_class_name} does not exist"
        raise NoSuchClassError(text)
    tolerations = wanted.tolerations or ()
    capacity = wanted.capacity.requests if wanted.capacity is not None else None
    return RequestPlan(
        request=request.name,
        alternative=alternative,
        device_class=device_class,
        selection=classes.selection(device_class, wanted.selectors or (), tolerations),
        wants_all=wanted.allocation_mode == ALL_DEVICES,
        count=wanted.count or 1,
        is_admin=isinstance(wanted, ExactDeviceRequest) and bool(wanted.admin_access),
        capacity=capacity,
        capacity_key=tuple(sorted((capacity or {}).items(), key=lambda item: item[0])),
        tolerations=wanted.tolerations,
        position=position,
        fault=_fault(wanted, classes.features),
    )


def _fault(wanted: WantedDevices, features: DeviceFeatures) -> str:
    """Reason why the search cannot serve a request, as the end of a sentence that begins with its name; empty if it
    can.
    """
    for i, selector in enumerate(wanted.selectors or ()):
        if selector.cel is None:
            return f", selector #{i}: CEL expression empty (unsupported selector type?)"
    admin_access = wanted.admin_access if isinstance(wanted, ExactDeviceRequest) else None
    if admin_access is not None and not features.admin_access:
        return ": admin access is requested, but the feature is disabled"
    mode = wanted.allocation_mode or EXACT_COUNT
    return "" if mode in (EXACT_COUNT, ALL_DEVICES) else f": unsupported count mode {mode}"
