"""Devices: what drivers publish, slice by slice, and the taints that administrators add.

Mirrors ResourceSlice and its parts in k8s.io/api/resource/v1/types.go, DeviceTaintRule in v1beta2/types.go.
"""

from functools import cached_property
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from .meta import KubeObject, Wire
from .selectors import NodeSelector
from .taints import Taint
from .text.quantity import Quantity

RESOURCE_V1 = "resource.k8s.io/v1"
RESOURCE_V1BETA2 = "resource.k8s.io/v1beta2"

_ENCODER = msgspec.json.Encoder(order="deterministic")


class DeviceAttribute(Wire, frozen=True):
    """A value of one of four types, or several values of one type; the other fields are None."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")
    int_values: tuple[int, ...] | None = msgspec.field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = msgspec.field(default=None, name="bools")
    string_values: tuple[str, ...] | None = msgspec.field(default=None, name="strings")
    version_values: tuple[str, ...] | None = msgspec.field(default=None, name="versions")


class CapacityRequestPolicyRange(Wire, frozen=True):
    """The amounts that may be used, from `min` to `max` in steps."""

    min: Quantity = None
    max: Quantity = None
    step: Quantity = None


class CapacityRequestPolicy(Wire, frozen=True):
    """Consumption of a capacity by one allocation: `default`, or a valid amount."""

    default: Quantity = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True):
    """The amount of a capacity of a device."""

    value: Quantity = None
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Taint, frozen=True):
    """A taint of a device."""

    time_added: str | None = None


class Counter(Wire, frozen=True):
    """An amount of a shared counter."""

    value: Quantity = None


class CounterSet(Wire, frozen=True):
    """The shared counters of a pool, by name."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Wire, frozen=True):
    """Consumption of a counter set by an allocated device."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class NodeAllocatableResourceMapping(Wire, frozen=True):
    """Amount of a node's resource that the device uses: a multiplier, times a consumed capacity if one is named."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity = None


class Device(Wire, frozen=True, dict=True, gc=True):
    """One device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None

    @cached_property
    def content(self) -> bytes:
        """Everything that an expression can read, except the driver: equal for devices of one model."""
        seen = (self.attributes, self.capacity, bool(self.allow_multiple_allocations))
        return _ENCODER.encode(seen)


class ResourcePool(Wire, frozen=True):
    """The pool of a slice; only its newest generation counts."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True):
    """The driver of the devices, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(KubeObject, frozen=True, gc=True):
    """Some of a driver's devices."""

    kind: ClassVar[str] = "ResourceSlice"
    api_version: ClassVar[str] = RESOURCE_V1
    is_namespaced: ClassVar[bool] = False

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Wire, frozen=True):
    """The devices of a rule: an unset field matches any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True):
    """A taint, and the devices that get it; without a selector all of them."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True):
    """A taint for devices that their driver did not taint."""

    kind: ClassVar[str] = "DeviceTaintRule"
    api_version: ClassVar[str] = RESOURCE_V1BETA2
    is_namespaced: ClassVar[bool] = False

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()

    def selects(self, made: ResourceSlice) -> bool:
        """Whether the rule may be about devices of the slice."""
        selector = self.spec.device_selector or ANY_DEVICE
        return selector.driver in (None, made.spec.driver) and selector.pool in (
            None,
            made.spec.pool.name,
        )

    def applied(self, made: ResourceSlice) -> ResourceSlice:
        """The slice with the taint added to the devices that the rule selects."""
        if not self.selects(made):
            return made
        name = (self.spec.device_selector or ANY_DEVICE).device
        devices = tuple(
            replace(device, taints=(*(device.taints or ()), self.spec.taint))
            if name in (None, device.name)
            else device
            for device in made.spec.devices or ()
        )
        return replace(made, spec=replace(made.spec, devices=devices))


ANY_DEVICE = DeviceTaintSelector()
