"""Device builders: slices, classes, claims, templates, and pods that use them.

Fields without a parameter are given in Kubernetes' own form, as in `builders`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..api.devices import DeviceTaintRule, ResourceSlice
from ..api.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate
from ..api.pod import Pod
from .builders import Tree, make_kind, make_pod, parse_taint

DRIVER = "gpu.example.com"


def make_device(
    name: str = "gpu-0",
    *,
    capacity: Mapping[str, str | Tree] | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    taints: Iterable[str] = (),
    shared: bool = False,
    fields: Tree | None = None,
    **attributes: str | int | bool | Tree,
) -> dict[str, Any]:
    """A device with attributes of the driver: text, numbers and booleans as they are, others in their own form.

    `taints` are written `key=value:Effect`; `counters` are its consumption, by counter set;
    `shared`: it allows multiple allocations.
    """
    device: dict[str, Any] = {
        "name": name,
        "attributes": {key: _attribute(value) for key, value in attributes.items()},
        "capacity": {
            key: {"value": value} if isinstance(value, str) else dict(value)
            for key, value in (capacity or {}).items()
        },
        "consumesCounters": [_counters("counterSet", *item) for item in (counters or {}).items()],
        "taints": [parse_taint(taint) for taint in taints],
        **(fields or {}),
    }
    if shared:
        device["allowMultipleAllocations"] = True
    return {key: value for key, value in device.items() if value not in ({}, [])}


def make_slice(
    name: str,
    *devices: str | Tree,
    node: str | None = None,
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> ResourceSlice:
    """A slice of a pool, by default the pool `pool` of the node, or of its own name.

    Without a node, all nodes can reach it, unless `spec` overrides it; `counters` are its counter
    sets.
    """
    where: dict[str, Any] = {"nodeName": node} if node is not None else {}
    if not where and not spec.keys() & {"nodeSelector", "perDeviceNodeSelection"}:
        where = {"allNodes": True}
    tree = {
        "driver": driver,
        "pool": {
            "name": pool or node or name,
            "generation": generation,
            "resourceSliceCount": count,
        },
        "devices": [make_device(d) if isinstance(d, str) else dict(d) for d in devices],
        **where,
        **spec,
    }
    if counters:
        tree["sharedCounters"] = [_counters("name", *item) for item in counters.items()]
    return make_kind(ResourceSlice, name, spec=tree)


def make_taint_rule(name: str, taint: str, **selector: str) -> DeviceTaintRule:
    """A rule that adds a taint `key=value:Effect` to the devices with this `driver`, `pool`, `device`."""
    return make_kind(
        DeviceTaintRule, name, spec={"deviceSelector": selector, "taint": parse_taint(taint)}
    )


def make_class(
    name: str = "gpu", *expressions: str, resource: str | None = None, **spec: Any
) -> DeviceClass:
    """A class of the devices that match all `expressions`, for the extended resource `resource`."""
    tree = {"selectors": selectors(*expressions), "extendedResourceName": resource, **spec}
    return make_kind(DeviceClass, name, spec=tree)


def make_request(
    name: str = "gpu", *expressions: str, device_class: str = "gpu", **fields: Any
) -> dict[str, Any]:
    """A request for one device, unless `fields` override it."""
    wanted = {"deviceClassName": device_class, "selectors": selectors(*expressions), **fields}
    return {"name": name, "exactly": wanted}


def make_choice(name: str, *options: Tree) -> dict[str, Any]:
    """A request with alternatives, each made like a request."""
    return {"name": name, "firstAvailable": [{"name": o["name"], **o["exactly"]} for o in options]}


def make_claim(
    name: str = "claim",
    *requests: Tree,
    constraints: Iterable[Tree] = (),
    devices: Iterable[str] = (),
    users: Iterable[Pod] = (),
    node: str | None = None,
    owner: Pod | None = None,
    **fields: Any,
) -> ResourceClaim:
    """A claim for one GPU, unless `requests` override it; with `devices`, written `pool/device`, it is allocated.

    `node` is the only node that can use them; `users` are the pods it is reserved for.
    """
    metadata: dict[str, Any] = {"uid": f"claim/{name}", **fields.pop("metadata", {})}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
            }
        ]
    results = [_result(device) for device in devices]
    status: dict[str, Any] = {}
    if results:
        status["allocation"] = {"devices": {"results": results}}
        if node is not None:
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            status["allocation"]["nodeSelector"] = selector
    if users:
        status["reservedFor"] = [
            {"resource": "pods", "name": pod.name, "uid": pod.uid} for pod in users
        ]
    return make_kind(
        ResourceClaim,
        name,
        namespace="default",
        metadata=metadata,
        spec={"devices": _asked(requests, constraints)},
        status={**status, **fields.pop("status", {})},
        **fields,
    )


def make_template(
    name: str = "template", *requests: Tree, constraints: Iterable[Tree] = ()
) -> ResourceClaimTemplate:
    """A template for claims for one GPU, unless `requests` override it."""
    spec = {"spec": {"devices": _asked(requests, constraints)}}
    return make_kind(ResourceClaimTemplate, name, namespace="default", spec=spec)


def claiming(*claims: str, name: str = "pod", template: str | None = None, **fields: Any) -> Pod:
    """A pod that uses the claims, and one generated from the template."""
    entries: list[dict[str, str]] = [
        {"name": f"claim-{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)
    ]
    if template is not None:
        entries.append({"name": "own", "resourceClaimTemplateName": template})
    spec = {**fields.pop("spec", {}), "resourceClaims": entries}
    return make_pod(name, spec=spec, **fields)


def selectors(*expressions: str) -> list[dict[str, Any]]:
    """Expressions as selectors."""
    return [{"cel": {"expression": expression}} for expression in expressions]


def _asked(requests: Iterable[Tree], constraints: Iterable[Tree]) -> dict[str, Any]:
    asked = list(requests) or [make_request()]
    return {"requests": asked, "constraints": list(constraints)}


def _attribute(value: str | int | bool | Tree) -> Tree:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"string": value} if isinstance(value, str) else value


def _counters(key: str, name: str, amounts: Mapping[str, str]) -> dict[str, Any]:
    return {key: name, "counters": {counter: {"value": v} for counter, v in amounts.items()}}


def _result(device: str) -> dict[str, str]:
    pool, _, name = device.partition("/")
    return {"request": "gpu", "driver": DRIVER, "pool": pool, "device": name}
