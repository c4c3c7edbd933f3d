"""Device rules: faults of claims for devices.

Mirrors validateDeviceClaim of pkg/apis/resource/validation/validation.go. The other faults are found when the object is
decoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..cel.device_expressions import MISSING, CelError, compile_expression
from ..cel.object_rules import shown_fault
from ..text.name_faults import dns_label_faults, subdomain_faults
from .field_causes import Cause, Part, forbidden_field

MAX_REQUESTS = 32
_PLACE = re.compile(r"<input>:(?P<line>\d+):(?P<column>\d+): (?P<fault>.*)", re.DOTALL)
_ONE = "exactly one of `exactly` or `firstAvailable` is required"


def check_claim_spec(spec: Part) -> None:
    """Check the spec of a ResourceClaim, or of a template of them."""
    devices, names = spec.below("devices"), set[str]()
    count = len(devices.get("requests") or ())
    if count > MAX_REQUESTS:
        devices.too_many("requests", count, MAX_REQUESTS)
    for request in devices.each("requests"):
        request.unique("", names, str(request.get("name") or ""))
        request.check("name", dns_label_faults)
        has_options, is_exact = bool(request.get("firstAvailable")), request.has("exactly")
        if not has_options and not is_exact:
            request.required("", _ONE)
        elif has_options and is_exact:
            request.invalid("", f"{_ONE}, but multiple fields are set", None)
        elif is_exact:
            _check_wanted(request.below("exactly"))
        for option in () if is_exact else request.each("firstAvailable"):
            option.check("name", dns_label_faults)
            _check_wanted(option)


def _check_wanted(wanted: Part) -> None:
    count = wanted.get("count") or 0
    wanted.needs_text("deviceClassName", subdomain_faults)
    mode = wanted.get("allocationMode") or "ExactCount"
    if mode == "All":
        if count:
            wanted.invalid("count", "must not be specified when allocationMode is 'All'")
    elif mode != "ExactCount":
        wanted.unsupported("allocationMode", ("All", "ExactCount"))
    elif wanted.has("count") and count <= 0:
        wanted.invalid("count", "must be greater than zero")
    for selector in wanted.each("selectors"):
        if selector.has("cel"):
            selector.below("cel").check("expression", _expression_faults)
        else:
            selector.required("cel")


def _expression_faults(text: str) -> tuple[str, ...]:
    """The fault of an expression that does not compile; none where expressions cannot be compiled."""
    try:
        compile_expression(text)
    except CelError as error:
        problem = str(error)
        place = _PLACE.match(problem)
        if place is None:
            return () if problem == MISSING else (problem,)
        before = text.split("\n")[: int(place["line"]) - 1]
        offset = sum(len(one) + 1 for one in before) + int(place["column"]) - 1
        return (f"compilation failed: {shown_fault(text, offset, place['fault'])}",)
    return ()


ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_ADMIN_FAULT = (
    f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
)


def admin_access_causes(
    claim: Mapping[str, Any], namespace_labels: Mapping[str, str]
) -> list[Cause]:
    """Requests for admin access of a claim, or of the claims of a template, where its namespace does not allow it."""
    if namespace_labels.get(ADMIN_LABEL) == "true":
        return []
    spec = claim.get("spec") or {}
    devices = (spec.get("spec") or spec).get("devices") or {}
    return [
        forbidden_field(f"spec.devices.requests[{i}].adminAccess", _ADMIN_FAULT)
        for i, request in enumerate(devices.get("requests") or ())
        if (request.get("exactly") or {}).get("adminAccess")
    ]
