"""Kinds: the supported kinds of objects, and how each is built from its wire form."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgspec
from msgspec.structs import force_setattr as _set

from .. import cron_jobs, devices, dra, limits, pod_groups, storage, workloads
from ..cron_jobs import CronJob, cron_job_problems
from ..devices import ResourceSlice
from ..dra import DeviceClass, ResourceClaim, ResourceClaimTemplate
from ..limits import LimitRange, ResourceQuota
from ..meta import DEFAULT_NAMESPACE, EMPTY_META, NO_STRINGS, KubeObject, ObjectMeta, Wire
from ..node import ContainerImage, Node, NodeCondition
from ..resources import allocatable_units
from ..rules.device_faults import device_problems
from ..rules.object_faults import (
    label_selector_problems,
    node_selector_problems,
    quantity_problem,
    quantity_problems,
    spec_problems,
    taint_problems,
)
from ..selectors import Problem
from ..storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from ..taints import Taint
from ..text.quantity import Quantity
from ..workloads import (
    DaemonSet,
    Deployment,
    Job,
    PodDisruptionBudget,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from .field_error import FieldError as FieldError
from .field_error import refuse
from .interning import shared, shared_text
from .pod_text import PodText, PodWire, build_pod


@dataclass(frozen=True)
class Kind:
    """A kind of object: the type on the wire, and how to make the object from it."""

    name: str
    api_version: str
    wire: type[Any]
    build: Callable[[Any], object]
    is_namespaced: bool = True
    text_wire: type[Any] | None = None
    """The type for text, if another than for parsed trees."""

    @cached_property
    def decoder(self) -> "msgspec.json.Decoder[Any]":
        """Decodes the text of one object; made when it is first used, as most kinds have no objects."""
        return msgspec.json.Decoder(self.text_type)

    @cached_property
    def list_decoder(self) -> "msgspec.json.Decoder[list[Any]]":
        """Decodes the text of many objects."""
        items: Any = list[self.text_type]  # type: ignore[name-defined]  # a type made at run time
        return msgspec.json.Decoder(items)

    @property
    def text_type(self) -> type[Any]:
        """The type that text is decoded to."""
        return self.text_wire or self.wire

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)


class NodeSpecWire(Wire, frozen=True):
    """A node's spec on the wire."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeStatusWire(Wire, frozen=True):
    """A node's status on the wire."""

    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    images: tuple[ContainerImage, ...] | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class NodeWire(Wire, frozen=True):
    """A node on the wire."""

    metadata: ObjectMeta = EMPTY_META
    spec: NodeSpecWire = NodeSpecWire()
    status: NodeStatusWire = NodeStatusWire()


def group_of(api_version: str) -> str:
    """The group of `group/version`; a bare version is of the core group, which is empty."""
    return api_version.rpartition("/")[0]


def plural_of(kind: str) -> str:
    """The name of a built-in kind in paths: `deployments`."""
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    if word.endswith("s"):
        return word if kind == "Endpoints" else f"{word}es"
    return f"{word}s"


def resource_name(api_version: str, kind: str) -> str:
    """The name of a built-in kind in messages and quotas: `pods`, `deployments.apps`."""
    group = group_of(api_version)
    return f"{plural_of(kind)}.{group}" if group else plural_of(kind)


def build_node(wire: NodeWire) -> Node:
    """Make a node."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    if not meta.name:
        raise FieldError("metadata.name", "expected a name; got none")
    refuse(taint_problems(spec.taints or ()))
    capacity = _amounts(status.capacity, "status.capacity")
    allocatable = capacity
    if status.allocatable is not None:
        allocatable = _amounts(status.allocatable, "status.allocatable")
    return Node(
        shared_text(meta.name),
        uid=meta.uid,
        labels=meta.labels or NO_STRINGS,
        annotations=meta.annotations or NO_STRINGS,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        unschedulable=spec.unschedulable,
        taints=shared(spec.taints) if spec.taints else (),
        allocatable=allocatable,
        capacity=capacity,
        images=tuple(shared(image) for image in status.images or ()),
        conditions=tuple(shared(condition) for condition in status.conditions or ()),
        declared_features=shared(status.declared_features) if status.declared_features else (),
    )


def _amounts(quantities: dict[str, Quantity] | None, path: str) -> dict[str, int]:
    """A node's amounts: one map for nodes with equal quantities, never modified."""
    if not quantities:
        return {}
    try:
        return _checked_amounts(tuple(quantities.items()))
    except ValueError:
        refuse(quantity_problems(quantities, path))
        raise


@lru_cache(maxsize=1024)
def _checked_amounts(quantities: tuple[tuple[str, Quantity], ...]) -> dict[str, int]:
    """The amounts; raises ValueError if one is not a quantity, or negative."""
    for name, quantity in quantities:
        fault = quantity_problem(quantity)
        if fault is not None:
            raise ValueError(f"{name}: {fault}")
    return allocatable_units(dict(quantities))


def build_other(wire: KubeObject) -> KubeObject:
    """Check an object that is used as decoded."""
    if not wire.metadata.name and not wire.metadata.generate_name:
        raise FieldError("metadata.name", "expected a name; got none")
    refuse(_object_problems(wire))
    if wire.is_namespaced and not wire.metadata.namespace:
        namespace = DEFAULT_NAMESPACE.get()
        if namespace != "default":
            _set(wire, "metadata", msgspec.structs.replace(wire.metadata, namespace=namespace))
    return wire


def _object_problems(wire: KubeObject) -> Iterator[Problem]:
    """Yield the faults of any object but a pod or a node."""
    match wire:
        case ReplicationController():
            yield from _template_problems(wire.spec.template)
        case ReplicaSet() | StatefulSet() | Deployment() | DaemonSet() | Job():
            yield from label_selector_problems(wire.spec.selector, "spec.selector")
            yield from _template_problems(wire.spec.template)
            if isinstance(wire, StatefulSet):
                for i, claim in enumerate(wire.spec.volume_claim_templates or ()):
                    yield from _claim_problems(claim, f"spec.volumeClaimTemplates[{i}].spec")
        case PodDisruptionBudget():
            yield from label_selector_problems(wire.spec.selector, "spec.selector")
        case PersistentVolume():
            yield from quantity_problems(wire.spec.capacity, "spec.capacity")
            affinity = wire.spec.node_affinity
            selector = affinity.required if affinity else None
            yield from node_selector_problems(selector, "spec.nodeAffinity.required")
        case PersistentVolumeClaim():
            yield from _claim_problems(wire, "spec")
        case CSIStorageCapacity():
            yield from _capacity_problems(wire)
        case CronJob():
            yield from cron_job_problems(wire)
            template = wire.spec.job_template.spec.template
            yield from spec_problems(template.full_spec, "spec.jobTemplate.spec.template.spec")
        case LimitRange():
            yield from _limit_problems(wire)
        case ResourceQuota():
            yield from quantity_problems(wire.hard, "spec.hard")
        case ResourceClaim() | ResourceClaimTemplate() | DeviceClass() | ResourceSlice():
            yield from device_problems(wire)


def _template_problems(template: PodTemplateSpec | None) -> Iterator[Problem]:
    if template is not None:
        yield from spec_problems(template.full_spec, "spec.template.spec")


def _claim_problems(claim: PersistentVolumeClaim, path: str) -> Iterator[Problem]:
    yield from quantity_problems(claim.requests, f"{path}.resources.requests")
    yield from label_selector_problems(claim.spec.selector, f"{path}.selector")


def _limit_problems(wire: LimitRange) -> Iterator[Problem]:
    for i, item in enumerate(wire.spec.limits or ()):
        for name, quantities in (
            ("max", item.max),
            ("min", item.min),
            ("default", item.default),
            ("defaultRequest", item.default_request),
            ("maxLimitRequestRatio", item.max_limit_request_ratio),
        ):
            yield from quantity_problems(quantities, f"spec.limits[{i}].{name}")


def _capacity_problems(wire: CSIStorageCapacity) -> Iterator[Problem]:
    for path, quantity in (
        ("capacity", wire.capacity),
        ("maximumVolumeSize", wire.maximum_volume_size),
    ):
        fault = quantity_problem(quantity)
        if fault is not None:
            yield path, fault
    yield from label_selector_problems(wire.node_topology, "nodeTopology")


KINDS: dict[str, Kind] = {
    "Pod": Kind("Pod", "v1", PodWire, build_pod, text_wire=PodText),
    "Node": Kind("Node", "v1", NodeWire, build_node, is_namespaced=False),
}


_OTHERS = {
    cls
    for module in (cron_jobs, devices, dra, limits, pod_groups, storage, workloads)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, KubeObject) and vars(cls).get("kind")
}
for other in sorted(_OTHERS, key=lambda cls: cls.kind):
    KINDS[other.kind] = Kind(other.kind, other.api_version, other, build_other, other.is_namespaced)
