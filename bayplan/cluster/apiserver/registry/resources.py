"""Resources: all served resources, by group, version and plural name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

STORED_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


class ApiResource(msgspec.Struct, frozen=True):
    """One kind of object in one version of the API."""

    group: str
    version: str
    kind: str
    plural: str
    schema: str
    """The name of its type in the table of fields."""
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    has_status: bool = False
    has_generation: bool = False
    is_graceful: bool = False
    scale: str = ""
    """Path of the number of replicas, for scalable resources."""
    fields: tuple[str, ...] = ()
    """Supported field selectors, besides name and namespace."""
    is_review: bool = False
    """Whether it is a review, answered and not stored."""
    stored_as: str = ""
    """The resource under which the objects are stored, when it is another one."""
    verbs: tuple[str, ...] = STORED_VERBS

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name in errors: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> str:
        """The name under which its objects are stored."""
        return self.stored_as or self.name

    def field_index(self, name: str) -> int:
        """The path in stored records of the field that selectors call `name`; versions may differ."""
        if self.stored_as:
            name = _EVENT_NAMES.get(name, name)
            return BY_STORAGE[self.stored_as].fields.index(name)
        return self.fields.index(name)

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def head(self) -> bytes:
        """The beginning of the JSON of an object, before its own fields."""
        return b'{"kind":"%s","apiVersion":"%s",' % (self.kind.encode(), self.api_version.encode())


POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_EVENT_NAMES = {
    name.replace("involvedObject.", "regarding.").replace("Component", "Controller"): name
    for name in EVENT_FIELDS
    if name != "source"
}
REGARDING_FIELDS = tuple(_EVENT_NAMES)
ALL = ("all",)


def _core(kind: str, plural: str, *short_names: str, **more: Any) -> ApiResource:
    return ApiResource("", "v1", kind, plural, f"core.v1.{kind}", short_names=short_names, **more)


def _grouped(
    group: str, kind: str, plural: str, *short_names: str, version: str = "v1", **more: Any
) -> ApiResource:
    schema = f"{group.partition('.')[0]}.{version}.{kind}"
    return ApiResource(group, version, kind, plural, schema, short_names=short_names, **more)


def _workload(kind: str, plural: str, short_name: str, *more_subresources: str) -> ApiResource:
    return _grouped(
        "apps",
        kind,
        plural,
        short_name,
        categories=ALL,
        subresources=("status", *more_subresources),
        has_status=True,
        has_generation=True,
        scale="spec.replicas" if "scale" in more_subresources else "",
        fields=("status.replicas",) if kind == "ReplicaSet" else (),
    )


CLUSTER: dict[str, Any] = {"is_namespaced": False}
STATUS: dict[str, Any] = {"has_status": True, "subresources": ("status",)}
REVIEW: dict[str, Any] = {"is_review": True, "verbs": ("create",)}

CORE = (
    _core("ConfigMap", "configmaps", "cm"),
    _core("Endpoints", "endpoints", "ep"),
    _core("Event", "events", "ev", fields=EVENT_FIELDS),
    _core("LimitRange", "limitranges", "limits"),
    _core(
        "Namespace",
        "namespaces",
        "ns",
        has_status=True,
        subresources=("status", "finalize"),
        fields=("status.phase",),
        **CLUSTER,
    ),
    _core("Node", "nodes", "no", fields=("spec.unschedulable",), **CLUSTER, **STATUS),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", **STATUS),
    _core("PersistentVolume", "persistentvolumes", "pv", **CLUSTER, **STATUS),
    _core(
        "Pod",
        "pods",
        "po",
        categories=ALL,
        has_status=True,
        has_generation=True,
        is_graceful=True,
        subresources=("status", "binding", "eviction"),
        fields=POD_FIELDS,
    ),
    _core("PodTemplate", "podtemplates", has_generation=True),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        categories=ALL,
        has_status=True,
        has_generation=True,
        subresources=("status", "scale"),
        scale="spec.replicas",
        fields=("status.replicas",),
    ),
    _core("ResourceQuota", "resourcequotas", "quota", **STATUS),
    _core("Secret", "secrets", fields=("type",)),
    _core("ServiceAccount", "serviceaccounts", "sa"),
    _core(
        "Service",
        "services",
        "svc",
        categories=ALL,
        fields=("spec.clusterIP", "spec.type"),
        **STATUS,
    ),
    _core("Binding", "bindings", verbs=("create",)),
)
APPS = (
    _grouped("apps", "ControllerRevision", "controllerrevisions"),
    _workload("DaemonSet", "daemonsets", "ds"),
    _workload("Deployment", "deployments", "deploy", "scale"),
    _workload("ReplicaSet", "replicasets", "rs", "scale"),
    _workload("StatefulSet", "statefulsets", "sts", "scale"),
)
OTHERS = (
    _grouped(
        "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", **CLUSTER, **REVIEW
    ),
    _grouped("authentication.k8s.io", "TokenReview", "tokenreviews", **CLUSTER, **REVIEW),
    _grouped(
        "authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", **REVIEW
    ),
    _grouped(
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        **CLUSTER,
        **REVIEW,
    ),
    _grouped(
        "authorization.k8s.io",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        **CLUSTER,
        **REVIEW,
    ),
    _grouped(
        "authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", **CLUSTER, **REVIEW
    ),
    _grouped("batch", "CronJob", "cronjobs", "cj", categories=ALL, has_generation=True, **STATUS),
    _grouped(
        "batch",
        "Job",
        "jobs",
        categories=ALL,
        has_generation=True,
        fields=("status.successful",),
        **STATUS,
    ),
    _grouped("coordination.k8s.io", "Lease", "leases"),
    _grouped("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    _grouped("events.k8s.io", "Event", "events", "ev", stored_as="events", fields=REGARDING_FIELDS),
    _grouped("node.k8s.io", "RuntimeClass", "runtimeclasses", **CLUSTER),
    _grouped(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        has_generation=True,
        **STATUS,
    ),
    _grouped("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", **CLUSTER),
    _grouped("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", **CLUSTER),
    _grouped("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
    _grouped("rbac.authorization.k8s.io", "Role", "roles"),
    _grouped("resource.k8s.io", "DeviceClass", "deviceclasses", has_generation=True, **CLUSTER),
    _grouped(
        "resource.k8s.io",
        "DeviceTaintRule",
        "devicetaintrules",
        version="v1beta2",
        has_generation=True,
        **CLUSTER,
        **STATUS,
    ),
    _grouped("resource.k8s.io", "ResourceClaim", "resourceclaims", **STATUS),
    _grouped("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _grouped(
        "resource.k8s.io",
        "ResourceSlice",
        "resourceslices",
        fields=("spec.nodeName", "spec.driver"),
        has_generation=True,
        **CLUSTER,
    ),
    _grouped(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        "pc",
        has_generation=True,
        **CLUSTER,
    ),
    _grouped(
        "scheduling.k8s.io",
        "PodGroup",
        "podgroups",
        version="v1alpha2",
        **STATUS,
    ),
    _grouped("scheduling.k8s.io", "Workload", "workloads", version="v1alpha2"),
    _grouped("storage.k8s.io", "CSIDriver", "csidrivers", has_generation=True, **CLUSTER),
    _grouped("storage.k8s.io", "CSINode", "csinodes", **CLUSTER),
    _grouped("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities"),
    _grouped("storage.k8s.io", "StorageClass", "storageclasses", "sc", **CLUSTER),
    _grouped("storage.k8s.io", "VolumeAttachment", "volumeattachments", **CLUSTER, **STATUS),
    _grouped(
        "storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", "vac", **CLUSTER
    ),
)

RESOURCES: tuple[ApiResource, ...] = (*CORE, *APPS, *OTHERS)
BY_PATH: Mapping[tuple[str, str, str], ApiResource] = {
    (resource.group, resource.version, resource.plural): resource for resource in RESOURCES
}
BY_STORAGE: Mapping[str, ApiResource] = {
    resource.name: resource for resource in RESOURCES if not resource.stored_as
}
BY_KIND: Mapping[tuple[str, str], ApiResource] = {
    (resource.group, resource.kind): resource for resource in RESOURCES
}


def group_versions(resources: Iterable[ApiResource] = RESOURCES) -> dict[str, list[str]]:
    """The versions of each group of `resources`, preferred first; the core group is ""."""
    found: dict[str, list[str]] = {}
    for resource in resources:
        versions = found.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    return found


def selectable_fields(storage: str, tree: Mapping[str, Any]) -> tuple[str, ...]:
    """The values for field selectors, in the order of the resource's `fields`."""
    readers = _READERS.get(storage)
    return tuple([read(tree) for read in readers]) if readers else ()


Reader = Callable[[Mapping[str, Any]], str]


def _reader(path: str) -> Reader:
    """The value at a path, as selectors compare it."""
    if path in _SPECIAL:
        return _SPECIAL[path]
    steps, empty = path.split("."), _EMPTY.get(path, "")
    parents, last = steps[:-1], steps[-1]

    def read(tree: Mapping[str, Any]) -> str:
        found: Any = tree
        for step in parents:
            found = found.get(step)
            if not found:
                return empty
        value = found.get(last)
        if isinstance(value, str):
            return value
        if value is None:
            return empty
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _event_source(tree: Mapping[str, Any]) -> str:
    source = (tree.get("source") or {}).get("component") or tree.get("reportingComponent")
    return str(source or "")


def _successes(tree: Mapping[str, Any]) -> str:
    return str((tree.get("status") or {}).get("succeeded") or 0)


_SPECIAL: Mapping[str, Reader] = {"source": _event_source, "status.successful": _successes}
_EMPTY = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"}
_READERS: Mapping[str, list[Reader]] = {
    storage: [_reader(name) for name in resource.fields]
    for storage, resource in BY_STORAGE.items()
    if resource.fields
}
