"""Device capacity: how much of a device a request uses up.

Mirrors staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from ...api.text.quantity import (
    MAX_INT64,
    NANO,
    NANO_PER_MILLI,
    ExactAmount,
    Quantity,
    format_quantity,
    nano_to_value,
    notation_of,
    parse_quantity,
)
from ...errors import BayplanError


class CapacityError(BayplanError):
    """An amount that cannot be computed."""


class Use(NamedTuple):
    """An amount in nano-units, and as it is written."""

    nano: int
    quantity: Quantity


def uses_of(
    capacity: Mapping[str, DeviceCapacity],
    wanted: Mapping[str, Quantity] | None,
    is_fractional: bool = False,
) -> dict[str, Use] | None:
    """Capacities of a device that a request would use up, by name; None if the device cannot serve it.

    With `is_fractional`, ranges with a step count in thousandths, and CapacityError is raised for amounts beyond these.
    """
    if wanted and not wanted.keys() <= capacity.keys():
        return None
    uses: dict[str, Use] = {}
    for name, offered in capacity.items():
        asked = wanted.get(name) if wanted else None
        uses[name] = _use_of(asked, offered, is_fractional)
    for name, offered in capacity.items():
        use = uses[name]
        if _is_against(use, offered.request_policy, is_fractional):
            return None
        if use.nano > parse_quantity(offered.value):
            return None
    return uses


def _use_of(asked: Quantity, offered: DeviceCapacity, is_fractional: bool) -> Use:
    policy = offered.request_policy
    if asked is None:
        default = policy.default if policy is not None else None
        return _use(offered.value if default is None else default)
    if policy is not None:
        valid = policy.valid_range
        if valid is not None and valid.min is not None:
            return _rounded_up(_use(asked), valid, is_fractional)
        if policy.valid_values is not None:
            options = map(_use, policy.valid_values)
            return next((u for u in options if parse_quantity(asked) <= u.nano), _use(asked))
    return _use(asked)


def _rounded_up(asked: Use, valid: CapacityRequestPolicyRange, is_fractional: bool) -> Use:
    """The next amount in the range; with steps in whole units, written as bytes are, or in thousandths."""
    lowest = _use(valid.min)
    if asked.nano < lowest.nano:
        return lowest
    if valid.step is None:
        return asked
    if is_fractional and _is_in_thousandths(valid):
        return _rounded_to_thousandths(asked, valid)
    step, first = _whole(valid.step), _whole(valid.min)
    steps = -(-(nano_to_value(asked.nano) - first) // step)
    value = first + step * steps
    return Use(value * NANO, _written(value))


def _rounded_to_thousandths(asked: Use, valid: CapacityRequestPolicyRange) -> Use:
    """The next amount in the range, in the notation of the step."""
    step, first = parse_quantity(valid.step), parse_quantity(valid.min)
    if asked.nano % NANO_PER_MILLI:
        raise CapacityError(f"request {asked.quantity} is not a multiple of 1m")
    nano = first + -(-(asked.nano - first) // step) * step
    if max(asked.nano, nano) // NANO_PER_MILLI > MAX_INT64:
        raise CapacityError(f"request {asked.quantity} is too large")
    return Use(nano, str(ExactAmount(nano, notation_of(valid.step))))


def _is_in_thousandths(valid: CapacityRequestPolicyRange) -> bool:
    """Whether all amounts of a range are multiples of a thousandth that fit into 64 bits."""
    amounts = [parse_quantity(q) for q in (valid.min, valid.max, valid.step) if q is not None]
    return parse_quantity(valid.step) >= NANO_PER_MILLI and all(
        amount % NANO_PER_MILLI == 0 and amount // NANO_PER_MILLI <= MAX_INT64 for amount in amounts
    )


def _is_against(use: Use, policy: CapacityRequestPolicy | None, is_fractional: bool) -> bool:
    if policy is None or (
        policy.default is not None and use.nano == parse_quantity(policy.default)
    ):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and use.nano > parse_quantity(valid.max):
            return True
        if valid.step is not None and is_fractional and _is_in_thousandths(valid):
            return (use.nano - parse_quantity(valid.min)) % parse_quantity(valid.step) != 0
        if valid.step is not None:
            return (nano_to_value(use.nano) - _whole(valid.min)) % _whole(valid.step) != 0
        return False
    values = policy.valid_values or ()
    return bool(values) and all(use.nano != parse_quantity(value) for value in values)


def _use(quantity: Quantity) -> Use:
    return Use(parse_quantity(quantity), quantity)


def _whole(quantity: Quantity) -> int:
    return nano_to_value(parse_quantity(quantity))


def _written(value: int) -> str:
    """Text of a new amount of bytes, as Kubernetes writes it: small ones in powers of ten."""
    if -1024 < value < 1024:
        return f"{value // 1000}k" if value and value % 1000 == 0 else str(value)
    return format_quantity(value, "memory")
