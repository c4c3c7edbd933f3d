"""Object tables: objects in rows of cells, as `kubectl get` prints them.

Mirrors pkg/printers/internalversion/printers.go: the columns of each kind, and which of them are
wide (`-o wide`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from ..registry.custom.versions import CustomVersion
from ..registry.resource_table import ApiResource
from ..store import Record
from . import cells, network_cells
from .column_paths import NAME, PATHS, custom_cells, path_cell

Tree = Mapping[str, Any]


class PrinterColumns(NamedTuple):
    """The headings, those after `wide` for `-o wide` only, and the function that makes the cells of an object."""

    names: tuple[str, ...]
    cells: Callable[[Tree, datetime], Sequence[Any]]
    wide: tuple[str, ...] = ()


def _plain(tree: Tree, now: datetime) -> Sequence[Any]:
    return [tree["metadata"]["name"], cells.age(tree, now)]


def _created(tree: Tree, now: datetime) -> Sequence[Any]:
    return [tree["metadata"]["name"], tree["metadata"].get("creationTimestamp")]


PLAIN = PrinterColumns(("Name", "Age"), _plain)
CREATED = PrinterColumns(("Name", "Created At"), _created)
BINDINGS = PrinterColumns(
    ("Name", "Role", "Age"),
    network_cells.role_binding,
    ("Users", "Groups", "ServiceAccounts"),
)
WORKLOAD = ("Containers", "Images", "Selector")

TABLES: Mapping[str, PrinterColumns] = {
    "configmaps": PrinterColumns(("Name", "Data", "Age"), cells.config_map),
    "clusterroles.rbac.authorization.k8s.io": CREATED,
    "cronjobs.batch": PrinterColumns(
        ("Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age"),
        cells.cron_job,
        WORKLOAD,
    ),
    "csidrivers.storage.k8s.io": PrinterColumns(
        ("Name", "AttachRequired", "PodInfoOnMount", "StorageCapacity", "Modes", "Age"),
        cells.csi_driver,
    ),
    "csinodes.storage.k8s.io": PrinterColumns(("Name", "Drivers", "Age"), cells.csi_node),
    "csistoragecapacities.storage.k8s.io": PrinterColumns(
        ("Name", "StorageClassName", "Capacity"), cells.csi_capacity
    ),
    "daemonsets.apps": PrinterColumns(
        ("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age"),
        cells.daemon_set,
        WORKLOAD,
    ),
    "deployments.apps": PrinterColumns(
        ("Name", "Ready", "Up-to-date", "Available", "Age"), cells.deployment, WORKLOAD
    ),
    "events": PrinterColumns(
        ("Last Seen", "Type", "Reason", "Object", "Message"),
        cells.event,
        ("Subobject", "Source", "First Seen", "Count", "Name"),
    ),
    "endpoints": PrinterColumns(("Name", "Endpoints", "Age"), network_cells.endpoints),
    "horizontalpodautoscalers.autoscaling": PrinterColumns(
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        network_cells.autoscaler,
    ),
    "ingresses.networking.k8s.io": PrinterColumns(
        ("Name", "Class", "Hosts", "Address", "Ports", "Age"), network_cells.ingress
    ),
    "ipaddresses.networking.k8s.io": PrinterColumns(
        ("Name", "ParentRef"), network_cells.ip_address
    ),
    "jobs.batch": PrinterColumns(
        ("Name", "Status", "Completions", "Duration", "Age"), cells.job, WORKLOAD
    ),
    "leases.coordination.k8s.io": PrinterColumns(("Name", "Holder", "Age"), cells.lease),
    "namespaces": PrinterColumns(("Name", "Status", "Age"), cells.namespace),
    "networkpolicies.networking.k8s.io": PrinterColumns(
        ("Name", "Pod-Selector", "Age"), network_cells.network_policy
    ),
    "nodes": PrinterColumns(
        ("Name", "Status", "Roles", "Age", "Version"),
        cells.node,
        ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    "persistentvolumeclaims": PrinterColumns(
        (
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
        ),
        cells.claim,
        ("VolumeMode",),
    ),
    "persistentvolumes": PrinterColumns(
        (
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
        ),
        cells.volume,
        ("VolumeMode",),
    ),
    "poddisruptionbudgets.policy": PrinterColumns(
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"), cells.budget
    ),
    "podgroups.scheduling.k8s.io": PrinterColumns(
        ("Name", "Policy", "Workload", "Status", "Age"), cells.pod_group
    ),
    "pods": PrinterColumns(
        ("Name", "Ready", "Status", "Restarts", "Age"),
        cells.pod,
        ("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    "priorityclasses.scheduling.k8s.io": PrinterColumns(
        ("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"), cells.priority_class
    ),
    "replicasets.apps": PrinterColumns(
        ("Name", "Desired", "Current", "Ready", "Age"), cells.replica_set, WORKLOAD
    ),
    "replicationcontrollers": PrinterColumns(
        ("Name", "Desired", "Current", "Ready", "Age"), cells.replica_set, WORKLOAD
    ),
    "resourceclaims.resource.k8s.io": PrinterColumns(
        ("Name", "State", "Age"), cells.resource_claim
    ),
    "resourceslices.resource.k8s.io": PrinterColumns(
        ("Name", "Node", "Driver", "Pool", "Age"), cells.resource_slice
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": BINDINGS,
    "resourcequotas": PrinterColumns(("Name", "Request", "Limit", "Age"), network_cells.quota),
    "rolebindings.rbac.authorization.k8s.io": BINDINGS,
    "roles.rbac.authorization.k8s.io": CREATED,
    "secrets": PrinterColumns(("Name", "Type", "Data", "Age"), cells.secret),
    "services": PrinterColumns(
        ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"),
        cells.service,
        ("Selector",),
    ),
    "statefulsets.apps": PrinterColumns(
        ("Name", "Ready", "Age"), cells.stateful_set, ("Containers", "Images")
    ),
    "storageclasses.storage.k8s.io": PrinterColumns(
        (
            "Name",
            "Provisioner",
            "ReclaimPolicy",
            "VolumeBindingMode",
            "AllowVolumeExpansion",
            "Age",
        ),
        cells.storage_class,
    ),
    "volumeattachments.storage.k8s.io": PrinterColumns(
        ("Name", "Attacher", "PV", "Node", "Attached", "Age"), cells.attachment
    ),
}


def columns_of(resource: ApiResource) -> PrinterColumns:
    """The columns of a resource."""
    storage = resource.storage
    if storage in TABLES:
        return TABLES[storage]
    if storage in PATHS:
        return _path_columns(storage)
    return PLAIN


@cache
def _path_columns(storage: str) -> PrinterColumns:
    columns = [path_cell(column) for column in PATHS[storage]]

    def make(tree: Tree, now: datetime) -> Sequence[Any]:
        return [tree["metadata"]["name"], *(cell(tree, now) for _, cell in columns)]

    return PrinterColumns((NAME, *(heading for heading, _ in columns)), make)


def make_table(
    resource: ApiResource, records: Sequence[Record], now: datetime, include_object: str
) -> dict[str, Any]:
    """The table of the objects; each row has the object, its metadata or nothing besides its cells."""
    custom = resource.custom
    if custom is not None:
        make, definitions = custom_cells(custom), _custom_definitions(custom)
    else:
        columns = columns_of(resource)
        make, definitions = columns.cells, _definitions(columns)
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


def _custom_definitions(version: CustomVersion) -> list[dict[str, Any]]:
    name = {"name": NAME, "type": "string", "format": "name", "description": "", "priority": 0}
    return [
        name,
        *(
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in version.columns
        ),
    ]


def _definitions(columns: PrinterColumns) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": int(i >= len(columns.names)),
        }
        for i, name in enumerate((*columns.names, *columns.wide))
    ]
