"""Device rules: faults of claims for devices.

Mirrors validateDeviceClaim of pkg/apis/resource/validation/validation.go. The other faults are found when the object is
decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..cel.device_expressions import MISSING, CelError, compile_expression
from ..cel.object_rules import shown_fault
from ..text.name_faults import dns_label_faults, subdomain_faults
from .field_causes import Cause, duplicate, invalid_value, required, too_many, unsupported_value
from .label_rules import text_causes

Tree = Mapping[str, Any]

MAX_REQUESTS = 32
_PLACE = re.compile(r"<input>:(?P<line>\d+):(?P<column>\d+): (?P<fault>.*)", re.DOTALL)
_ONE = "exactly one of `exactly` or `firstAvailable` is required"


def claim_device_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ResourceClaim."""
    devices = (tree.get("spec") or {}).get("devices") or {}
    yield from _device_causes(devices, "spec.devices")


def template_device_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ResourceClaimTemplate."""
    spec = (tree.get("spec") or {}).get("spec") or {}
    yield from _device_causes(spec.get("devices") or {}, "spec.spec.devices")


def _device_causes(devices: Tree, path: str) -> Iterator[Cause]:
    requests, names = devices.get("requests") or (), set[str]()
    if len(requests) > MAX_REQUESTS:
        yield too_many(f"{path}.requests", len(requests), MAX_REQUESTS)
    for i, request in enumerate(requests):
        where, name = f"{path}.requests[{i}]", str(request.get("name") or "")
        if name in names:
            yield duplicate(where, name)
        names.add(name)
        yield from text_causes(name, dns_label_faults, f"{where}.name")
        options, exactly = request.get("firstAvailable") or (), request.get("exactly")
        if not options and exactly is None:
            yield required(where, _ONE)
        elif options and exactly is not None:
            yield invalid_value(where, None, f"{_ONE}, but multiple fields are set")
        elif exactly is not None:
            yield from _wanted_causes(exactly, f"{where}.exactly")
        for j, option in enumerate(options if exactly is None else ()):
            at = f"{where}.firstAvailable[{j}]"
            yield from text_causes(option.get("name") or "", dns_label_faults, f"{at}.name")
            yield from _wanted_causes(option, at)


def _wanted_causes(wanted: Tree, path: str) -> Iterator[Cause]:
    name, count = wanted.get("deviceClassName") or "", wanted.get("count") or 0
    if not name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from text_causes(name, subdomain_faults, f"{path}.deviceClassName")
    mode = wanted.get("allocationMode") or "ExactCount"
    if mode == "All":
        if count:
            problem = "must not be specified when allocationMode is 'All'"
            yield invalid_value(f"{path}.count", count, problem)
    elif mode == "ExactCount":
        if wanted.get("count") is not None and count <= 0:
            yield invalid_value(f"{path}.count", count, "must be greater than zero")
    else:
        yield unsupported_value(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    for i, selector in enumerate(wanted.get("selectors") or ()):
        where = f"{path}.selectors[{i}].cel"
        if selector.get("cel") is None:
            yield required(where)
        else:
            expression = str(selector["cel"].get("expression") or "")
            yield from _expression_causes(expression, f"{where}.expression")


def _expression_causes(text: str, path: str) -> Iterator[Cause]:
    """Yield the fault of an expression that does not compile; none where expressions cannot be compiled."""
    try:
        compile_expression(text)
    except CelError as error:
        problem = str(error)
        if problem == MISSING:
            return
        place = _PLACE.match(problem)
        if place is not None:
            lines = text.split("\n")
            before = lines[: int(place["line"]) - 1]
            offset = sum(len(one) + 1 for one in before) + int(place["column"]) - 1
            problem = f"compilation failed: {shown_fault(text, offset, place['fault'])}"
        yield invalid_value(path, text, problem)
