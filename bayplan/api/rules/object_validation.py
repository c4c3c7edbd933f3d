"""Object validation: invalid fields and forbidden changes of an object, as causes of an error.

Mirrors pkg/apis/*/validation, as far as a consistent cluster needs it. Fields that affect placement
are checked by `api.validate` when the object is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..resources import is_extended, is_hugepages
from ..text.name_faults import (
    dns_label_faults,
    key_faults,
    path_segment_faults,
    subdomain_faults,
    value_faults,
)
from ..text.names import is_label_value, is_qualified_name
from ..text.quantity import ExactAmount, parse_quantity
from . import address_rules, field_rules
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from .group_rules import member_causes
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
RESTART_POLICIES = ("Always", "OnFailure", "Never")


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
    path, controllers = "metadata.ownerReferences", []
    for owner in owners:
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    for other in controllers[1:]:
        found = f'Found "true" in references for {controllers[0]} and {other}'
        fault = f"Only one reference can have Controller set to true. {found}"
        yield invalid_value(path, owners, fault)


def create_causes(storage: str, tree: Tree, is_checked: bool = False) -> Iterator[Cause]:
    """Yield the faults of a new object; of its metadata only, where the rest was checked before."""
    yield from metadata_causes(storage, tree["metadata"])
    check = None if is_checked else _CHECKS.get(storage)
    if check is not None:
        yield from check(tree)


def update_causes(storage: str, kind: str, tree: Tree, old: Tree) -> Iterator[Cause]:
    """Yield the faults of a changed object, or of the change."""
    yield from create_causes(storage, tree)
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


# Pods


def pod_spec_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the spec of a pod or of a template."""
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(field) or ()):
            yield from _container_causes(container, f"{path}.{field}[{i}]", names)
    policy = str(spec.get("restartPolicy") or "")
    if policy not in RESTART_POLICIES:
        yield unsupported_value(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    yield from member_causes(spec, path)
    yield from field_rules.spec_causes(spec, path)
    yield from field_rules.host_port_causes(spec, path, is_pod=path == "spec")
    yield from address_rules.pod_address_causes(spec, path)
    volumes: set[str] = set()
    for i, volume in enumerate(spec.get("volumes") or ()):
        name = str(volume.get("name") or "")
        if not name:
            yield required(f"{path}.volumes[{i}].name")
        elif name in volumes:
            yield duplicate(f"{path}.volumes[{i}].name", name)
        volumes.add(name)


def _container_causes(container: Tree, path: str, names: set[str]) -> Iterator[Cause]:
    name = str(container.get("name") or "")
    if not name:
        yield required(f"{path}.name")
    for fault in dns_label_faults(name) if name else ():
        yield invalid_value(f"{path}.name", name, fault)
    if name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _resource_causes(container.get("resources") or {}, f"{path}.resources")


def _resource_causes(resources: Tree, path: str) -> Iterator[Cause]:
    limits = resources.get("limits") or {}
    for name, wanted in (resources.get("requests") or {}).items():
        if name not in limits and (is_extended(name) or is_hugepages(name)):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        if name not in limits or wanted == limits[name]:
            continue
        try:
            too_much = parse_quantity(wanted) > parse_quantity(limits[name])
        except ValueError:
            continue  # the decoder reports its fault
        if too_much:
            yield invalid_value(
                f"{path}.requests",
                str(ExactAmount.of(wanted)),
                f"must be less than or equal to {name} limit of {ExactAmount.of(limits[name])}",
            )


def _check_pod(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    yield from pod_spec_causes(spec, "spec")
    yield from field_rules.mount_causes(spec, "spec")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden_field(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


# Workloads


def _check_workload(tree: Tree, is_daemon: bool = False) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        yield invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if not selector and not is_daemon:
        yield required("spec.selector")
    if not selector or not _selects(selector, labels or {}):
        yield invalid_value(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )
    yield from pod_spec_causes(template.get("spec") or {}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy in ("Never", "OnFailure"):
        yield unsupported_value("spec.template.spec.restartPolicy", policy, ("Always",))


def _check_daemon_set(tree: Tree) -> Iterator[Cause]:
    return _check_workload(tree, is_daemon=True)


def _selects(selector: Tree, labels: Mapping[str, str]) -> bool:
    pairs = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in pairs.items())


def _check_controller(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    elif any(labels.get(key) != value for key, value in selector.items()):
        yield invalid_value(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )
    yield from pod_spec_causes(template.get("spec") or {}, "spec.template.spec")


def _check_job(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    for name in ("parallelism", "completions", "backoffLimit"):
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid_value(f"spec.{name}", value, "must be greater than or equal to 0")
    if spec.get("completionMode") == "Indexed":
        yield from field_rules.indexed_job_causes(spec, "spec")
    template = (spec.get("template") or {}).get("spec") or {}
    yield from _run_causes(template, "spec.template.spec")


def _check_cron_job(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    words = ("Allow", "Forbid", "Replace")
    yield from field_rules.word_causes(spec, "concurrencyPolicy", words, "spec")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    template = (job.get("template") or {}).get("spec") or {}
    yield from _run_causes(template, "spec.jobTemplate.spec.template.spec")


def _run_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the spec of a template whose pods end."""
    yield from pod_spec_causes(spec, path)
    yield from field_rules.mount_causes(spec, path)
    if spec.get("restartPolicy") == "Always":
        yield required(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')


# Others


def _check_claim(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        yield required("spec.resources[storage]")


def _check_volume(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    if not spec.get("capacity"):
        yield required("spec.capacity")


def _check_service(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    headless = spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"
    if not spec.get("ports") and not headless:
        yield required("spec.ports")
    for i, port in enumerate(spec.get("ports") or ()):
        number = port.get("port")
        if not isinstance(number, int) or not 0 < number < 65536:
            yield invalid_value(
                f"spec.ports[{i}].port", number, "must be between 1 and 65535, inclusive"
            )


def _check_storage_class(tree: Tree) -> Iterator[Cause]:
    if not tree.get("provisioner"):
        yield required("provisioner")


def _check_lease(tree: Tree) -> Iterator[Cause]:
    seconds = (tree.get("spec") or {}).get("leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")


def _check_budget(tree: Tree) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid_value("spec", "", "minAvailable and maxUnavailable cannot be both set")


def _all_of(*checks: Callable[[Tree], Iterator[Cause]]) -> Callable[[Tree], Iterator[Cause]]:
    return lambda tree: (cause for check in checks for cause in check(tree))


_BINDINGS = (f"clusterrolebindings.{GROUP}", f"rolebindings.{GROUP}")
_CHECKS: dict[str, Callable[[Tree], Iterator[Cause]]] = {
    f"clusterrolebindings.{GROUP}": partial(binding_causes, is_namespaced=False),
    f"clusterroles.{GROUP}": partial(role_causes, is_namespaced=False),
    "configmaps": field_rules.key_causes,
    "cronjobs.batch": _check_cron_job,
    "daemonsets.apps": _all_of(_check_daemon_set, field_rules.template_mount_causes),
    "deployments.apps": _all_of(
        _check_workload, field_rules.template_mount_causes, field_rules.deployment_causes
    ),
    "endpointslices.discovery.k8s.io": address_rules.slice_address_causes,
    "horizontalpodautoscalers.autoscaling": field_rules.autoscaler_causes,
    "ingresses.networking.k8s.io": field_rules.ingress_causes,
    "jobs.batch": _check_job,
    "leases.coordination.k8s.io": _check_lease,
    "limitranges": field_rules.limit_range_causes,
    "networkpolicies.networking.k8s.io": _all_of(
        address_rules.policy_block_causes, field_rules.network_policy_causes
    ),
    "nodes": address_rules.node_block_causes,
    "persistentvolumeclaims": _all_of(_check_claim, field_rules.claim_causes),
    "persistentvolumes": _all_of(_check_volume, field_rules.mount_option_causes),
    "poddisruptionbudgets.policy": _check_budget,
    "pods": _check_pod,
    "priorityclasses.scheduling.k8s.io": field_rules.priority_class_causes,
    "replicasets.apps": _all_of(_check_workload, field_rules.template_mount_causes),
    "replicationcontrollers": _check_controller,
    f"rolebindings.{GROUP}": partial(binding_causes, is_namespaced=True),
    f"roles.{GROUP}": partial(role_causes, is_namespaced=True),
    "secrets": field_rules.key_causes,
    "services": _all_of(
        _check_service, address_rules.service_address_causes, field_rules.service_causes
    ),
    "statefulsets.apps": _all_of(_check_workload, field_rules.stateful_set_causes),
    "storageclasses.storage.k8s.io": _check_storage_class,
}
