"""Classes: the classes of devices, and which extended resources they stand for.

Mirrors staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...api.dra import DeviceClass, DeviceSelector
from ...api.resources import may_stand_for_devices
from ...api.taints import Toleration
from ...stamped_cache import StampedCache
from .features import ALL_FEATURES, DeviceFeatures
from .selection import Selection


class DeviceClasses:
    """The classes by name and by resource; `version` changes when one does."""

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
