"""DeviceFeatures: the parts of device allocation that are enabled.

Mirrors AllocatorFeatures of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ...api.devices import Device, DeviceAttribute, ResourceSlice
from ...releases.feature_gates import FeatureGates
from ...releases.release import DEFAULT_RELEASE, Release


class DeviceFeatures(msgspec.Struct, frozen=True):
    """The feature gates of device allocation, and the facts of the release."""

    admin_access: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    extended_resources: bool = True
    fractional_steps: bool = False
    list_attributes: bool = True
    node_resources: bool = True
    partitionable_devices: bool = True
    prioritized_list: bool = True
    taint_rules: bool = True
    taints: bool = True
    release: Release = DEFAULT_RELEASE

    @classmethod
    def of(cls, gates: FeatureGates) -> DeviceFeatures:
        """The features that are on with `gates`."""
        return cls(
            admin_access=gates.enabled("DRAAdminAccess"),
            # This gate needs DRAResourceClaimDeviceStatus, so that gate is on, too.
            binding_conditions=gates.enabled("DRADeviceBindingConditions"),
            consumable_capacity=gates.enabled("DRAConsumableCapacity"),
            extended_resources=gates.enabled("DRAExtendedResource"),
            fractional_steps=gates.enabled("DRAFractionalCapacityRange"),
            list_attributes=gates.enabled("DRAListTypeAttributes"),
            node_resources=gates.enabled("DRANodeAllocatableResources"),
            partitionable_devices=gates.enabled("DRAPartitionableDevices"),
            prioritized_list=gates.enabled("DRAPrioritizedList"),
            taint_rules=gates.enabled("DRADeviceTaintRules"),
            taints=gates.enabled("DRADeviceTaints"),
            release=gates.release,
        )

    @property
    def is_incubating(self) -> bool:
        """Whether kube-scheduler would not use its stable search, because some enabled feature needs another.

        The stable search lacks distinctAttribute, and ignores requests for capacity instead of refusing them.
        """
        return self.consumable_capacity or self.binding_conditions

    def offered(self, device: Device) -> Device:
        """The device without the fields of features that are off."""
        if not self.taints and device.taints:
            device = replace(device, taints=None)
        if not self.list_attributes and device.attributes:
            device = replace(device, attributes=_with_one_value(device.attributes))
        if not self.consumable_capacity:
            capacity = device.capacity and {
                name: replace(offered, request_policy=None)
                for name, offered in device.capacity.items()
            }
            device = replace(device, allow_multiple_allocations=None, capacity=capacity)
        return device

    def is_selectable(self, device: Device) -> bool:
        """Whether a request may pick the device."""
        return self.binding_conditions or not device.binding_conditions

    def is_allocatable(self, device: Device) -> bool:
        """Whether a device that was picked may be given to a claim."""
        return self.partitionable_devices or not device.consumes_counters

    def reads(self, made: ResourceSlice) -> bool:
        """Whether the devices of the slice can be used."""
        spec = made.spec
        return self.partitionable_devices or not (
            spec.per_device_node_selection is not None or spec.shared_counters
        )


def _with_one_value(attributes: dict[str, DeviceAttribute]) -> dict[str, DeviceAttribute]:
    """The attributes without lists of values."""
    if not any(_has_list(attribute) for attribute in attributes.values()):
        return attributes
    return {
        name: replace(
            attribute, int_values=None, bool_values=None, string_values=None, version_values=None
        )
        for name, attribute in attributes.items()
    }


def _has_list(attribute: DeviceAttribute) -> bool:
    lists = (attribute.int_values, attribute.bool_values, attribute.string_values)
    return any(found is not None for found in (*lists, attribute.version_values))


ALL_FEATURES = DeviceFeatures()
