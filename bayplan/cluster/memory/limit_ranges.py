"""Limit ranges: the defaults and bounds of a namespace for new pods and claims.

Mirrors plugin/pkg/admission/limitranger/admission.go. Messages are kube-apiserver's; where several bounds are violated
they are in the order of the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...api.containers import Container, ResourceRequirements
from ...api.limits import CLAIM, CONTAINER, POD, LimitRange, LimitRangeItem
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.resources import pod_amounts, pod_limits
from ...api.rules.field_causes import Cause, invalid_value
from ...api.storage import PersistentVolumeClaim
from ...api.text.quantity import (
    MAX_INT64,
    NANO,
    ExactAmount,
    Quantity,
    nano_to_milli,
    nano_to_value,
)

ANNOTATION = "kubernetes.io/limit-ranger"
MAX_MILLI = MAX_INT64 // 1000

ExactAmounts = Mapping[str, ExactAmount]


def default_resources(spec: PodSpec, ranges: Sequence[LimitRange]) -> tuple[PodSpec, str]:
    """The spec with the defaults of the ranges, and the annotation that lists them, empty if none was set."""
    note = ""
    for each in ranges:
        requests, limits = dict[str, Quantity](), dict[str, Quantity]()
        for item in each.items:
            if item.type == CONTAINER:
                requests |= item.default_request or {}
                limits |= item.default or {}
        notes: list[str] = []
        changes: dict[str, Any] = {}
        for field, word in (("containers", "container"), ("init_containers", "init container")):
            containers: tuple[Container, ...] | None = getattr(spec, field)
            if containers is not None:
                changes[field] = tuple(
                    _defaulted(container, requests, limits, word, notes) for container in containers
                )
        if notes:
            spec = replace(spec, **changes)
            note = f"LimitRanger plugin set: {'; '.join(notes)}"
    return spec, note


def _defaulted(
    container: Container,
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
    word: str,
    notes: list[str],
) -> Container:
    resources = container.resources or ResourceRequirements()
    given = resources.requests or {}
    bounds = resources.limits or {}
    missing = sorted(requests.keys() - given.keys())
    unbounded = sorted(limits.keys() - bounds.keys())
    if missing:
        notes.append(f"{', '.join(missing)} request for {word} {container.name}")
    if unbounded:
        notes.append(f"{', '.join(unbounded)} limit for {word} {container.name}")
    if not missing and not unbounded:
        return container
    changed = replace(resources, requests={**requests, **given}, limits={**limits, **bounds})
    return replace(container, resources=changed)


def excess_requests(spec: PodSpec) -> Iterator[Cause]:
    """The requests above their limit, which defaults may lead to."""
    parts = {"containers": spec.containers, "initContainers": spec.init_containers}
    for field, containers in parts.items():
        for i, container in enumerate(containers or ()):
            limits = _amounts(container.resources.limits if container.resources else None)
            for name, wanted in _amounts(container.requests).items():
                if name in limits and wanted.nano > limits[name].nano:
                    rule = f"must be less than or equal to {name} limit of {limits[name]}"
                    path = f"spec.{field}[{i}].resources.requests"
                    yield invalid_value(path, str(wanted), rule)


def violation_of(obj: Pod | PersistentVolumeClaim, ranges: Sequence[LimitRange]) -> str:
    """The faults of an object by the first range that refuses it, each once; empty if none does."""
    for each in ranges:
        faults = dict.fromkeys(
            fault
            for item in each.items
            for requests, limits in _measured(obj, item.type)
            for fault in _faults(item, requests, limits)
            if fault
        )
        if faults:
            return next(iter(faults)) if len(faults) == 1 else f"[{', '.join(faults)}]"
    return ""


def _faults(item: LimitRangeItem, requests: ExactAmounts, limits: ExactAmounts) -> Iterator[str]:
    """The result of each check: empty, or a fault."""
    bounds = (item.min, item.max, item.max_limit_request_ratio)
    for check, amounts in zip(_CHECKS, bounds, strict=True):
        for name, bound in (amounts or {}).items():
            pair = requests.get(name), limits.get(name)
            yield check(item.type, name, ExactAmount.of(bound), *pair)


def _measured(
    obj: Pod | PersistentVolumeClaim, kind: str
) -> Iterator[tuple[ExactAmounts, ExactAmounts]]:
    """The requests and limits of each container, of the pod as a whole, or of the claim."""
    if isinstance(obj, PersistentVolumeClaim):
        if kind == CLAIM:
            yield _amounts(obj.requests), {}
        return
    spec = obj.spec
    if kind == CONTAINER:
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            limits = container.resources.limits if container.resources is not None else None
            yield _amounts(container.requests), _amounts(limits)
    elif kind == POD:
        bare = replace(spec, overhead=None)
        yield (
            with_notation(pod_amounts(bare), spec, "requests"),
            with_notation(pod_limits(bare), spec, "limits"),
        )


def with_notation(sums: Mapping[str, int], spec: PodSpec, which: str) -> dict[str, ExactAmount]:
    """Sums over the containers of a pod, each in the notation of its first addend that is not zero."""
    parts = [
        container.resources
        for container in (*(spec.containers or ()), *(spec.init_containers or ()))
    ]
    found: dict[str, ExactAmount] = {}
    for name, nano in sums.items():
        notation = ""
        for part in (spec.resources, *parts):
            quantity = (getattr(part, which) or {}).get(name) if part is not None else None
            if quantity is not None and not notation and ExactAmount.of(quantity).nano:
                notation = ExactAmount.of(quantity).notation
        found[name] = ExactAmount(nano, notation) if notation else ExactAmount(nano)
    return found


def _amounts(quantities: Mapping[str, Quantity] | None) -> dict[str, ExactAmount]:
    return {name: ExactAmount.of(quantity) for name, quantity in (quantities or {}).items()}


Check = Callable[[str, str, ExactAmount, ExactAmount | None, ExactAmount | None], str]


def _below_minimum(
    kind: str, name: str, bound: ExactAmount, request: ExactAmount | None, limit: ExactAmount | None
) -> str:
    rule = f"minimum {name} usage per {kind} is {bound}"
    if request is None:
        return f"{rule}.  No request is specified"
    wanted, allowed, enforced = _comparable(request, limit, bound)
    if wanted < enforced:
        return f"{rule}, but request is {request}"
    return f"{rule}, but limit is {limit}" if limit is not None and allowed < enforced else ""


def _above_maximum(
    kind: str, name: str, bound: ExactAmount, request: ExactAmount | None, limit: ExactAmount | None
) -> str:
    rule = f"maximum {name} usage per {kind} is {bound}"
    needed = "request" if kind == CLAIM else "limit"  # claims have no limits
    if (request if kind == CLAIM else limit) is None:
        return f"{rule}.  No {needed} is specified"
    wanted, allowed, enforced = _comparable(request, limit, bound)
    if allowed > enforced:
        return f"{rule}, but limit is {limit}"
    return f"{rule}, but request is {request}" if request is not None and wanted > enforced else ""


def _above_ratio(
    kind: str, name: str, bound: ExactAmount, request: ExactAmount | None, limit: ExactAmount | None
) -> str:
    if kind == CLAIM:
        return ""
    rule = f"{name} max limit to request ratio per {kind} is {bound}"
    wanted, allowed, _ = _comparable(request, limit, bound)
    if not wanted:
        return f"{rule}, but no request is specified or request is 0"
    if not allowed:
        return f"{rule}, but no limit is specified or limit is 0"
    ratio = allowed / wanted
    return f"{rule}, but provided ratio is {ratio:f}" if ratio * NANO > bound.nano else ""


_CHECKS: tuple[Check, ...] = (_below_minimum, _above_maximum, _above_ratio)
"""The rules for the minimum, the maximum and the ratio of a range, in this order."""


def _comparable(*amounts: ExactAmount | None) -> list[int]:
    """The amounts in thousandths, or in whole units if one is too large for that."""
    nanos = [0 if amount is None else amount.nano for amount in amounts]
    is_precise = all(nano_to_value(nano) <= MAX_MILLI for nano in nanos)
    return [nano_to_milli(nano) if is_precise else nano_to_value(nano) for nano in nanos]
