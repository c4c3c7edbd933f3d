"""Tables: objects in rows of cells, as `kubectl get` prints them.

Mirrors pkg/printers/internalversion/printers.go: the columns of each kind, and which of them are
wide (`-o wide`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..registry.resources import ApiResource
from ..store import Record
from . import cells

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
    "jobs.batch": PrinterColumns(
        ("Name", "Status", "Completions", "Duration", "Age"), cells.job, WORKLOAD
    ),
    "leases.coordination.k8s.io": PrinterColumns(("Name", "Holder", "Age"), cells.lease),
    "namespaces": PrinterColumns(("Name", "Status", "Age"), cells.namespace),
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


def make_table(
    resource: ApiResource, records: Sequence[Record], now: datetime, include_object: str
) -> dict[str, Any]:
    """The table of the objects; each row has the object, its metadata or nothing besides its cells."""
    columns = TABLES.get(resource.storage, PLAIN)
    rows = []
    for record in records:
        tree = record.decode()
        row: dict[str, Any] = {"cells": list(columns.cells(tree, now.astimezone(UTC)))}
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
        "columnDefinitions": _definitions(columns),
        "rows": rows,
    }


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
