"""Object validation: invalid fields and forbidden changes of an object, as causes of an error.

Mirrors pkg/apis/*/validation, as far as a consistent cluster needs it. Fields that affect placement
are checked by `api.validate` when the object is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
    value_faults,
)
from ..text.names import is_label_value, is_qualified_name
from . import (
    autoscaler_rules,
    data_rules,
    device_rules,
    extension_rules,
    job_rules,
    network_rules,
    pod_rules,
    service_rules,
    storage_rules,
    workload_rules,
)
from .claim_rules import claim_causes
from .field_causes import Cause, forbidden_field, invalid_value, required
from .immutable import immutable_causes
from .rbac_rules import GROUP, binding_causes, role_causes, role_ref_causes

Tree = Mapping[str, Any]

_LABELLED = frozenset({"namespaces", "services", "statefulsets.apps"})
_FREE_NAMES = frozenset(
    {
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
    }
)


_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def metadata_causes(storage: str, metadata: Tree) -> Iterator[Cause]:
    """Yield the faults of an object's name, labels, annotations and owners."""
    name = str(metadata.get("name") or "")
    prefix = str(metadata.get("generateName") or "")
    # A hyphen at its end is followed by random letters.
    whole = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    for fault in _name_faults(storage, whole) if prefix else ():
        yield invalid_value("metadata.generateName", prefix, fault)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    for fault in _name_faults(storage, name) if name else ():
        yield invalid_value("metadata.name", name, fault)
    for key, value in (metadata.get("labels") or {}).items():
        for fault in () if is_qualified_name(key) else key_faults(key):
            yield invalid_value("metadata.labels", key, fault)
        for fault in () if is_label_value(value) else value_faults(value):
            yield invalid_value("metadata.labels", value, fault)
    for key in metadata.get("annotations") or {}:
        for fault in () if is_qualified_name(key.lower()) else key_faults(key.lower()):
            yield invalid_value("metadata.annotations", key, fault)
    yield from _owner_causes(metadata.get("ownerReferences") or ())
    yield from _finalizer_causes(metadata.get("finalizers") or (), storage)


def _name_faults(storage: str, name: str) -> tuple[str, ...]:
    if storage in _FREE_NAMES:
        return path_segment_faults(name)
    return dns_label_faults(name) if storage in _LABELLED else subdomain_faults(name)


def _owner_causes(owners: Sequence[Tree]) -> Iterator[Cause]:
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                part = "version " if field == "apiVersion" else ""
                fault = f"{part}must not be empty"
                yield invalid_value(f"metadata.ownerReferences.{field}", "", fault)
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            problem = "/v1, Kind=Event is disallowed from being an owner"
            yield invalid_value("metadata.ownerReferences", owner, problem)
    path, controllers = "metadata.ownerReferences", []
    for owner in owners:
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    for other in controllers[1:]:
        found = f'Found "true" in references for {controllers[0]} and {other}'
        fault = f"Only one reference can have Controller set to true. {found}"
        yield invalid_value(path, owners, fault)


def _finalizer_causes(finalizers: Sequence[str], storage: str) -> Iterator[Cause]:
    for name in finalizers:
        for fault in () if is_qualified_name(name) else key_faults(name):
            yield invalid_value("metadata.finalizers", name, fault)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, problem)
    needs_domain = storage in _CHECKS and storage not in (
        *_FREE_NAMES,
        "leases.coordination.k8s.io",
    )
    for i, name in enumerate(finalizers if needs_domain else ()):
        if "/" not in name and name not in _FINALIZERS:
            problem = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{i}]", name, problem)


def create_causes(storage: str, tree: Tree, is_checked: bool = False) -> Iterator[Cause]:
    """Yield the faults of a new object; of its metadata only, where the rest was checked before."""
    yield from metadata_causes(storage, tree["metadata"])
    yield from () if is_checked else _object_causes(storage, tree)
    yield from _NEW[storage](tree) if storage in _NEW else ()


def _object_causes(storage: str, tree: Tree) -> Iterator[Cause]:
    check = _CHECKS.get(storage)
    if check is not None:
        yield from check(tree)


def update_causes(storage: str, kind: str, tree: Tree, old: Tree) -> Iterator[Cause]:
    """Yield the faults of a changed object, or of the change."""
    yield from metadata_causes(storage, tree["metadata"])
    yield from _object_causes(storage, tree)
    yield from immutable_causes(kind, tree, old)
    if storage in _BINDINGS:
        yield from role_ref_causes(tree, old)


def status_causes(storage: str, tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a status that a client wrote."""
    status = tree.get("status") or {}
    is_claim = storage == "resourceclaims.resource.k8s.io"
    if is_claim and status.get("reservedFor") and not status.get("allocation"):
        problem = "may not be specified when `allocated` is not set"
        yield forbidden_field("status.reservedFor", problem)


_BINDINGS = (f"clusterrolebindings.{GROUP}", f"rolebindings.{GROUP}")
_CHECKS: dict[str, Callable[[Tree], Iterator[Cause]]] = {
    "apiservices.apiregistration.k8s.io": extension_rules.api_service_causes,
    f"clusterrolebindings.{GROUP}": partial(binding_causes, is_namespaced=False),
    f"clusterroles.{GROUP}": partial(role_causes, is_namespaced=False),
    "configmaps": data_rules.config_map_causes,
    "cronjobs.batch": job_rules.cron_job_causes,
    "csidrivers.storage.k8s.io": storage_rules.csi_driver_causes,
    "csinodes.storage.k8s.io": storage_rules.csi_node_causes,
    "daemonsets.apps": workload_rules.daemon_set_causes,
    "deployments.apps": workload_rules.deployment_causes,
    "endpointslices.discovery.k8s.io": network_rules.endpoint_slice_causes,
    "horizontalpodautoscalers.autoscaling": autoscaler_rules.autoscaler_causes,
    "ingressclasses.networking.k8s.io": network_rules.ingress_class_causes,
    "ingresses.networking.k8s.io": network_rules.ingress_causes,
    "jobs.batch": job_rules.job_causes,
    "leases.coordination.k8s.io": data_rules.lease_causes,
    "limitranges": data_rules.limit_range_causes,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": extension_rules.webhook_causes,
    "networkpolicies.networking.k8s.io": network_rules.network_policy_causes,
    "nodes": data_rules.node_causes,
    "persistentvolumeclaims": claim_causes,
    "persistentvolumes": storage_rules.volume_object_causes,
    "poddisruptionbudgets.policy": autoscaler_rules.budget_causes,
    "pods": pod_rules.pod_causes,
    "priorityclasses.scheduling.k8s.io": data_rules.priority_class_causes,
    "replicasets.apps": workload_rules.replica_set_causes,
    "replicationcontrollers": workload_rules.controller_causes,
    "resourceclaims.resource.k8s.io": device_rules.claim_device_causes,
    "resourceclaimtemplates.resource.k8s.io": device_rules.template_device_causes,
    "resourcequotas": data_rules.quota_causes,
    f"rolebindings.{GROUP}": partial(binding_causes, is_namespaced=True),
    f"roles.{GROUP}": partial(role_causes, is_namespaced=True),
    "runtimeclasses.node.k8s.io": data_rules.runtime_class_causes,
    "secrets": data_rules.secret_causes,
    "services": service_rules.service_causes,
    "statefulsets.apps": workload_rules.stateful_set_causes,
    "storageclasses.storage.k8s.io": storage_rules.storage_class_causes,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": extension_rules.webhook_causes,
    "volumeattachments.storage.k8s.io": storage_rules.attachment_causes,
}
"""The rules of each kind, for new and for changed objects."""
_NEW: dict[str, Callable[[Tree], Iterator[Cause]]] = {"pods": pod_rules.new_pod_causes}
"""Rules that changed objects are not judged by."""
