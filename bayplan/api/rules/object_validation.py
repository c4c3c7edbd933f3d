"""Object validation: invalid fields and forbidden changes of an object, as causes of an error.

Mirrors pkg/apis/*/validation, as far as a consistent cluster needs it. Fields that affect placement
are checked by `object_faults.py` when the object is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
)
from . import (
    autoscaler_rules,
    data_rules,
    device_rules,
    job_rules,
    network_rules,
    pod_rules,
    service_rules,
    storage_rules,
    workload_rules,
)
from .claim_rules import check_claim_spec
from .field_causes import Cause, Part, Tree
from .immutable import immutable_causes
from .label_rules import check_annotations, check_labels
from .rbac_rules import GROUP, check_binding, check_role, check_role_ref

_LABELLED = frozenset({"namespaces", "services", "statefulsets.apps"})
_BINDINGS = (f"clusterrolebindings.{GROUP}", f"rolebindings.{GROUP}")
_FREE_NAMES = frozenset({*_BINDINGS, f"clusterroles.{GROUP}", f"roles.{GROUP}"})
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


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
    "horizontalpodautoscalers.autoscaling": autoscaler_rules.check_autoscaler,
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
    "poddisruptionbudgets.policy": autoscaler_rules.check_budget,
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
    "services": service_rules.check_service,
    "statefulsets.apps": workload_rules.check_stateful_set,
    "storageclasses.storage.k8s.io": storage_rules.check_storage_class,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": data_rules.check_webhooks,
    "volumeattachments.storage.k8s.io": storage_rules.check_attachment,
}
"""The rules of each kind, for new and for changed objects."""
