"""Resources: a pod's requests, and the resource names that count.

Mirrors staging/src/k8s.io/component-helpers/resource/helpers.go (the arithmetic),
pkg/apis/core/v1/helper/helpers.go (the names) and `CalculateResource` of
pkg/scheduler/framework/types.go (a pod's usage on its node).

Amounts are summed exactly, in nano-units with zero entries kept (`Amounts`), because an explicit
zero differs from no request; they are rounded once, in `to_units`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol, TypeAlias

from .containers import Container, ResourceRequirements
from .pod_status import ContainerStatus, NodeClaimStatuses, PodStatus
from .text.name_faults import is_qualified_name
from .text.quantity import (
    NANO,
    NANO_PER_MILLI,
    Quantity,
    nano_to_milli,
    nano_to_value,
    parse_quantity,
)

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"
ATTACHABLE_PREFIX = "attachable-volumes-"
NATIVE_PREFIX = "kubernetes.io/"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that a device class provides implicitly."""
QUOTA_PREFIX = "requests."

DEFAULT_MILLI_CPU_REQUEST = 100
DEFAULT_MEMORY_REQUEST = 200 * 1024 * 1024

Amounts: TypeAlias = dict[str, int]
"""Amounts by resource in nano-units; a zero is an explicit zero."""

NON_ZERO_DEFAULTS: Mapping[str, int] = {
    CPU: DEFAULT_MILLI_CPU_REQUEST * NANO_PER_MILLI,
    MEMORY: DEFAULT_MEMORY_REQUEST * NANO,
}

_BASIC = (CPU, MEMORY, EPHEMERAL_STORAGE)


class RequestingSpec(Protocol):
    """The fields of a PodSpec that request resources."""

    @property
    def containers(self) -> tuple[Container, ...] | None: ...

    @property
    def init_containers(self) -> tuple[Container, ...] | None: ...

    @property
    def overhead(self) -> dict[str, Quantity] | None: ...

    @property
    def resources(self) -> ResourceRequirements | None: ...


def is_prefixed_native(name: str) -> bool:
    """Whether the name is in the `kubernetes.io/` namespace, at any depth."""
    return NATIVE_PREFIX in name


def is_native(name: str) -> bool:
    """Whether the resource is native to Kubernetes; a name without a slash is."""
    return "/" not in name or is_prefixed_native(name)


def is_hugepages(name: str) -> bool:
    return name.startswith(HUGEPAGES_PREFIX)


def is_attachable_volume(name: str) -> bool:
    return name.startswith(ATTACHABLE_PREFIX)


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Whether the resource is an extended one, such as `example.com/gpu`."""
    if is_native(name) or name.startswith(QUOTA_PREFIX):
        return False
    return is_qualified_name(QUOTA_PREFIX + name)


@lru_cache(maxsize=4096)
def may_stand_for_devices(name: str) -> bool:
    """Whether a device class can provide the resource."""
    return is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX)


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the resource is counted besides cpu, memory and storage."""
    return (
        is_extended(name)
        or is_hugepages(name)
        or is_prefixed_native(name)
        or is_attachable_volume(name)
    )


def is_pod_level(name: str) -> bool:
    """Whether the resource may be requested at pod level."""
    return name in (CPU, MEMORY) or is_hugepages(name)


def parse_amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    """Parse a resource list into nano-units."""
    return {name: parse_quantity(q) for name, q in quantities.items()} if quantities else {}


def to_units(amounts: Mapping[str, int]) -> dict[str, int]:
    """Round up to the scheduler's units (cpu in milli) and drop zeros and uncounted names.

    Order: cpu, memory, ephemeral-storage, then the others by name.
    """
    units = {name: to_unit(name, amounts[name]) for name in _BASIC if amounts.get(name)}
    for name in sorted(amounts.keys() - units.keys()):
        if amounts[name] and is_scalar(name):
            units[name] = to_unit(name, amounts[name])
    return units


def to_unit(name: str, nano: int) -> int:
    """Round one amount up to the scheduler's unit of that resource."""
    return nano_to_milli(nano) if name == CPU else nano_to_value(nano)


def allocatable_units(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    """A node's amounts in the scheduler's units: counted names and `pods`, zeros kept."""
    return {
        name: to_unit(name, parse_quantity(quantity))
        for name, quantity in (quantities or {}).items()
        if name in _BASIC or name == PODS or is_scalar(name)
    }


def pod_amounts(
    spec: RequestingSpec,
    *,
    status: PodStatus | None = None,
    defaults: Mapping[str, int] | None = None,
    pod_level: bool = True,
    claims: NodeClaimStatuses = (),
) -> Amounts:
    """Total requests of a pod, overhead included.

    With `status`, a container counts with the maximum of its requests and its allocation.
    `defaults` replace requests that a container does not set. With `pod_level`, pod-level requests
    replace the sum over the containers, with what the devices of `claims` use of the node.
    """
    if status is not None and status.counts_by_pod:
        amounts = _peak_of_pod(spec, status, defaults or {})
    else:
        amounts = _sum_containers(spec, _requests_of(status), defaults or {})
    for claim in claims:
        _add(amounts, parse_amounts(claim.resources))
    if pod_level and has_pod_level_requests(spec):
        amounts.update(_pod_level_amounts(spec, status))
    _add(amounts, parse_amounts(spec.overhead))
    return amounts


def pod_limits(spec: RequestingSpec) -> Amounts:
    """Total limits of a pod, overhead included where there is a limit."""

    def limits_of(container: Container, long_running: bool) -> Amounts:
        return parse_amounts(container.resources.limits if container.resources else None)

    amounts = _sum_containers(spec, limits_of, {})
    whole = parse_amounts(spec.resources.limits if spec.resources else None)
    amounts.update({name: amount for name, amount in whole.items() if is_pod_level(name)})
    overhead = parse_amounts(spec.overhead)
    _add(amounts, {name: amount for name, amount in overhead.items() if amounts.get(name)})
    return amounts


def non_zero_units(
    spec: RequestingSpec, status: PodStatus | None = None, claims: NodeClaimStatuses = ()
) -> dict[str, int]:
    """The non-zero requests of a pod on its node for scoring: cpu (milli) and memory.

    A container without a request counts with a default. With pod-level requests, only a resource
    that has no request at all gets the default.
    """
    defaults = dict(NON_ZERO_DEFAULTS)
    if has_pod_level_requests(spec):
        named = pod_amounts(spec, status=status, claims=claims)
        defaults = {name: amount for name, amount in defaults.items() if name not in named}
    amounts = pod_amounts(spec, status=status, defaults=defaults, claims=claims)
    return {name: to_unit(name, amounts.get(name, 0)) for name in (CPU, MEMORY)}


def scoring_units(spec: RequestingSpec) -> dict[str, int]:
    """The requests with which NodeResourcesFit scores a pending pod.

    Upstream passes its feature gates to the filter but not to the scorer, so pod-level requests are
    left out here.
    """
    return to_units(pod_amounts(spec, defaults=NON_ZERO_DEFAULTS, pod_level=False))


def names_its_needs(spec: RequestingSpec) -> bool:
    """Whether every container requests cpu and memory: then no default applies, and all sums are equal.

    Pod-level requests make the sums differ again.
    """
    if spec.resources is not None:
        return False
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        requests = container.requests
        if CPU not in requests or MEMORY not in requests:
            return False
    return bool(spec.containers)


def has_pod_level_requests(spec: RequestingSpec) -> bool:
    """Whether the pod has a pod-level request for a supported resource."""
    requests = spec.resources.requests if spec.resources else None
    return any(is_pod_level(name) for name in requests or ())


def _requests_of(status: PodStatus | None) -> Callable[[Container, bool], Amounts]:
    """Return the function that computes the amounts of one container.

    Its second argument is true if the container's status counts: it does for containers and
    sidecars, not for other init containers.
    """
    given: dict[str, ContainerStatus] = {}
    if status is not None:
        statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        given = {s.name: s for s in statuses if s.resources is not None}

    def requests_of(container: Container, long_running: bool) -> Amounts:
        wanted = parse_amounts(container.requests)
        granted = given.get(container.name) if long_running else None
        if status is None or granted is None or granted.resources is None:
            return wanted
        return _effective(status, wanted, granted.resources.requests, granted.allocated_resources)

    return requests_of


def _peak_of_pod(spec: RequestingSpec, status: PodStatus, defaults: Mapping[str, int]) -> Amounts:
    """The maximum, by resource, of the pod's requests, allocation and actual resources, each for the pod as a whole.

    Mirrors PodRequests of staging/src/k8s.io/component-helpers/resource/helpers.go from v1.37 on.
    """
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    given = {one.name: one for one in statuses}
    is_infeasible = status.is_resize_infeasible

    def wanted(container: Container, long_running: bool) -> Amounts:
        return parse_amounts(container.requests)

    def allocated(container: Container, long_running: bool) -> Amounts:
        found = given.get(container.name)
        if found is not None and found.allocated_resources is not None:
            return parse_amounts(found.allocated_resources)
        return {} if is_infeasible else wanted(container, long_running)

    def actual(container: Container, long_running: bool) -> Amounts:
        found = given.get(container.name)
        if found is not None and found.resources is not None and found.resources.requests:
            return parse_amounts(found.resources.requests)
        return allocated(container, long_running)

    total = {} if is_infeasible else _sum_containers(spec, wanted, defaults)
    of_pod = status.resources.requests if status.resources is not None else None
    if of_pod and status.allocated_resources:
        for amounts in (status.allocated_resources, of_pod):
            _raise_to(total, parse_amounts(amounts))
        return total
    for requests_of in (allocated, actual):
        _raise_to(total, _sum_containers(spec, requests_of, defaults))
    return total


def _effective(
    status: PodStatus,
    wanted: Amounts,
    actual: Mapping[str, Quantity] | None,
    allocated: Mapping[str, Quantity] | None,
) -> Amounts:
    """The maximum of requested, effective and granted resources; an infeasible resize does not
    count."""
    amounts = {} if status.is_resize_infeasible else dict(wanted)
    _raise_to(amounts, parse_amounts(actual))
    _raise_to(amounts, parse_amounts(allocated))
    return amounts


def _sum_containers(
    spec: RequestingSpec,
    requests_of: Callable[[Container, bool], Amounts],
    defaults: Mapping[str, int],
) -> Amounts:
    """The peak usage from the first init container to the running pod."""
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, {**defaults, **requests_of(container, True)})
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        sidecar = container.is_restartable
        amounts = {**defaults, **requests_of(container, sidecar)}
        if sidecar:
            _add(running, amounts)
            _add(sidecars, amounts)
            _raise_to(peak, sidecars)
        else:
            _add(amounts, sidecars)
            _raise_to(peak, amounts)
    _raise_to(running, peak)
    return running


def _pod_level_amounts(spec: RequestingSpec, status: PodStatus | None) -> Amounts:
    """The pod-level requests, raised to the pod's allocation."""
    assert spec.resources is not None, "called only for a spec with pod-level requests"
    wanted = parse_amounts(spec.resources.requests)
    effective = wanted
    if status is not None and status.resources is not None:
        actual = status.resources.requests
        effective = _effective(status, wanted, actual, status.allocated_resources)
    names = effective if status is not None and status.counts_by_pod else wanted
    return {name: effective.get(name, 0) for name in names if is_pod_level(name)}


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount
