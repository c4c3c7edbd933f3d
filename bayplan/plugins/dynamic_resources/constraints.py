"""Constraints: what must hold for the devices of a claim together.

Mirrors matchAttributeConstraint and distinctAttributeConstraint of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

from ...api.dra import DeviceConstraint
from ...framework.devices import Offer

Value: TypeAlias = tuple[str, object] | None
"""The type and the value of an attribute; None when it is of a type that we do not know."""

ABSENT = object()


class ConstraintTracker(ABC):
    """Keeps track of the devices taken; `add` and `remove` come in pairs, last in, first out."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._count = 0

    def add(self, request: str, alternative: str, offer: Offer) -> bool:
        """Take one more device, unless the constraint does not let it."""
        if not self._concerns(request, alternative):
            return True
        value = attribute_of(offer, self._attribute)
        if value is ABSENT or (self._count and not self._admits(value)):
            return False
        self._note(request, value)
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Give the device back that was taken last."""
        if self._concerns(request, alternative):
            self._drop(request)
            self._count -= 1

    def _concerns(self, request: str, alternative: str) -> bool:
        names = self._requests
        return not names or request in names or f"{request}/{alternative}" in names

    @abstractmethod
    def _admits(self, value: object) -> bool:
        """Whether a device with this value goes with those that are there."""

    @abstractmethod
    def _note(self, request: str, value: object) -> None: ...

    def _drop(self, request: str) -> None:
        return None


class MatchAttribute(ConstraintTracker):
    """All devices have the attribute, with one value."""

    _value: object = None

    def _admits(self, value: object) -> bool:
        return value is not None and value == self._value

    def _note(self, request: str, value: object) -> None:
        if not self._count:
            self._value = value


class DistinctAttribute(ConstraintTracker):
    """All devices have the attribute, each with another value.

    As in Kubernetes, of a request for several devices only the one that was taken last is compared with.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, object] = {}

    def _admits(self, value: object) -> bool:
        return value not in self._values.values() and (value is not None or not self._values)

    def _note(self, request: str, value: object) -> None:
        self._values[request] = value

    def _drop(self, request: str) -> None:
        self._values.pop(request, None)


def make_constraint(wanted: DeviceConstraint) -> ConstraintTracker | None:
    """The constraint that a claim asks for; None when it is of a kind that we do not know."""
    requests = wanted.requests or ()
    if wanted.match_attribute is not None:
        return MatchAttribute(wanted.match_attribute, requests)
    if wanted.distinct_attribute is not None:
        return DistinctAttribute(wanted.distinct_attribute, requests)
    return None


def attribute_of(offer: Offer, name: str) -> object:
    """The attribute of a device, as type and value; ABSENT when it has none. The driver's own need no domain."""
    attributes = offer.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, slash, local = name.partition("/")
        found = attributes.get(local) if slash and domain == offer.driver else None
    if found is None:
        return ABSENT
    for kind, value in (
        ("string", found.string_value),
        ("int", found.int_value),
        ("bool", found.bool_value),
        ("version", found.version_value),
    ):
        if value is not None:
            return kind, value
    return None
