"""Resource rules: faults of amounts of resources, and of their names.

Mirrors validateResourceRequirements and its neighbours of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..resources import is_extended, is_hugepages, is_native, is_pod_level
from ..text.name_faults import dns_label_faults, key_faults
from ..text.quantity import ExactAmount
from .field_causes import NEGATIVE, Part, Tree

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


def amount_of(quantity: Any) -> ExactAmount | None:
    """The amount of a quantity; None if it cannot be read, which the decoder reports."""
    try:
        return None if quantity is None else ExactAmount.of(quantity)
    except ValueError:
        return None


def is_shared(name: str) -> bool:
    """Whether a resource may be overcommitted."""
    return is_native(name) and not is_hugepages(name)


def check_amount(part: Part, where: str, name: str, quantity: Any) -> None:
    """Check an amount of a resource."""
    amount = amount_of(quantity)
    if amount is None:
        return
    if amount.nano < 0:
        part.invalid(where, NEGATIVE, str(amount))
    if (name in COUNTED or is_extended(name)) and amount.nano % 10**9:
        part.invalid(where, "must be an integer", str(amount))


def resource_name_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of any resource."""
    faults = key_faults(name)
    is_standard = name in _STANDARD or is_hugepages(name) or name.startswith("requests.hugepages-")
    if faults or "/" in name or is_standard:
        return faults
    return ("must be a standard resource type or fully qualified",)


def container_resource_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of a resource of a container."""
    faults = resource_name_faults(name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages(name):
            return (*faults, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*faults, "doesn't follow extended resource name standard")
    return faults


def quota_resource_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of a resource of a quota."""
    is_huge = name.startswith(("hugepages-", "requests.hugepages-"))
    is_known = "/" in name or name in OF_QUOTAS or is_huge
    more = () if is_known else ("must be a standard resource for quota",)
    return (*resource_name_faults(name), *more)


def check_requirements(
    resources: Part, claims: Sequence[str] = (), of_whole_pod: bool = False
) -> None:
    """Check requests and limits of a container or of a pod as a whole, and the claims of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            where = f"{part}[{name}]"
            known = resource_name_faults if of_whole_pod else container_resource_faults
            resources.check(where, known, name)
            if of_whole_pod and not resource_name_faults(name) and not is_pod_level(name):
                resources.unsupported(where, ("cpu", "hugepages-", "memory"), name)
            check_amount(resources, where, name, quantity)
            if part == "requests":
                _check_limit(resources, name, quantity, limits)
            _check_pages(resources, where, name, quantity)
    named = {*limits, *requests}
    if any(is_hugepages(name) for name in named) and not named & {"cpu", "memory"}:
        resources.forbidden("", "HugePages require cpu or memory")
    _check_claims(resources, claims)


def _check_limit(resources: Part, name: str, quantity: Any, limits: Tree) -> None:
    if name not in limits:
        if not is_shared(name):
            resources.required("limits", "Limit must be set for non overcommitable resources")
        return
    wanted, limit = amount_of(quantity), amount_of(limits[name])
    if wanted is None or limit is None:
        return
    relation = "less than or equal to" if is_shared(name) else "equal to"
    if wanted.nano > limit.nano or (not is_shared(name) and wanted.nano != limit.nano):
        resources.invalid("requests", f"must be {relation} {name} limit of {limit}", str(wanted))


def _check_pages(resources: Part, where: str, name: str, quantity: Any) -> None:
    amount = amount_of(quantity) if is_hugepages(name) else None
    size = amount_of(name.removeprefix("hugepages-")) if amount is not None else None
    if amount is not None and size is not None and (size.nano <= 0 or amount.nano % size.nano):
        problem = f"{amount} is not positive integer multiple of {name}"
        resources.invalid(where, problem, str(amount))


def _check_claims(resources: Part, of_pod: Sequence[str]) -> None:
    keys: set[str] = set()
    for claim in resources.each("claims"):
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            claim.required("")
            continue
        key = f"{name}/{request}" if request else name
        claim.text("request", dns_label_faults)
        others = [other for other in keys if other.startswith(f"{name}/")] if not request else []
        if name in keys:
            claim.duplicate("", name)
        elif key in keys or others:
            claim.duplicate("", key)
        keys.add(key)
        if name not in of_pod:
            known = f": {', '.join(sorted(of_pod))}" if of_pod else " which is empty"
            claim.not_found("", name, f"must be one of the names in pod.spec.resourceClaims{known}")


def check_pod_requirements(spec: Part) -> None:
    """Check the resources of a pod as a whole."""
    resources = spec.below("resources")
    if not spec.has("resources"):
        return
    if (spec.get("os") or {}).get("name") == "windows":
        spec.forbidden("resources", "may not be set for a windows pod")
        return
    if resources.get("claims"):
        resources.forbidden("claims", "claims may not be set for Resources at pod-level")
    check_requirements(resources, of_whole_pod=True)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in _sums(spec.tree, "requests").items():
        amount = amount_of(requests.get(name))
        if amount is not None and total.nano > amount.nano:
            problem = f"must be greater than or equal to aggregate container requests of {total}"
            resources.invalid(f"requests[{name}]", problem, str(amount))
    for container, one in spec.items("containers"):
        for name, limit in ((one.get("resources") or {}).get("limits") or {}).items():
            own, whole = amount_of(limit), amount_of(limits.get(name))
            if own is not None and whole is not None and own.nano > whole.nano:
                problem = f"must be less than or equal to pod limits of {whole}"
                resources.invalid(f"{container}[{name}].limits", problem, str(own))


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
