"""Resource rules: faults of amounts of resources, and of their names.

Mirrors validateResourceRequirements and its neighbours of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..resources import is_extended, is_hugepages, is_native, is_pod_level
from ..text.name_faults import dns_label_faults, key_faults
from ..text.quantity import ExactAmount
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    not_found_value,
    required,
    unsupported_value,
)
from .label_rules import text_causes

Tree = Mapping[str, Any]
NameRule = Callable[[str, str], Iterator[Cause]]

COUNTED = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
"""Resources that are whole numbers of objects."""
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
OF_QUOTAS = (
    *_OF_CONTAINERS,
    *(f"{part}.{name}" for part in ("requests", "limits") for name in _OF_CONTAINERS),
    "requests.storage",
    *COUNTED,
)
_STANDARD = (*OF_QUOTAS, "storage")
NEGATIVE = "must be greater than or equal to 0"
_NOT_WHOLE = "must be an integer"


def amount_of(quantity: Any) -> ExactAmount | None:
    """The amount of a quantity; None if it cannot be read, which the decoder reports."""
    try:
        return None if quantity is None else ExactAmount.of(quantity)
    except ValueError:
        return None


def amount_causes(name: str, quantity: Any, path: str) -> Iterator[Cause]:
    """Yield the faults of an amount of a resource."""
    amount = amount_of(quantity)
    if amount is None:
        return
    if amount.nano < 0:
        yield invalid_value(path, str(amount), NEGATIVE)
    if (name in COUNTED or is_extended(name)) and amount.nano % 10**9:
        yield invalid_value(path, str(amount), _NOT_WHOLE)


def resource_name_causes(name: str, path: str) -> Iterator[Cause]:
    """Yield the faults of the name of any resource."""
    faults = key_faults(name)
    for fault in faults:
        yield invalid_value(path, name, fault)
    is_standard = name in _STANDARD or is_hugepages(name) or name.startswith("requests.hugepages-")
    if not faults and "/" not in name and not is_standard:
        yield invalid_value(path, name, "must be a standard resource type or fully qualified")


def container_resource_causes(name: str, path: str) -> Iterator[Cause]:
    """Yield the faults of the name of a resource of a container."""
    yield from resource_name_causes(name, path)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages(name):
            yield invalid_value(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(path, name, "doesn't follow extended resource name standard")


def _pod_resource_causes(name: str, path: str) -> Iterator[Cause]:
    faults = list(resource_name_causes(name, path))
    yield from faults
    if not faults and not is_pod_level(name):
        yield unsupported_value(path, name, ("cpu", "hugepages-", "memory"))


def quota_resource_causes(name: str, path: str) -> Iterator[Cause]:
    """Yield the faults of the name of a resource of a quota."""
    yield from resource_name_causes(name, path)
    huge = name.startswith(("hugepages-", "requests.hugepages-"))
    if "/" not in name and name not in OF_QUOTAS and not huge:
        yield invalid_value(path, name, "must be a standard resource for quota")


def requirement_causes(
    resources: Tree, claims: Sequence[str], path: str, names: NameRule = container_resource_causes
) -> Iterator[Cause]:
    """Yield the faults of the requests and limits of a container, and of its claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            where = f"{path}.{part}[{name}]"
            yield from names(name, where)
            yield from amount_causes(name, quantity, where)
            if part == "requests":
                yield from _limit_causes(name, quantity, limits, path)
            yield from _page_causes(name, quantity, where)
    named = {*limits, *requests}
    if any(is_hugepages(name) for name in named) and not named & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")
    yield from _claim_causes(resources.get("claims") or (), claims, f"{path}.claims")


def _limit_causes(name: str, quantity: Any, limits: Tree, path: str) -> Iterator[Cause]:
    is_shared = is_native(name) and not is_hugepages(name)
    if name not in limits:
        if not is_shared:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    wanted, limit = amount_of(quantity), amount_of(limits[name])
    if wanted is None or limit is None:
        return
    relation = "equal to" if not is_shared else "less than or equal to"
    if wanted.nano > limit.nano or (not is_shared and wanted.nano != limit.nano):
        problem = f"must be {relation} {name} limit of {limit}"
        yield invalid_value(f"{path}.requests", str(wanted), problem)


def _page_causes(name: str, quantity: Any, path: str) -> Iterator[Cause]:
    amount = amount_of(quantity) if is_hugepages(name) else None
    size = amount_of(name.removeprefix("hugepages-")) if amount is not None else None
    if amount is not None and size is not None and (size.nano <= 0 or amount.nano % size.nano):
        problem = f"{amount} is not positive integer multiple of {name}"
        yield invalid_value(path, str(amount), problem)


def _claim_causes(claims: Sequence[Tree], of_pod: Sequence[str], path: str) -> Iterator[Cause]:
    keys: set[str] = set()
    for i, claim in enumerate(claims):
        name, request, where = claim.get("name") or "", claim.get("request") or "", f"{path}[{i}]"
        if not name:
            yield required(where)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            yield from text_causes(request, dns_label_faults, f"{where}.request")
        others = [other for other in keys if other.startswith(f"{name}/")] if not request else []
        if name in keys:
            yield duplicate(where, name)
        elif key in keys or others:
            yield duplicate(where, key)
        keys.add(key)
        if name not in of_pod:
            known = f": {', '.join(sorted(of_pod))}" if of_pod else " which is empty"
            problem = f"must be one of the names in pod.spec.resourceClaims{known}"
            yield not_found_value(where, name, problem)


def pod_requirement_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the resources of a pod as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden_field(f"{path}.resources", "may not be set for a windows pod")
        return
    if resources.get("claims"):
        problem = "claims may not be set for Resources at pod-level"
        yield forbidden_field(f"{path}.resources.claims", problem)
    where = f"{path}.resources"
    yield from requirement_causes(resources, (), where, _pod_resource_causes)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in _sums(spec, "requests").items():
        amount = amount_of(requests.get(name))
        if amount is not None and total.nano > amount.nano:
            problem = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid_value(f"{where}.requests[{name}]", str(amount), problem)
    for i, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            own, whole = amount_of(limit), amount_of(limits.get(name))
            if own is not None and whole is not None and own.nano > whole.nano:
                problem = f"must be less than or equal to pod limits of {whole}"
                yield invalid_value(f"{where}.containers[{i}][{name}].limits", str(own), problem)


def _sums(spec: Tree, part: str) -> dict[str, ExactAmount]:
    """The sums of the amounts of the containers of a pod that run at once."""
    sums: dict[str, ExactAmount] = {}
    lasting = [
        one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"
    ]
    for container in (*(spec.get("containers") or ()), *lasting):
        for name, quantity in ((container.get("resources") or {}).get(part) or {}).items():
            amount = amount_of(quantity)
            if amount is not None:
                sums[name] = sums[name].plus(amount) if name in sums else amount
    return sums
