"""Devices: remedies for resource claims that cannot be allocated on the node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...api.dra import ClaimNotReadyError, ResourceClaim, resource_claim_name
from ...api.resources import may_stand_for_devices
from ..manifest_changes import ObjectChange, pointer
from .proposal import (
    Ask,
    Remedy,
    add,
    create,
    delete,
    last_resort,
    owner_reference,
    plain,
    remedy,
    remove,
)

MOST_MAKES = 6
MOST_CLAIMS = 24
COPIES = (1, 2, 4, 8)
ENOUGH = 2
"""Maximum number of device models to propose."""


def serve_claims(ask: Ask) -> Iterator[Remedy]:
    """Deallocate the pod's claims, free devices of other claims, add devices to the node, or drop the claims."""
    claims = list(_claims(ask))
    wants_devices = any(map(may_stand_for_devices, ask.pod.requests))
    if not ask.pod.spec.resource_claims and not wants_devices:
        return
    yield from _missing_claims(ask)
    own = [claim for claim in claims if claim.allocation is not None]
    yield remedy("allocate the pod's claims again", *[_given_back(claim) for claim in own])
    yield from _more_devices(ask)
    yield from _free_devices(ask, claims)
    yield from _without_claims(ask)


def _claims(ask: Ask) -> Iterator[ResourceClaim]:
    for entry in ask.pod.spec.resource_claims or ():
        try:
            name = resource_claim_name(ask.pod, entry)
        except ClaimNotReadyError:
            continue
        claim = ask.view.cluster.get("ResourceClaim", ask.pod.namespace, name or "")
        if isinstance(claim, ResourceClaim):
            yield claim


def _missing_claims(ask: Ask) -> Iterator[Remedy]:
    """Create the missing claims of the pod; an unknown template gives an empty claim."""
    pod, changes = ask.pod, list[ObjectChange]()
    for entry in pod.spec.resource_claims or ():
        spec: Any = {}
        metadata: dict[str, Any] = {"namespace": pod.namespace}
        try:
            name = resource_claim_name(pod, entry)
        except ClaimNotReadyError:
            name = f"{pod.name}-{entry.name}"
            template = ask.view.cluster.get(
                "ResourceClaimTemplate", pod.namespace, entry.resource_claim_template_name or ""
            )
            spec = plain(template.spec.spec) if template is not None else {}
            metadata["ownerReferences"] = [owner_reference(pod)]
            made = {"name": entry.name, "resourceClaimName": name}
            path = pointer("status", "resourceClaimStatuses", "-")
            changes.append(add(pod, path, made, f"record claim {name} in the pod's status"))
        if name and ask.view.cluster.get("ResourceClaim", pod.namespace, name) is None:
            metadata |= {"name": name, "uid": f"{pod.namespace}-{name}"}
            manifest = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": metadata,
                "spec": spec,
            }
            changes.append(create(manifest, f"create claim {pod.namespace}/{name}"))
    yield remedy("create the claims that the pod waits for", *changes)


def _given_back(claim: ResourceClaim) -> ObjectChange:
    path = pointer("status", "allocation")
    return remove(claim, path, plain(claim.allocation), f"deallocate claim {claim.key}")


def _more_devices(ask: Ask) -> Iterator[Remedy]:
    """Add devices of a model that exists in the cluster to the node."""
    makes: dict[tuple[str, bytes], dict[str, Any]] = {}
    for slice_ in ask.view.cluster.list("ResourceSlice"):
        for device in slice_.spec.devices or ():
            makes.setdefault((slice_.spec.driver, device.content), plain(device))
    found = 0
    for (driver, _), device in list(makes.items())[:MOST_MAKES]:
        if found == ENOUGH:
            return
        for copies in COPIES:
            change = create(_slice(ask, driver, device, copies), "")
            if ask.helps([change]):
                number = "a device" if copies == 1 else f"{copies} devices"
                text = f"{number} more of {driver} like {device['name']} on {ask.node.name}"
                change.text = text
                found += 1
                yield remedy(text, change)
                break


def _slice(ask: Ask, driver: str, device: dict[str, Any], copies: int) -> dict[str, Any]:
    kept = {k: v for k, v in device.items() if k in ("attributes", "capacity")}
    name = f"{ask.node.name}-more-{driver}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": name},
        "spec": {
            "driver": driver,
            "nodeName": ask.node.name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"more-{n}", **kept} for n in range(copies)],
        },
    }


def _free_devices(ask: Ask, own: list[ResourceClaim]) -> Iterator[Remedy]:
    """Free the devices of other claims."""
    keys = {claim.key for claim in own}
    others = [
        claim
        for claim in ask.view.cluster.list("ResourceClaim")
        if claim.allocation is not None and claim.key not in keys
    ]
    changes = [delete(c, f"delete claim {c.key}, which frees its devices") for c in others]
    for change in changes[:MOST_CLAIMS]:
        if ask.helps([change]):
            yield remedy(change.text, change)
            return
    if 1 < len(others) <= MOST_CLAIMS:
        yield remedy("free the devices of other claims", *changes)


def _without_claims(ask: Ask) -> Iterator[Remedy]:
    """Drop the pod's claims."""
    pod, changes = ask.pod, list[ObjectChange]()
    for i, entry in reversed(list(enumerate(pod.spec.resource_claims or ()))):
        path = pointer("spec", "resourceClaims", i)
        text = f"drop claim {entry.name}"
        changes.append(remove(pod, path, plain(entry), text))
    for i, container in enumerate(pod.spec.containers or ()):
        for name, quantity in container.requests.items():
            if may_stand_for_devices(name):
                path = pointer("spec", "containers", i, "resources", "requests", name)
                changes.append(remove(pod, path, quantity, f"drop {name}"))
    yield last_resort("drop the devices", *changes)
