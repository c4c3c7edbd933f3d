"""Validate: find faults of claims, classes and slices, with their paths.

Covers what would otherwise fail late or be misread silently. Expressions are checked where an
object is admitted (`expression_problems`), since compiling them needs an optional library.
"""

from collections.abc import Iterable, Iterator, Mapping

from ...errors import one_of
from ..cel.device_expressions import CelError, compile_expression
from ..devices import Device, DeviceCapacity, ResourceSlice
from ..dra import (
    ALL_DEVICES,
    EXACT_COUNT,
    MAX_ALTERNATIVES,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimTemplate,
    WantedDevices,
)
from ..selectors import Problem, quote
from ..text.quantity import parse_quantity
from ..text.semver import parse_semver
from .object_faults import node_selector_problems, quantity_problem, quantity_problems

MODES = (EXACT_COUNT, ALL_DEVICES)
WHERE = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def device_problems(
    obj: ResourceClaim | ResourceClaimTemplate | DeviceClass | ResourceSlice,
) -> Iterator[Problem]:
    """Yield the faults of an object that is about devices."""
    match obj:
        case ResourceClaim():
            yield from _claim_problems(obj.spec.devices, "spec.devices")
            yield from _result_problems(obj)
        case ResourceClaimTemplate():
            yield from _claim_problems(obj.spec.spec.devices, "spec.spec.devices")
        case ResourceSlice():
            yield from _slice_problems(obj)


def expression_problems(
    obj: ResourceClaim | ResourceClaimTemplate | DeviceClass,
) -> Iterator[Problem]:
    """Yield the expressions of the object that do not compile."""
    match obj:
        case DeviceClass():
            yield from _selector_problems(obj.spec.selectors, "spec.selectors")
        case ResourceClaim():
            yield from _request_expressions(obj.spec.devices, "spec.devices")
        case ResourceClaimTemplate():
            yield from _request_expressions(obj.spec.spec.devices, "spec.spec.devices")


def _request_expressions(devices: DeviceClaim, path: str) -> Iterator[Problem]:
    for where, wanted in _all_requests(devices, path):
        yield from _selector_problems(wanted.selectors, f"{where}.selectors")


def _selector_problems(selectors: Iterable[DeviceSelector] | None, path: str) -> Iterator[Problem]:
    for i, selector in enumerate(selectors or ()):
        if selector.cel is None:
            yield f"{path}[{i}].cel", "expected an expression; got none"
            continue
        try:
            compile_expression(selector.cel.expression)
        except CelError as error:
            yield f"{path}[{i}].cel.expression", str(error)


def _all_requests(devices: DeviceClaim, path: str) -> Iterator[tuple[str, WantedDevices]]:
    for i, request in enumerate(devices.requests or ()):
        if request.exactly is not None:
            yield f"{path}.requests[{i}].exactly", request.exactly
        for j, option in enumerate(request.first_available or ()):
            yield f"{path}.requests[{i}].firstAvailable[{j}]", option


def _claim_problems(devices: DeviceClaim, path: str) -> Iterator[Problem]:
    for i, request in enumerate(devices.requests or ()):
        yield from _request_problems(request, f"{path}.requests[{i}]")
    for where, wanted in _all_requests(devices, path):
        yield from _wanted_problems(wanted, where)
    for i, constraint in enumerate(devices.constraints or ()):
        if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
            fault = "expected either matchAttribute or distinctAttribute"
            yield f"{path}.constraints[{i}]", fault


def _request_problems(request: DeviceRequest, path: str) -> Iterator[Problem]:
    if not request.name:
        yield f"{path}.name", "expected a name; got none"
    options = request.first_available or ()
    if (request.exactly is None) == (not options):
        yield path, "expected either exactly or firstAvailable"
    if len(options) > MAX_ALTERNATIVES:
        fault = f"expected at most {MAX_ALTERNATIVES}; got {len(options)}"
        yield f"{path}.firstAvailable", fault
    for i, option in enumerate(options):
        if not option.name:
            yield f"{path}.firstAvailable[{i}].name", "expected a name; got none"


def _wanted_problems(wanted: WantedDevices, path: str) -> Iterator[Problem]:
    if not wanted.device_class_name:
        yield f"{path}.deviceClassName", "expected the name of a DeviceClass; got none"
    mode = wanted.allocation_mode
    if mode and mode not in MODES:
        yield f"{path}.allocationMode", f"expected {one_of(MODES)}; got {quote(mode)}"
    if wanted.count < 0 or (mode == ALL_DEVICES and wanted.count):
        yield (
            f"{path}.count",
            f"expected a positive number of devices, for ExactCount only; got {wanted.count}",
        )
    amounts = wanted.capacity.requests if wanted.capacity else None
    yield from quantity_problems(amounts, f"{path}.capacity.requests")


def _result_problems(claim: ResourceClaim) -> Iterator[Problem]:
    if claim.allocation is None:
        return
    path = "status.allocation"
    for i, result in enumerate(claim.allocation.devices.results or ()):
        where = f"{path}.devices.results[{i}].consumedCapacity"
        yield from quantity_problems(result.consumed_capacity, where)
    yield from node_selector_problems(claim.allocation.node_selector, f"{path}.nodeSelector")


def _slice_problems(made: ResourceSlice) -> Iterator[Problem]:
    spec = made.spec
    if not spec.devices and not spec.shared_counters:
        return  # it has no devices, so it is harmless
    if not spec.driver:
        yield "spec.driver", "expected the name of a driver; got none"
    if not spec.pool.name:
        yield "spec.pool.name", "expected a name; got none"
    given = [spec.node_name, spec.node_selector, spec.all_nodes, spec.per_device_node_selection]
    if sum(map(bool, given)) != 1 and not spec.shared_counters:
        yield "spec", f"expected one of {one_of(WHERE)}; got {sum(map(bool, given))}"
    yield from node_selector_problems(spec.node_selector, "spec.nodeSelector")
    for i, device in enumerate(spec.devices or ()):
        yield from _device_problems(device, f"spec.devices[{i}]")
    for i, counters in enumerate(spec.shared_counters or ()):
        amounts = {name: counter.value for name, counter in (counters.counters or {}).items()}
        yield from quantity_problems(amounts, f"spec.sharedCounters[{i}].counters")


def _device_problems(device: Device, path: str) -> Iterator[Problem]:
    if not device.name:
        yield f"{path}.name", "expected a name; got none"
    for name, attribute in (device.attributes or {}).items():
        version = attribute.version_value
        if version is not None:
            try:
                parse_semver(version)
            except ValueError as error:
                yield f"{path}.attributes[{name}].version", str(error)
    yield from _capacity_problems(device.capacity or {}, f"{path}.capacity")
    for i, consumption in enumerate(device.consumes_counters or ()):
        amounts = {name: counter.value for name, counter in (consumption.counters or {}).items()}
        yield from quantity_problems(amounts, f"{path}.consumesCounters[{i}].counters")
    yield from node_selector_problems(device.node_selector, f"{path}.nodeSelector")


def _capacity_problems(capacity: Mapping[str, DeviceCapacity], path: str) -> Iterator[Problem]:
    for name, offered in capacity.items():
        policy = offered.request_policy
        valid = policy.valid_range if policy else None
        default = policy.default if policy else None
        amounts = {"value": offered.value, "requestPolicy.default": default}
        for i, value in enumerate((policy.valid_values if policy else None) or ()):
            amounts[f"requestPolicy.validValues[{i}]"] = value
        if valid is not None:
            for key, amount in (("min", valid.min), ("max", valid.max), ("step", valid.step)):
                amounts[f"requestPolicy.validRange.{key}"] = amount
        for key, amount in amounts.items():
            fault = quantity_problem(amount)
            if fault is not None:
                yield f"{path}[{name}].{key}", fault
                return
        if valid is not None and valid.step is not None and parse_quantity(valid.step) <= 0:
            where = f"{path}[{name}].requestPolicy.validRange.step"
            yield where, "expected a positive amount"
