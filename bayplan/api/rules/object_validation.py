"""Object validation: invalid fields and forbidden changes of an object, as causes of an error; faults of a new one.

Mirrors pkg/apis/*/validation, as far as a consistent cluster needs it. Fields that affect placement
are checked by `object_faults.py` when the object is decoded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..schema.input_check import unknown_fields
from ..schema.unknown import schema_type
from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
)
from ..wire.kinds import group_of, resource_name
from . import (
    data_rules,
    device_rules,
    job_rules,
    network_rules,
    pod_rules,
    storage_rules,
    workload_rules,
)
from .data_rules import GROUP, check_binding, check_role, check_role_ref
from .field_causes import Cause, Part, Tree
from .field_defaults import apply_defaults
from .immutable import immutable_causes
from .label_rules import check_annotations, check_labels
from .volume_rules import check_claim_spec

_LABELLED = frozenset({"namespaces", "services", "statefulsets.apps"})
_BINDINGS = (f"clusterrolebindings.{GROUP}", f"rolebindings.{GROUP}")
_FREE_NAMES = frozenset({*_BINDINGS, f"clusterroles.{GROUP}", f"roles.{GROUP}"})
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def metadata_causes(storage: str, tree: Tree) -> list[Cause]:
    """The faults of an object's name, labels, annotations and owners."""
    metadata, prefix = Part(tree, "metadata"), str(tree.get("generateName") or "")
    # A hyphen at its end is followed by random letters.
    whole = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    for fault in _name_faults(storage, whole) if prefix else ():
        metadata.invalid("generateName", fault)
    metadata.needs("name", problem="name or generateName is required")
    metadata.text("name", partial(_name_faults, storage))
    check_labels(metadata, "labels")
    check_annotations(metadata, "annotations")
    _check_owners(metadata)
    _check_finalizers(metadata, storage)
    return metadata.causes


def _name_faults(storage: str, name: str) -> tuple[str, ...]:
    if storage in _FREE_NAMES:
        return path_segment_faults(name)
    return dns_label_faults(name) if storage in _LABELLED else subdomain_faults(name)


def _check_owners(metadata: Part) -> None:
    owners: Sequence[Tree] = metadata.get("ownerReferences") or ()
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                fault = f"{'version ' if field == 'apiVersion' else ''}must not be empty"
                metadata.invalid(f"ownerReferences.{field}", fault, "")
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            problem = "/v1, Kind=Event is disallowed from being an owner"
            metadata.invalid("ownerReferences", problem, owner)
    controllers = [
        f"{one.get('kind')}/{one.get('name')}" for one in owners if one.get("controller")
    ]
    for other in controllers[1:]:
        found = f'Found "true" in references for {controllers[0]} and {other}'
        fault = f"Only one reference can have Controller set to true. {found}"
        metadata.invalid("ownerReferences", fault)


def _check_finalizers(metadata: Part, storage: str) -> None:
    finalizers = metadata.get("finalizers") or ()
    for name in finalizers:
        metadata.check("finalizers", key_faults, name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        metadata.invalid("finalizers", problem)
    if storage not in _CHECKS or storage in (*_FREE_NAMES, "leases.coordination.k8s.io"):
        return
    for field, name in metadata.items("finalizers"):
        if "/" not in name and name not in _FINALIZERS:
            problem = "name is neither a standard finalizer name nor is it fully qualified"
            metadata.invalid(field, problem, name)


def create_causes(storage: str, tree: Tree, is_checked: bool = False) -> list[Cause]:
    """The faults of a new object; of its metadata only, where the rest was checked before."""
    new = Part(tree, causes=metadata_causes(storage, tree["metadata"]))
    if storage in _CHECKS and not is_checked:
        _CHECKS[storage](new)
    if storage == "pods":
        pod_rules.check_new_pod(new)
    return new.causes


def update_causes(storage: str, kind: str, tree: Tree, old: Tree) -> list[Cause]:
    """The faults of a changed object, or of the change."""
    new = Part(tree, causes=metadata_causes(storage, tree["metadata"]))
    if storage in _CHECKS:
        _CHECKS[storage](new)
    new.causes.extend(immutable_causes(kind, tree, old))
    if storage in _BINDINGS:
        check_role_ref(new, old)
    return new.causes


def status_causes(storage: str, tree: Tree) -> list[Cause]:
    """The faults of a status that a client wrote."""
    status = Part(tree).below("status")
    is_claim = storage == "resourceclaims.resource.k8s.io"
    if is_claim and status.get("reservedFor") and not status.get("allocation"):
        status.forbidden("reservedFor", "may not be specified when `allocated` is not set")
    return status.causes


def _of_spec(check: Callable[[Part], None]) -> Callable[[Part], None]:
    return lambda new: check(new.below("spec"))


_CHECKS: dict[str, Callable[[Part], None]] = {
    "apiservices.apiregistration.k8s.io": data_rules.check_api_service,
    f"clusterrolebindings.{GROUP}": partial(check_binding, is_namespaced=False),
    f"clusterroles.{GROUP}": partial(check_role, is_namespaced=False),
    "configmaps": data_rules.check_config_map,
    "cronjobs.batch": job_rules.check_cron_job,
    "csidrivers.storage.k8s.io": storage_rules.check_csi_driver,
    "csinodes.storage.k8s.io": storage_rules.check_csi_node,
    "daemonsets.apps": workload_rules.check_daemon_set,
    "deployments.apps": workload_rules.check_deployment,
    "endpointslices.discovery.k8s.io": network_rules.check_endpoint_slice,
    "horizontalpodautoscalers.autoscaling": workload_rules.check_autoscaler,
    "ingressclasses.networking.k8s.io": network_rules.check_ingress_class,
    "ingresses.networking.k8s.io": network_rules.check_ingress,
    "jobs.batch": job_rules.check_job,
    "leases.coordination.k8s.io": data_rules.check_lease,
    "limitranges": data_rules.check_limit_range,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": data_rules.check_webhooks,
    "networkpolicies.networking.k8s.io": network_rules.check_network_policy,
    "nodes": data_rules.check_node,
    "persistentvolumeclaims": _of_spec(check_claim_spec),
    "persistentvolumes": storage_rules.check_volume,
    "poddisruptionbudgets.policy": workload_rules.check_budget,
    "pods": pod_rules.check_pod,
    "priorityclasses.scheduling.k8s.io": data_rules.check_priority_class,
    "replicasets.apps": workload_rules.check_replica_set,
    "replicationcontrollers": workload_rules.check_controller,
    "resourceclaims.resource.k8s.io": _of_spec(device_rules.check_claim_spec),
    "resourceclaimtemplates.resource.k8s.io": _of_spec(_of_spec(device_rules.check_claim_spec)),
    "resourcequotas": data_rules.check_quota,
    f"rolebindings.{GROUP}": partial(check_binding, is_namespaced=True),
    f"roles.{GROUP}": partial(check_role, is_namespaced=True),
    "runtimeclasses.node.k8s.io": data_rules.check_runtime_class,
    "secrets": data_rules.check_secret,
    "services": network_rules.check_service,
    "statefulsets.apps": workload_rules.check_stateful_set,
    "storageclasses.storage.k8s.io": storage_rules.check_storage_class,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": data_rules.check_webhooks,
    "volumeattachments.storage.k8s.io": storage_rules.check_attachment,
}
"""The rules of each kind, for new and for changed objects."""


def storage_of(api_version: str, kind: str) -> str:
    """The name of the storage of a built-in kind: `deployments.apps`; empty for other kinds."""
    return resource_name(api_version, kind) if schema_type(api_version, kind) else ""


def creation_causes(api_version: str, kind: str, tree: Mapping[str, Any]) -> list[Cause]:
    """The faults of a new object of a built-in kind; WrongTypeError if a value is not of the type of its field.

    Definitions of custom resources have rules of their own, which are not part of this.
    """
    storage = storage_of(api_version, kind)
    if not storage or storage == _DEFINITIONS:
        return []
    unknown_fields(tree, schema_type(api_version, kind))
    whole = copy.deepcopy({**tree, "apiVersion": api_version, "kind": kind})
    metadata = _named(whole)
    apply_defaults(storage, whole)
    whole["metadata"] = {**metadata, **whole["metadata"]}
    return create_causes(storage, whole)


def name_causes(api_version: str, kind: str, metadata: Mapping[str, Any]) -> list[Cause]:
    """The faults of the metadata of an object whose other fields were checked before."""
    return metadata_causes(storage_of(api_version, kind), _named({"metadata": dict(metadata)}))


def _named(tree: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a tree, with a name where the server would make one."""
    metadata = tree["metadata"] = dict(tree.get("metadata") or {})
    prefix = metadata.get("generateName")
    if not metadata.get("name") and prefix:
        metadata["name"] = f"{str(prefix)[:58]}xxxxx"
    return metadata


def refusal_text(api_version: str, kind: str, name: str, causes: Sequence[Cause]) -> str:
    """kube-apiserver's message: `Deployment.apps "web" is invalid: ...`."""
    group = group_of(api_version)
    found = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    return f'{f"{kind}.{group}" if group else kind} "{name}" is invalid: {listed}'
