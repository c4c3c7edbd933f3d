"""Claim rules: faults of the specs of claims of volumes.

Mirrors ValidatePersistentVolumeClaimSpec of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from ..text.name_faults import dns_label_faults, subdomain_faults
from .field_causes import Part
from .label_rules import check_selector
from .resource_rules import amount_of

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
POSITIVE = "must be greater than zero"


def check_claim_spec(spec: Part) -> None:
    """Check the spec of a claim, or of a template of claims."""
    spec.needs("accessModes", problem="at least 1 access mode is required")
    check_selector(spec.below("selector"))
    check_modes(spec)
    size = (spec.below("resources").get("requests") or {}).get("storage")
    amount = amount_of(size)
    if size is None:
        spec.required("resources[storage]")
    elif amount is not None and amount.nano <= 0:
        spec.invalid("resources[storage]", POSITIVE, str(amount))
    spec.text("storageClassName", subdomain_faults)
    spec.choice("volumeMode", "Block", "Filesystem")
    for field in spec.set_of(("dataSource", "dataSourceRef")):
        source, kind = spec.below(field), (spec.get(field) or {}).get("kind") or ""
        source.needs("name", "kind")
        if not source.get("apiGroup") and kind != "PersistentVolumeClaim":
            problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            source.invalid("", problem, kind)
        source.text("apiGroup", subdomain_faults)
        if field == "dataSourceRef":
            source.text("namespace", dns_label_faults)
    spec.text("volumeAttributesClassName", subdomain_faults)


def check_modes(spec: Part) -> None:
    """Check access modes."""
    modes = spec.get("accessModes") or ()
    for mode in modes:
        if mode not in ACCESS_MODES:
            spec.unsupported("accessModes", ACCESS_MODES, str(mode))
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")
