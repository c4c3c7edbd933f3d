"""Selection: the devices that a request selects, evaluated once per distinct device.

Mirrors isSelectable and taintPreventsAllocation of
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from ...api.cel.device_expressions import CelError, Expression, SeenDevice, compile_expression
from ...api.dra import DeviceClass, DeviceSelector
from ...api.resources import may_stand_for_devices
from ...api.taints import Toleration, find_untolerated
from ...releases.release import Release
from ...stamped_cache import StampedCache
from .device_pools import Offer
from .features import ALL_FEATURES, DeviceFeatures

OPTIONAL_CHAINING = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


class ExpressionFault(NamedTuple):
    """An expression failed: its class ("" for the claim), its position there, and the reason."""

    of_class: str
    position: int
    problem: str

    def text(self, claim: str, offer: Offer, release: Release) -> str:
        """The fault as a message; `claim` is the key of the claim, `offer` the device."""
        whose = f"class {self.of_class}" if self.of_class else f"claim {claim}"
        where, advice = "", ""
        if release.names_devices and self.problem.startswith("CEL runtime error"):
            where = f" on device {'/'.join(offer.id)}"
            advice = OPTIONAL_CHAINING if "no such key: " in self.problem else ""
        return f"{whose}: selector #{self.position}{where}: {self.problem}{advice}"


Judged = bool | ExpressionFault


class Selection:
    """The selectors of a class and of a request for its devices, and the taints the request tolerates."""

    __slots__ = ("_expressions", "_features", "_judged", "_names", "tolerations")

    def __init__(
        self,
        device_class: DeviceClass,
        selectors: Iterable[DeviceSelector],
        tolerations: tuple[Toleration, ...],
        features: DeviceFeatures = ALL_FEATURES,
    ) -> None:
        self._features = features
        self._expressions = [
            *_numbered(device_class.name, device_class.spec.selectors or ()),
            *_numbered("", selectors),
        ]
        self.tolerations = tolerations
        self._names = _names((text for _, _, text in self._expressions), features)
        self._judged: StampedCache[Hashable, Judged] = StampedCache("devices picked", 65_536)

    def judge(self, offer: Offer) -> Judged:
        """Whether the device is picked; expressions after the first that is false are not evaluated."""
        key = self._key(offer)
        known = self._judged.get(key)
        if known is None:
            known = self._judged.put(key, self._ask(offer))
        return known

    def _key(self, offer: Offer) -> Hashable:
        """The values that the answer depends on: devices that look the same to the expressions share it."""
        device, names = offer.device, self._names
        if names is None:
            return offer.driver, device.content
        # An invalid version makes every expression fail.
        seen = [
            (name, value)
            for name, value in (device.attributes or {}).items()
            if value.version_value is not None
            or value.version_values is not None
            or name.rpartition("/")[2] in names
        ]
        room = [
            (name, c.value)
            for name, c in offer.capacity.items()
            if name.rpartition("/")[2] in names
        ]
        return offer.driver, offer.is_shared, tuple(seen), tuple(room)

    def _ask(self, offer: Offer) -> Judged:
        for of_class, position, text in self._expressions:
            try:
                expression = _compiled(text, self._features)
            except CelError as error:
                return ExpressionFault(of_class, position, f"CEL compile error: {error}")
            try:
                seen = offer.memo.get(SeenDevice)
                if seen is None:
                    seen = offer.memo[SeenDevice] = SeenDevice(offer.device, offer.driver)
                if not expression.matches(seen):
                    return False
            except CelError as error:
                return ExpressionFault(of_class, position, f"CEL runtime error: {error}")
        return True

    def tolerates(self, offer: Offer) -> bool:
        """Whether no taint keeps the device from being used."""
        if not offer.is_blocked:
            return True
        taints = offer.device.taints or ()
        return offer.is_allocatable and find_untolerated(taints, self.tolerations) is None


def _compiled(text: str, features: DeviceFeatures) -> Expression:
    return compile_expression(text, features.consumable_capacity, features.list_attributes)


def _names(texts: Iterable[str], features: DeviceFeatures) -> frozenset[str] | None:
    """The attributes and capacities that the expressions can read; None if they can read any."""
    found: set[str] = set()
    for text in texts:
        try:
            names = _compiled(text, features).names
        except CelError:
            continue
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _numbered(of_class: str, selectors: Iterable[DeviceSelector]) -> list[tuple[str, int, str]]:
    return [(of_class, i, s.cel.expression) for i, s in enumerate(selectors) if s.cel is not None]


class DeviceClasses:
    """The classes by name and by the extended resource that they stand for; `version` changes when one does.

    Mirrors staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
    """

    def __init__(self, features: DeviceFeatures = ALL_FEATURES) -> None:
        self.features = features
        self.version = 0
        self._by_name: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, DeviceClass] = {}
        self._selections: StampedCache[object, Selection] = StampedCache("device selections")

    def set(self, classes: Iterable[DeviceClass]) -> None:
        """Set all device classes. If several stand for a resource, the newest counts, then the first by name."""
        self.version += 1
        self._by_name = {c.name: c for c in classes}
        self._by_resource = {}
        if not self.features.extended_resources:
            return
        by_name = sorted(self._by_name.values(), key=lambda c: c.name)
        for found in sorted(by_name, key=lambda c: c.creation_timestamp or "", reverse=True):
            for resource in found.resource_names:
                if may_stand_for_devices(resource):
                    self._by_resource.setdefault(resource, found)

    def get(self, name: str) -> DeviceClass | None:
        return self._by_name.get(name)

    def for_resource(self, resource: str) -> DeviceClass | None:
        """The class whose devices stand in for the resource."""
        return self._by_resource.get(resource)

    def backed(self, resources: Iterable[str]) -> list[str]:
        """The members of `resources` that a class stands for."""
        if not self._by_resource:
            return []
        return [resource for resource in resources if resource in self._by_resource]

    def selection(
        self,
        device_class: DeviceClass,
        selectors: tuple[DeviceSelector, ...] = (),
        tolerations: tuple[Toleration, ...] = (),
    ) -> Selection:
        """The devices that the class and a request select; equal requests share the results."""
        key = (device_class.name, selectors, tolerations)
        selection = self._selections.get(key, self.version)
        if selection is None:
            selection = Selection(device_class, selectors, tolerations, self.features)
            self._selections.put(key, selection)
        return selection
