"""Admission of resource claims, templates and device classes: defaults, and compilation of expressions.

Mirrors pkg/apis/resource/v1/defaults.go and the expression checks of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ...api.dra import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    WantedDevices,
)
from ...api.meta import KubeObject
from ...api.node import Node
from ...api.pod import Pod
from ...api.rules.device_faults import expression_problems
from .admission import AdmissionError

AnyObject = TypeVar("AnyObject", bound=Pod | Node | KubeObject)
Wanted = TypeVar("Wanted", bound=WantedDevices)


def admit_devices(obj: AnyObject) -> AnyObject:
    """A claim, template or class with the API server's defaults; other objects unchanged.

    Raises AdmissionError when an expression does not compile.
    """
    if not isinstance(obj, ResourceClaim | ResourceClaimTemplate | DeviceClass):
        return obj
    for path, problem in expression_problems(obj):
        raise AdmissionError(obj, path, problem)
    changed: Any = obj
    match obj:
        case ResourceClaim():
            spec = replace(obj.spec, devices=_devices(obj.spec.devices))
            changed = replace(obj, spec=spec)
        case ResourceClaimTemplate():
            spec = replace(obj.spec.spec, devices=_devices(obj.spec.spec.devices))
            changed = replace(obj, spec=replace(obj.spec, spec=spec))
    return cast(AnyObject, changed)


def _devices(devices: DeviceClaim) -> DeviceClaim:
    requests = tuple(_request(request) for request in devices.requests or ())
    return replace(devices, requests=requests or None)


def _request(request: DeviceRequest) -> DeviceRequest:
    exactly, options = request.exactly, request.first_available
    return replace(
        request,
        exactly=None if exactly is None else _wanted(exactly),
        first_available=None if options is None else tuple(_wanted(option) for option in options),
    )


def _wanted(wanted: Wanted) -> Wanted:
    mode = wanted.allocation_mode or EXACT_COUNT
    count = 0 if mode == ALL_DEVICES else wanted.count or 1
    tolerations = wanted.tolerations
    if tolerations is not None:
        tolerations = tuple(replace(t, operator=t.operator or "Equal") for t in tolerations)
    return replace(wanted, allocation_mode=mode, count=count, tolerations=tolerations)
