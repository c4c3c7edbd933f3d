"""Printer columns: the columns of `kubectl get`, kind by kind.

A column is a heading with a path, or with the function that computes its cells. The path may be preceded by `+` (a
number, 0 without a value), `?` (whether it is true) or `#` (the number of its values); the text after ` or ` is
printed without a value; `Age` has no path. A heading with `*` is printed with `-o wide` only. The name comes first,
unless a column is called so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from ...api.text.json_path import parse_json_path
from ..registry.custom.versions import CustomVersion, PrinterColumn
from ..registry.resource_table import ApiResource
from ..store.records import Record
from . import cells
from .cells import Cell, Tree

Column = str | tuple[str, Cell]
NAME = "Name"
PLAIN: Sequence[Column] = ("Age",)
_CREATED = ("Created_At .metadata.creationTimestamp",)
_POLICY = ("ParamKind .spec.paramKind.kind or <unset>", "Age")
_BINDING = ("PolicyName .spec.policyName", "ParamRef .spec.paramRef.name or <unset>", "Age")
_WEBHOOKS = ("Webhooks #.webhooks[*]", "Age")
_PARENT, _NAMES = ("spec", "parentRef"), ("group", "resource", "namespace", "name")
_CONTAINERS = (
    "*Containers .spec.template.spec.containers[*].name or <none>",
    "*Images .spec.template.spec.containers[*].image or <none>",
)
_WORKLOAD = (*_CONTAINERS, ("*Selector", cells.selector_at("spec", "selector")))
_REPLICAS = (
    *("Desired +.spec.replicas", "Current +.status.replicas", "Ready +.status.readyReplicas"),
    *("Age", *_WORKLOAD),
)
_ROLE_BINDING = (
    *(("Role", cells.reference_at("roleRef")), "Age", ("*Users", cells.subjects("User"))),
    ("*Groups", cells.subjects("Group")),
    ("*ServiceAccounts", cells.subjects("ServiceAccount")),
)


def _path_cell(column: str) -> Cell:
    form, otherwise = column[0], column.partition(" or ")[2]
    text = column.partition(" or ")[0].lstrip("+?#")
    if "[" in text:
        find = parse_json_path(text).find
        if form == "#":
            return lambda tree, now: len(find(tree))
        return lambda tree, now: ",".join(map(str, find(tree))) or otherwise
    steps = text[1:].split(".")
    if form == "+":
        return lambda tree, now: int(cells.at(tree, *steps) or 0)
    if form == "?":
        return lambda tree, now: bool(cells.at(tree, *steps))

    def cell(tree: Tree, now: datetime) -> str:
        value = cells.at(tree, *steps)
        return otherwise if value is None else str(value) or otherwise

    return cell


COLUMNS: Mapping[str, Sequence[Column]] = {
    "apiservices.apiregistration.k8s.io": (
        "Service .spec.service.name or Local",
        'Available .status.conditions[?(@.type=="Available")].status or Unknown',
        "Age",
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        "Age",
        "SignerName .spec.signerName",
        "Requestor .spec.username",
        "RequestedDuration .spec.expirationSeconds or <none>",
        "Condition .status.conditions[*].type or Pending",
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "clusterroles.rbac.authorization.k8s.io": _CREATED,
    "componentstatuses": (
        'Status .conditions[?(@.type=="Healthy")].status',
        'Message .conditions[?(@.type=="Healthy")].message',
        'Error .conditions[?(@.type=="Healthy")].error',
    ),
    "configmaps": (("Data", cells.config_map_size), "Age"),
    "controllerrevisions.apps": (
        "Controller .metadata.ownerReferences[?(@.controller==true)].name or <none>",
        "Revision .revision",
        "Age",
    ),
    "cronjobs.batch": (
        "Schedule .spec.schedule",
        "Timezone .spec.timeZone or <none>",
        ("Suspend", lambda tree, now: str(bool(cells.at(tree, "spec", "suspend")))),
        "Active #.status.active[*]",
        ("Last_Schedule", cells.cron_job_last),
        "Age",
        "*Containers .spec.jobTemplate.spec.template.spec.containers[*].name or <none>",
        "*Images .spec.jobTemplate.spec.template.spec.containers[*].image or <none>",
        ("*Selector", cells.selector_at("spec", "jobTemplate", "spec", "selector")),
    ),
    "csidrivers.storage.k8s.io": (
        "AttachRequired ?.spec.attachRequired",
        "PodInfoOnMount ?.spec.podInfoOnMount",
        "StorageCapacity ?.spec.storageCapacity",
        "Modes .spec.volumeLifecycleModes[*] or <none>",
        "Age",
    ),
    "csinodes.storage.k8s.io": ("Drivers #.spec.drivers[*]", "Age"),
    "csistoragecapacities.storage.k8s.io": (
        "StorageClassName .storageClassName",
        "Capacity .capacity",
    ),
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
    "daemonsets.apps": (
        "Desired +.status.desiredNumberScheduled",
        "Current +.status.currentNumberScheduled",
        "Ready +.status.numberReady",
        "Up-to-date +.status.updatedNumberScheduled",
        "Available +.status.numberAvailable",
        ("Node_Selector", cells.labels_at("spec", "template", "spec", "nodeSelector")),
        "Age",
        *_WORKLOAD,
    ),
    "deployments.apps": (
        ("Ready", cells.ready_replicas),
        "Up-to-date +.status.updatedReplicas",
        "Available +.status.availableReplicas",
        "Age",
        *_WORKLOAD,
    ),
    "endpoints": (("Endpoints", cells.endpoints), "Age"),
    "endpointslices.discovery.k8s.io": (
        "AddressType .addressType",
        "Ports .ports[*].port or <unset>",
        "Endpoints .endpoints[*].addresses[*] or <unset>",
        "Age",
    ),
    "events": (
        ("Last_Seen", cells.event_last_seen),
        "Type .type",
        "Reason .reason",
        ("Object", cells.event_object),
        ("Message", lambda tree, now: str(tree.get("message") or "").strip()),
        "*Subobject .involvedObject.fieldPath",
        ("*Source", cells.event_source),
        ("*First_Seen", cells.event_first_seen),
        ("*Count", cells.event_count),
        "*Name .metadata.name",
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        "PriorityLevel .spec.priorityLevelConfiguration.name",
        "MatchingPrecedence .spec.matchingPrecedence",
        "DistinguisherMethod .spec.distinguisherMethod.type or <none>",
        "Age",
        'MissingPL .status.conditions[?(@.type=="Dangling")].status or ?',
    ),
    "horizontalpodautoscalers.autoscaling": (
        ("Reference", cells.reference_at("spec", "scaleTargetRef")),
        ("Targets", cells.autoscaler_metrics),
        "MinPods .spec.minReplicas or <unset>",
        "MaxPods .spec.maxReplicas or None",
        "Replicas .status.currentReplicas or 0",
        "Age",
    ),
    "ingressclasses.networking.k8s.io": (
        "Controller .spec.controller",
        "Parameters .spec.parameters.name or <none>",
        "Age",
    ),
    "ingresses.networking.k8s.io": (
        "Class .spec.ingressClassName or <none>",
        ("Hosts", cells.ingress_hosts),
        ("Address", cells.ingress_addresses),
        ("Ports", lambda tree, now: "80, 443" if cells.at(tree, "spec", "tls") else "80"),
        "Age",
    ),
    "ipaddresses.networking.k8s.io": (("ParentRef", cells.reference_at(*_PARENT, names=_NAMES)),),
    "jobs.batch": (
        ("Status", cells.job_state),
        ("Completions", cells.job_completions),
        ("Duration", cells.job_duration),
        "Age",
        *_WORKLOAD,
    ),
    "leases.coordination.k8s.io": ("Holder .spec.holderIdentity", "Age"),
    "limitranges": _CREATED,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        "Mutations #.spec.mutations[*]",
        *_POLICY,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "namespaces": ("Status .status.phase", "Age"),
    "networkpolicies.networking.k8s.io": (
        ("Pod-Selector", cells.selector_at("spec", "podSelector")),
        "Age",
    ),
    "nodes": (
        ("Status", cells.node_state),
        ("Roles", cells.node_roles),
        "Age",
        "Version .status.nodeInfo.kubeletVersion",
        ("*Internal-IP", cells.node_address("InternalIP")),
        ("*External-IP", cells.node_address("ExternalIP")),
        "*OS-Image .status.nodeInfo.osImage or <unknown>",
        "*Kernel-Version .status.nodeInfo.kernelVersion or <unknown>",
        "*Container-Runtime .status.nodeInfo.containerRuntimeVersion or <unknown>",
    ),
    "persistentvolumeclaims": (
        ("Status", cells.phase),
        "Volume .spec.volumeName",
        ("Capacity", cells.if_bound(_path_cell(".status.capacity.storage"))),
        ("Access_Modes", cells.if_bound(cells.access_modes("status"))),
        "StorageClass .spec.storageClassName",
        "VolumeAttributesClass .spec.volumeAttributesClassName or <unset>",
        "Age",
        "*VolumeMode .spec.volumeMode or <unset>",
    ),
    "persistentvolumes": (
        "Capacity .spec.capacity.storage",
        ("Access_Modes", cells.access_modes("spec")),
        "Reclaim_Policy .spec.persistentVolumeReclaimPolicy",
        ("Status", cells.phase),
        ("Claim", cells.reference_at("spec", "claimRef", names=("namespace", "name"))),
        "StorageClass .spec.storageClassName",
        "VolumeAttributesClass .spec.volumeAttributesClassName or <unset>",
        "Reason .status.reason",
        "Age",
        "*VolumeMode .spec.volumeMode or <unset>",
    ),
    "poddisruptionbudgets.policy": (
        "Min_Available .spec.minAvailable or N/A",
        "Max_Unavailable .spec.maxUnavailable or N/A",
        "Allowed_Disruptions +.status.disruptionsAllowed",
        "Age",
    ),
    "podgroups.scheduling.k8s.io": (
        ("Policy", cells.pod_group_policy),
        ("Workload", cells.pod_group_workload),
        ("Status", cells.pod_group_state),
        "Age",
    ),
    "pods": (
        ("Ready", cells.pod_ready),
        ("Status", cells.pod_reason),
        ("Restarts", cells.pod_restarts),
        "Age",
        "*IP .status.podIP or <none>",
        "*Node .spec.nodeName or <none>",
        "*Nominated_Node .status.nominatedNodeName or <none>",
        ("*Readiness_Gates", cells.pod_gates),
    ),
    "priorityclasses.scheduling.k8s.io": (
        "Value +.value",
        "Global-Default ?.globalDefault",
        "Age",
        "PreemptionPolicy .preemptionPolicy",
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        "Type .spec.type",
        "NominalConcurrencyShares .spec.limited.nominalConcurrencyShares or <none>",
        "Queues .spec.limited.limitResponse.queuing.queues or <none>",
        "HandSize .spec.limited.limitResponse.queuing.handSize or <none>",
        "QueueLengthLimit .spec.limited.limitResponse.queuing.queueLengthLimit or <none>",
        "Age",
    ),
    "replicasets.apps": _REPLICAS,
    "replicationcontrollers": _REPLICAS,
    "resourceclaims.resource.k8s.io": (("State", cells.resource_claim_state), "Age"),
    "resourcequotas": (
        ("Request", cells.quota_use(of_limits=False)),
        ("Limit", cells.quota_use(of_limits=True)),
        "Age",
    ),
    "resourceslices.resource.k8s.io": (
        "Node .spec.nodeName",
        "Driver .spec.driver",
        "Pool .spec.pool.name",
        "Age",
    ),
    "rolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "roles.rbac.authorization.k8s.io": _CREATED,
    "runtimeclasses.node.k8s.io": ("Handler .handler", "Age"),
    "secrets": ("Type .type", "Data #.data[*]", "Age"),
    "servicecidrs.networking.k8s.io": ("CIDRs .spec.cidrs[*]", "Age"),
    "services": (
        "Type .spec.type or ClusterIP",
        "Cluster-IP .spec.clusterIP or <none>",
        ("External-IP", cells.service_external),
        ("Port(s)", cells.service_ports),
        "Age",
        ("*Selector", cells.labels_at("spec", "selector")),
    ),
    "statefulsets.apps": (("Ready", cells.ready_replicas), "Age", *_CONTAINERS),
    "storageclasses.storage.k8s.io": (
        ("Name", cells.storage_class_name),
        "Provisioner .provisioner",
        "ReclaimPolicy .reclaimPolicy or Delete",
        "VolumeBindingMode .volumeBindingMode or Immediate",
        "AllowVolumeExpansion ?.allowVolumeExpansion",
        "Age",
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        "Validations #.spec.validations[*]",
        *_POLICY,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "volumeattachments.storage.k8s.io": (
        "Attacher .spec.attacher",
        "PV .spec.source.persistentVolumeName",
        "Node .spec.nodeName",
        "Attached ?.status.attached",
        "Age",
    ),
    "volumeattributesclasses.storage.k8s.io": ("DriverName .driverName", "Age"),
}


class PrinterColumns(NamedTuple):
    """The definitions of the columns of a table, and the function that makes the cells of an object."""

    definitions: list[dict[str, Any]]
    cells: Callable[[Tree, datetime], Sequence[Any]]


@cache
def columns_of(storage: str) -> PrinterColumns:
    """The columns of a built-in resource."""
    given = COLUMNS.get(storage, PLAIN)
    named = [_named(column) for column in given]
    if all(heading.removeprefix("*") != NAME for heading, _ in named):
        named.insert(0, (NAME, lambda tree, now: tree["metadata"]["name"]))
    definitions = [
        _definition(heading.removeprefix("*"), priority=int(heading.startswith("*")))
        for heading, _ in named
    ]
    makers = [cell for _, cell in named]
    return PrinterColumns(definitions, lambda tree, now: [cell(tree, now) for cell in makers])


def _definition(
    name: str, kind: str = "string", form: str = "", text: str = "", priority: int = 0
) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "format": "name" if name == NAME and not form else form,
        "description": text,
        "priority": priority,
    }


def _named(column: Column) -> tuple[str, Cell]:
    """The heading of a column, and the function for its cells."""
    if not isinstance(column, str):
        return column[0].replace("_", " "), column[1]
    heading, _, rest = column.partition(" ")
    return heading.replace("_", " "), _path_cell(rest) if rest else cells.age


def custom_columns(version: CustomVersion) -> PrinterColumns:
    """The columns of a custom resource."""
    columns = version.columns
    definitions = [
        _definition(NAME, form="name"),
        *(_definition(c.name, c.type, c.format, c.description, c.priority) for c in columns),
    ]
    return PrinterColumns(
        definitions,
        lambda tree, now: [
            tree["metadata"]["name"],
            *(_custom_cell(c, tree, now) for c in columns),
        ],
    )


def _custom_cell(column: PrinterColumn, tree: Tree, now: datetime) -> Any:
    """One cell; None when the value is missing, or of another type than the column.

    Mirrors k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
    """
    value = column.path.first(tree)
    match column.type, value:
        case _, None:
            return None
        case "string", str():
            return value
        case "string", _:
            return cells.go_text(value)
        case "integer", int() | float() if not isinstance(value, bool):
            return int(value)
        case "number", int() | float() if not isinstance(value, bool):
            return float(value)
        case "boolean", bool():
            return value
        case "date", str():
            try:
                return cells.since(value, now)
            except (ValueError, TypeError):
                return "<invalid>"
    return None


def make_table(
    resource: ApiResource, records: Sequence[Record], now: datetime, include_object: str
) -> dict[str, Any]:
    """The table of the objects; each row has the object, its metadata or nothing besides its cells."""
    custom = resource.custom
    definitions, make = columns_of(resource.storage) if custom is None else custom_columns(custom)
    rows = []
    for record in records:
        tree = record.decode()
        row: dict[str, Any] = {"cells": list(make(tree, now.astimezone(UTC)))}
        if include_object == "Object":
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            row["object"] = {**head, **tree}
        elif include_object != "None":
            head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            row["object"] = {**head, "metadata": tree["metadata"]}
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }
