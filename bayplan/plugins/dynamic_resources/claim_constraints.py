"""Claim constraints: conditions on all devices of a claim together.

Mirrors matchAttributeConstraint and distinctAttributeConstraint of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating, and from v1.37 on with feature gate
DRAListTypeAttributes those of internal/experimental.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from ...api.devices import DeviceAttribute
from ...api.dra import DeviceConstraint
from ...framework.devices import DeviceFeatures, Offer

Value: TypeAlias = tuple[str, object] | None
"""The type and the value of an attribute; None for an unknown type."""
Values: TypeAlias = tuple[str, frozenset[object]]
"""The type and the values of an attribute."""

ABSENT = object()


class ConstraintTracker(ABC):
    """Keeps track of the devices taken; `add` and `remove` come in pairs, last in, first out."""

    reads_lists = False
    """Whether an attribute has several values."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._count = 0
        self._values: list[Any] = []
        """Values of the devices taken, in order."""

    def add(self, request: str, alternative: str, offer: Offer) -> bool:
        """Add a device; False if the constraint refuses it."""
        if not self._applies_to(request, alternative):
            return True
        read = values_of if self.reads_lists else attribute_of
        value = read(offer, self._attribute)
        if value is ABSENT or (self._count and not self._admits(value)):
            return False
        self._note(request, value)
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove the device that was added last."""
        if self._applies_to(request, alternative):
            self._drop(request)
            self._count -= 1

    def _applies_to(self, request: str, alternative: str) -> bool:
        names = self._requests
        return not names or request in names or f"{request}/{alternative}" in names

    @abstractmethod
    def _admits(self, value: Any) -> bool:
        """Whether a device with this value satisfies the constraint together with the devices taken."""

    def _note(self, request: str, value: Any) -> None:
        self._values.append(value)

    def _drop(self, request: str) -> None:
        self._values.pop()


class MatchAttribute(ConstraintTracker):
    """All devices have the attribute, with one value."""

    def _admits(self, value: Any) -> bool:
        return value is not None and value == self._values[0]


class DistinctAttribute(ConstraintTracker):
    """All devices have the attribute, each with a different value.

    As in Kubernetes up to v1.36, if a request is for several devices, only its last device is compared.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._last: dict[str, object] = {}

    def _admits(self, value: Any) -> bool:
        return value not in self._last.values() and (value is not None or not self._last)

    def _note(self, request: str, value: Any) -> None:
        self._last[request] = value

    def _drop(self, request: str) -> None:
        self._last.pop(request, None)


class DistinctFromAll(ConstraintTracker):
    """DistinctAttribute from v1.37 on: each device is compared with every device taken."""

    def _admits(self, value: Any) -> bool:
        return value is not None and value not in self._values


class CommonValue(ConstraintTracker):
    """All devices have the attribute with a common value; records the values that the devices so far have in common."""

    reads_lists = True

    def _admits(self, value: Any) -> bool:
        return _have_common(self._values[-1], value)

    def _note(self, request: str, value: Any) -> None:
        kind, values = value
        self._values.append((kind, values & self._values[-1][1] if self._values else values))


class DisjointValues(ConstraintTracker):
    """All devices have the attribute, and no value occurs on two devices."""

    reads_lists = True

    def _admits(self, value: Any) -> bool:
        return not any(_have_common(other, value) for other in self._values)


def _have_common(one: Values, other: Values) -> bool:
    return one[0] == other[0] and not one[1].isdisjoint(other[1])


def make_constraint(wanted: DeviceConstraint, features: DeviceFeatures) -> ConstraintTracker | None:
    """The constraint of a claim; None if the search does not support it."""
    requests = wanted.requests or ()
    has_lists = features.list_attributes and features.release.list_constraints
    match: type[ConstraintTracker] = CommonValue if has_lists else MatchAttribute
    one: type[ConstraintTracker] = DistinctAttribute
    if features.release.distinct_from_all:
        one = DistinctFromAll
    distinct: type[ConstraintTracker] = DisjointValues if has_lists else one
    if wanted.match_attribute is not None:
        return match(wanted.match_attribute, requests)
    if wanted.distinct_attribute is not None and features.is_incubating:
        return distinct(wanted.distinct_attribute, requests)
    return None


def attribute_of(offer: Offer, name: str) -> object:
    """The attribute of a device, as type and value; ABSENT when it has none."""
    found = _find(offer, name)
    return ABSENT if found is None else _one_value(found)


def values_of(offer: Offer, name: str) -> object:
    """The values of an attribute, with their type; ABSENT when there are none, or of an unknown type."""
    found = _find(offer, name)
    if found is None:
        return ABSENT
    for kind, values in (
        ("int", found.int_values),
        ("bool", found.bool_values),
        ("string", found.string_values),
        ("version", found.version_values),
    ):
        if values:
            return kind, frozenset(values)
    one = _one_value(found)
    return ABSENT if one is None else (one[0], frozenset((one[1],)))


def _find(offer: Offer, name: str) -> DeviceAttribute | None:
    """The attribute; the driver's own need no domain."""
    attributes = offer.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, slash, local = name.partition("/")
        found = attributes.get(local) if slash and domain == offer.driver else None
    return found


def _one_value(found: DeviceAttribute) -> Value:
    for kind, value in (
        ("string", found.string_value),
        ("int", found.int_value),
        ("bool", found.bool_value),
        ("version", found.version_value),
    ):
        if value is not None:
            return kind, value
    return None
