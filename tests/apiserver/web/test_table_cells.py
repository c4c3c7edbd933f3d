"""Cells of the tables that `kubectl get` prints, kind by kind, by the name of their column."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bayplan.apiserver.registry.resource_table import BY_STORAGE
from bayplan.apiserver.store.store import Store
from bayplan.apiserver.web.printer_columns import make_table

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
WEB = {"app": "web"}
SELECTOR = {
    "matchLabels": WEB,
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "Exists"},
        {"key": "gone", "operator": "DoesNotExist"},
    ],
}
TEMPLATE = {
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:2"}],
    }
}
WORKLOAD = {"replicas": 3, "selector": {"matchLabels": WEB}, "template": TEMPLATE}
LISTED = {"Containers": "one,two", "Images": "i:1,i:2"}


def ago(**passed: float) -> str:
    """The time of this age."""
    return (NOW - timedelta(**passed)).isoformat().replace("+00:00", "Z")


def row(storage: str, metadata: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """The cells of an object named x, by column."""
    tree = {"metadata": {"name": "x", "uid": "u", **(metadata or {})}, **fields}
    record = Store().put(storage, ("default", "x"), tree)
    table = make_table(BY_STORAGE[storage], [record], NOW, "None")
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def condition(kind: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, **more}]}


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        ({"seconds": -5}, "0s"),
        ({"seconds": 119}, "119s"),
        ({"seconds": 120}, "2m"),
        ({"minutes": 5, "seconds": 30}, "5m30s"),
        ({"minutes": 179}, "179m"),
        ({"hours": 3, "minutes": 20}, "3h20m"),
        ({"hours": 47}, "47h"),
        ({"days": 2, "hours": 5}, "2d5h"),
        ({"days": 400}, "400d"),
        ({"days": 3 * 365 + 10}, "3y10d"),
        ({"days": 9 * 365}, "9y"),
    ],
)
def test_ages(passed: dict[str, float], shown: str) -> None:
    assert row("configmaps", {"creationTimestamp": ago(**passed)})["Age"] == shown


def test_an_object_without_a_time_has_no_age() -> None:
    assert row("configmaps")["Age"] == "<unknown>"


RUNNING = {"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}}}
LOOPING = {"name": "c", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
DONE = {"name": "c", "state": {"terminated": {"reason": "Completed"}}}


@pytest.mark.parametrize(
    ("status", "metadata", "shown"),
    [
        pytest.param({}, {}, {"Status": "Pending", "Ready": "0/1", "IP": "<none>"}, id="new"),
        pytest.param(
            {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [RUNNING]},
            {},
            {"Status": "Running", "Ready": "1/1", "Restarts": "2", "IP": "10.0.0.1"},
            id="running",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [LOOPING]},
            {},
            {"Status": "CrashLoopBackOff", "Ready": "0/1", "Restarts": "4"},
            id="a container that waits",
        ),
        pytest.param(
            {"phase": "Succeeded", "containerStatuses": [DONE]},
            {},
            {"Status": "Completed"},
            id="a container that ended",
        ),
        pytest.param(
            condition("PodScheduled", "False", reason="SchedulingGated"),
            {},
            {"Status": "SchedulingGated"},
            id="a gate",
        ),
        pytest.param(
            {"phase": "Running", "nominatedNodeName": "n"},
            {"deletionTimestamp": ago(seconds=1)},
            {"Status": "Terminating", "Nominated Node": "n"},
            id="deleted",
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted"},
            {"deletionTimestamp": ago(seconds=1)},
            {"Status": "Evicted"},
            id="failed before it was deleted",
        ),
    ],
)
def test_pods(status: dict[str, Any], metadata: dict[str, Any], shown: dict[str, str]) -> None:
    spec = {"containers": [{"name": "c"}], "readinessGates": [{"conditionType": "a"}]}

    found = row("pods", metadata, spec=spec, status=status)

    assert {name: found[name] for name in shown} == shown
    assert (found["Node"], found["Readiness Gates"]) == ("<none>", "0/1")


ROLE = "node-role.kubernetes.io/"
ADDRESSES = [{"type": "InternalIP", "address": "10.0.0.2"}]
JOB_TIMES = {"startTime": ago(minutes=10), "completionTime": ago(minutes=8)}
GI = {"storage": "1Gi"}
DELETED = {"deletionTimestamp": ago(seconds=1)}
PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 443, "nodePort": 30443, "protocol": "TCP"}]
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


@pytest.mark.parametrize(
    ("storage", "fields", "shown"),
    [
        pytest.param(
            "nodes",
            {"status": {**condition("Ready"), "addresses": ADDRESSES}},
            {
                "Status": "Ready",
                "Roles": "<none>",
                "Internal-IP": "10.0.0.2",
                "External-IP": "<none>",
            },
            id="a ready node",
        ),
        pytest.param(
            "nodes",
            {
                "metadata": {"labels": {f"{ROLE}control-plane": "", f"{ROLE}b": ""}},
                "spec": {"unschedulable": True},
                "status": condition("Ready", "False"),
            },
            {"Status": "NotReady,SchedulingDisabled", "Roles": "b,control-plane"},
            id="a cordoned node that is not ready",
        ),
        pytest.param("nodes", {}, {"Status": "Unknown", "OS-Image": "<unknown>"}, id="a new node"),
        pytest.param(
            "namespaces", {"status": {"phase": "Active"}}, {"Status": "Active"}, id="a namespace"
        ),
        pytest.param(
            "deployments.apps",
            {
                "spec": {**WORKLOAD, "selector": SELECTOR},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            {
                "Ready": "1/3",
                "Up-to-date": 2,
                "Available": 1,
                "Selector": "app=web,!gone,old,tier in (a,b)",
                **LISTED,
            },
            id="a deployment",
        ),
        pytest.param(
            "replicationcontrollers",
            {"spec": {**WORKLOAD, "selector": WEB}, "status": {"replicas": 2, "readyReplicas": 1}},
            {"Desired": 3, "Current": 2, "Ready": 1, "Selector": "app=web"},
            id="a controller with labels as selector",
        ),
        pytest.param(
            "statefulsets.apps",
            {"spec": WORKLOAD, "status": {"readyReplicas": 2}},
            {"Ready": "2/3", **LISTED},
            id="a stateful set",
        ),
        pytest.param(
            "daemonsets.apps",
            {"spec": WORKLOAD, "status": {"desiredNumberScheduled": 4, "numberReady": 3}},
            {"Desired": 4, "Current": 0, "Ready": 3, "Node Selector": "disk=ssd"},
            id="a daemon set",
        ),
        pytest.param(
            "jobs.batch",
            {"spec": {"template": TEMPLATE}, "status": {"startTime": ago(minutes=10)}},
            {"Status": "Running", "Completions": "0/1", "Duration": "10m"},
            id="a job that runs",
        ),
        pytest.param(
            "jobs.batch",
            {
                "spec": {"parallelism": 3},
                "status": {**JOB_TIMES, **condition("Complete"), "succeeded": 1},
            },
            {"Status": "Complete", "Completions": "1/1 of 3", "Duration": "2m"},
            id="a complete job without a number",
        ),
        pytest.param(
            "jobs.batch",
            {"spec": {"completions": 5}, "status": condition("Suspended")},
            {"Status": "Suspended", "Completions": "0/5", "Duration": ""},
            id="a suspended job",
        ),
        pytest.param(
            "jobs.batch", {"metadata": DELETED}, {"Status": "Terminating"}, id="a deleted job"
        ),
        pytest.param(
            "cronjobs.batch",
            {
                "spec": {
                    "schedule": "@daily",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": TEMPLATE}},
                },
                "status": {"active": [{}], "lastScheduleTime": ago(hours=4)},
            },
            {
                "Schedule": "@daily",
                "Suspend": "True",
                "Active": 1,
                "Last Schedule": "4h",
                "Timezone": "<none>",
                **LISTED,
            },
            id="a suspended cron job",
        ),
        pytest.param(
            "cronjobs.batch",
            {"spec": {"schedule": "@daily", "timeZone": "Europe/Berlin"}},
            {
                "Suspend": "False",
                "Active": 0,
                "Last Schedule": "<none>",
                "Timezone": "Europe/Berlin",
            },
            id="a new cron job",
        ),
        pytest.param(
            "poddisruptionbudgets.policy",
            {"spec": {"maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 2}},
            {"Min Available": "N/A", "Max Unavailable": "30%", "Allowed Disruptions": 2},
            id="a budget",
        ),
        pytest.param(
            "priorityclasses.scheduling.k8s.io",
            {"value": 7, "globalDefault": True, "preemptionPolicy": "Never"},
            {"Value": 7, "Global-Default": True, "PreemptionPolicy": "Never"},
            id="a priority class",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"},
                "status": {
                    "phase": "Bound",
                    "capacity": GI,
                    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                },
            },
            {
                "Status": "Bound",
                "Volume": "v",
                "Capacity": "1Gi",
                "Access Modes": "RWO,ROX",
                "StorageClass": "fast",
                "VolumeAttributesClass": "<unset>",
                "VolumeMode": "Block",
            },
            id="a bound claim",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {"metadata": DELETED, "status": {"phase": "Pending", "capacity": GI}},
            {"Status": "Terminating", "Capacity": "", "Access Modes": "", "VolumeMode": "<unset>"},
            id="a deleted claim without a volume",
        ),
        pytest.param(
            "persistentvolumes",
            {
                "spec": {
                    "capacity": GI,
                    "accessModes": ["ReadWriteMany", "ReadWriteOncePod"],
                    "claimRef": {"namespace": "shop", "name": "c"},
                    "persistentVolumeReclaimPolicy": "Retain",
                },
                "status": {"phase": "Bound"},
            },
            {
                "Capacity": "1Gi",
                "Access Modes": "RWX,RWOP",
                "Claim": "shop/c",
                "Reclaim Policy": "Retain",
                "Status": "Bound",
            },
            id="a bound volume",
        ),
        pytest.param(
            "persistentvolumes",
            {"metadata": DELETED, "status": {"phase": "Released", "reason": "why"}},
            {"Claim": "", "Status": "Terminating", "Reason": "why"},
            id="a deleted volume",
        ),
        pytest.param(
            "storageclasses.storage.k8s.io",
            {"metadata": DEFAULT, "provisioner": "d", "allowVolumeExpansion": True},
            {
                "Name": "x (default)",
                "Provisioner": "d",
                "ReclaimPolicy": "Delete",
                "VolumeBindingMode": "Immediate",
                "AllowVolumeExpansion": True,
            },
            id="the default class",
        ),
        pytest.param(
            "csidrivers.storage.k8s.io",
            {"spec": {"attachRequired": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
            {"AttachRequired": True, "PodInfoOnMount": False, "Modes": "Persistent,Ephemeral"},
            id="a driver",
        ),
        pytest.param(
            "csinodes.storage.k8s.io",
            {"spec": {"drivers": [{}, {}]}},
            {"Drivers": 2},
            id="its node",
        ),
        pytest.param(
            "csistoragecapacities.storage.k8s.io",
            {"storageClassName": "fast", "capacity": "5Gi"},
            {"StorageClassName": "fast", "Capacity": "5Gi"},
            id="its capacity",
        ),
        pytest.param(
            "volumeattachments.storage.k8s.io",
            {
                "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
                "status": {"attached": True},
            },
            {"Attacher": "d", "PV": "v", "Node": "n", "Attached": True},
            id="an attachment",
        ),
        pytest.param(
            "resourceclaims.resource.k8s.io", {}, {"State": "pending"}, id="a new device claim"
        ),
        pytest.param(
            "resourceclaims.resource.k8s.io",
            {"metadata": DELETED, "status": {"allocation": {"devices": {}}, "reservedFor": [{}]}},
            {"State": "deleted,allocated,reserved"},
            id="a device claim in use that was deleted",
        ),
        pytest.param(
            "resourceslices.resource.k8s.io",
            {"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}},
            {"Node": "n", "Driver": "d", "Pool": "p"},
            id="a slice",
        ),
        pytest.param(
            "services",
            {"spec": {"clusterIP": "10.0.0.3", "ports": PORTS, "selector": WEB}},
            {
                "Type": "ClusterIP",
                "Cluster-IP": "10.0.0.3",
                "External-IP": "<none>",
                "Port(s)": "80/TCP,443:30443/TCP",
                "Selector": "app=web",
            },
            id="a service",
        ),
        pytest.param(
            "services",
            {"spec": {"type": "LoadBalancer"}},
            {"External-IP": "<pending>", "Port(s)": "<none>"},
            id="a load balancer",
        ),
        pytest.param(
            "services",
            {"spec": {"type": "ExternalName", "externalName": "example.com"}},
            {"External-IP": "example.com", "Cluster-IP": "<none>"},
            id="a name of another place",
        ),
        pytest.param(
            "configmaps", {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}, {"Data": 2}, id="a map"
        ),
        pytest.param(
            "secrets",
            {"type": "Opaque", "data": {"a": "Yg=="}},
            {"Type": "Opaque", "Data": 1},
            id="a secret",
        ),
        pytest.param(
            "leases.coordination.k8s.io",
            {"spec": {"holderIdentity": "me"}},
            {"Holder": "me"},
            id="a lease",
        ),
        pytest.param(
            "podgroups.scheduling.k8s.io",
            {
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
                "status": condition("DisruptionTarget", reason="PreemptionByScheduler"),
            },
            {"Policy": "Gang", "Workload": "<none>", "Status": "PreemptionByScheduler"},
            id="a preempted group",
        ),
        pytest.param(
            "podgroups.scheduling.k8s.io",
            {"spec": {"schedulingPolicy": {"basic": {}}}},
            {"Policy": "Basic", "Status": "Pending"},
            id="a new group",
        ),
        pytest.param(
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "eventTime": ago(minutes=9),
                "series": {"lastObservedTime": ago(seconds=30), "count": 4},
                "reportingComponent": "default-scheduler",
                "reason": "FailedScheduling",
                "message": "no room\n",
            },
            {
                "Last Seen": "30s",
                "First Seen": "9m",
                "Count": 4,
                "Object": "pod/p",
                "Source": "default-scheduler",
                "Message": "no room",
            },
            id="an event of a series",
        ),
        pytest.param(
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
                "firstTimestamp": ago(minutes=2),
                "lastTimestamp": ago(minutes=2),
                "source": {"component": "kubelet", "host": "n"},
            },
            {
                "Last Seen": "2m",
                "Count": 1,
                "Subobject": "spec.containers{c}",
                "Source": "kubelet, n",
            },
            id="an event of a kubelet",
        ),
    ],
)
def test_cells(storage: str, fields: dict[str, Any], shown: dict[str, Any]) -> None:
    found = row(storage, **fields)

    assert {name: found[name] for name in shown} == shown
