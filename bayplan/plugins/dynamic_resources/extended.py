"""Extended resources that devices stand in for: the claim that a pod gets for them.

Mirrors createRequestsAndMappings of pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ...api.containers import Container
from ...api.dra import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from ...api.meta import ObjectMeta, OwnerReference
from ...api.pod import Pod, PodSpec
from ...api.pod_status import ContainerExtendedResourceRequest
from ...api.text.quantity import NANO, parse_quantity
from ...framework.devices import DeviceClasses

SPECIAL_NAME = "<extended-resources>"
"""The name of the claim until it is written; not a valid name in a cluster."""


class ExtendedRequests(NamedTuple):
    """The requests for the devices of some resources, and which container uses which."""

    devices: DeviceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def make_claim(pod: Pod) -> ResourceClaim:
    """The claim for the pod's extended resources, before its requests are known."""
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    meta = ObjectMeta(
        name=SPECIAL_NAME,
        generate_name=f"{pod.name}-extended-resources-",
        namespace=pod.namespace,
        uid=f"{SPECIAL_NAME}/{pod.uid}",
        owner_references=(owner,),
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
    )
    return ResourceClaim(metadata=meta)


def to_create(claim: ResourceClaim, requests: ExtendedRequests) -> ResourceClaim:
    """The claim to create; the API server generates its name."""
    meta = replace(claim.metadata, name="", uid="")
    return replace(claim, metadata=meta, spec=ResourceClaimSpec(devices=requests.devices))


def requests_for(
    spec: PodSpec, resources: Iterable[str], classes: DeviceClasses
) -> ExtendedRequests:
    """The requests that get the pod its `resources` from devices.

    A container that ends before others start can use their devices; the maximum of what such containers need beyond
    that is requested once.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    short = [i for i, c in enumerate(spec.init_containers or ()) if not c.is_restartable]
    for resource in sorted(resources):
        found = classes.for_resource(resource)
        if found is None:
            continue
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        for i, container in enumerate(containers):
            if i not in short:
                lasting[i], used = _request(i, container, resource, found.name, ())
                mappings += used
        passing, used = _requests_in_turn(short, containers, resource, found.name, lasting)
        requests += [request for request in (passing, *lasting) if request is not None]
        mappings += used
    in_order = tuple(sorted(requests, key=lambda request: request.name))
    return ExtendedRequests(DeviceClaim(requests=in_order or None), tuple(mappings))


def _requests_in_turn(
    positions: Sequence[int],
    containers: Sequence[Container],
    resource: str,
    class_name: str,
    lasting: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """The one request that serves init containers, which run one after the other."""
    largest: DeviceRequest | None = None
    names: set[str] = set()
    mappings: list[ContainerExtendedResourceRequest] = []
    for i in positions:
        request, used = _request(i, containers[i], resource, class_name, lasting[i:])
        mappings += used
        if request is not None:
            names.add(request.name)
            if largest is None or _count(largest) < _count(request):
                largest = request
    if largest is None:
        return None, mappings
    return largest, [
        replace(mapping, request_name=largest.name) if mapping.request_name in names else mapping
        for mapping in mappings
    ]


def _request(
    position: int,
    container: Container,
    resource: str,
    class_name: str,
    reusable: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """The devices that the container needs beyond the devices of others that it can use; and all devices that it
    uses.
    """
    asked = (container.resources.requests if container.resources else None) or {}
    amount, rest = divmod(parse_quantity(asked.get(resource)), NANO)
    if rest or amount == 0:
        return None, []

    def uses(name: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(
            container_name=container.name, resource_name=resource, request_name=name
        )

    mappings: list[ContainerExtendedResourceRequest] = []
    there = 0
    for other in reusable:
        if other is not None:
            there += _count(other)
            mappings.append(uses(other.name))
            if there >= amount:
                return None, mappings
    name = f"container-{position}-request-{sorted(asked).index(resource)}"
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode=EXACT_COUNT, count=amount - there
    )
    return DeviceRequest(name=name, exactly=exactly), [*mappings, uses(name)]


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0
