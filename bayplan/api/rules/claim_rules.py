"""Claim rules: faults of the specs of claims of volumes.

Mirrors ValidatePersistentVolumeClaimSpec of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, subdomain_faults
from .field_causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from .label_rules import name_causes_of, selector_causes
from .resource_rules import amount_of
from .security_rules import choice_causes

Tree = Mapping[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
POSITIVE = "must be greater than zero"


def claim_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a claim of a volume."""
    yield from claim_spec_causes(tree.get("spec") or {}, "spec")


def claim_spec_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the spec of a claim, or of a template of claims."""
    if not spec.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_causes(spec.get("selector"), f"{path}.selector")
    yield from mode_causes(spec, path)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    amount = amount_of(size)
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif amount is not None and amount.nano <= 0:
        yield invalid_value(f"{path}.resources[storage]", str(amount), POSITIVE)
    yield from name_causes_of(spec, "storageClassName", subdomain_faults, path)
    yield from choice_causes(spec, "volumeMode", ("Block", "Filesystem"), path)
    yield from _source_causes(spec, path)
    yield from name_causes_of(spec, "volumeAttributesClassName", subdomain_faults, path)


def mode_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of access modes."""
    modes = spec.get("accessModes") or ()
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield unsupported_value(f"{path}.accessModes", str(mode), ACCESS_MODES)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        problem = "may not use ReadWriteOncePod with other access modes"
        yield forbidden_field(f"{path}.accessModes", problem)


def _source_causes(spec: Tree, path: str) -> Iterator[Cause]:
    for field in ("dataSource", "dataSourceRef"):
        source, where = spec.get(field), f"{path}.{field}"
        if source is None:
            continue
        for name in ("name", "kind"):
            if not source.get(name):
                yield required(f"{where}.{name}")
        kind = source.get("kind") or ""
        if not source.get("apiGroup") and kind != "PersistentVolumeClaim":
            problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            yield invalid_value(where, kind, problem)
        yield from name_causes_of(source, "apiGroup", subdomain_faults, where)
        if field == "dataSourceRef":
            yield from name_causes_of(source, "namespace", dns_label_faults, where)
