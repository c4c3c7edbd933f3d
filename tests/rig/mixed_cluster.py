"""Mixed cluster: nodes, pods and other objects that involve every default plugin.

For tests that compare two ways to the same decision: little room, every kind of rule, pods that
differ in one field.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache as memoized
from typing import Any

from bayplan.api.node import HOSTNAME, ZONE, Node
from bayplan.testing.builders import make_node, make_object
from bayplan.testing.storage import claim_volume, make_claim, make_csi_node, make_volume

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU = "example.com/gpu"
DRIVER = "disk.example.com"
CSI_NODES = 20
APPS = ["web", "db", "job", ""]
PACKED = "packed"
PROFILES: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": PACKED,
            "plugins": {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 7}]}},
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 3}],
                        }
                    },
                },
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 9}},
            ],
        },
    ],
}
"""The default profile, and another one that scores differently: their caches must be separate."""


def near(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    """An affinity term for pods of `app`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def even(key: str, action: str, app: str = "web", **more: Any) -> dict[str, Any]:
    """A spread constraint for pods of `app`."""
    selector = {"matchLabels": {"app": app}}
    wish = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action}
    return {**wish, "labelSelector": selector, **more}


def in_team(team: str) -> dict[str, Any]:
    """Namespace selector of an affinity term for the namespaces of a team."""
    return {"namespaceSelector": {"matchLabels": {"team": team}}}


def weighted(weight: int, term: dict[str, Any]) -> dict[str, Any]:
    """A preferred affinity term."""
    return {"weight": weight, "podAffinityTerm": term}


def on_disk(*disks: str) -> dict[str, Any]:
    """A node selector term."""
    return {"matchExpressions": [{"key": "disk", "operator": "In", "values": list(disks)}]}


# Arguments for make_node and make_pod.
NODES: list[dict[str, Any]] = [
    {"zone": "z1", "cpu": "3", "memory": "6Gi"},
    {"zone": "z2", "cpu": "3", "images": {"app:1": 700 << 20}, "labels": {"disk": "ssd"}},
    {"zone": "z3", "labels": {"disk": "hdd"}, "images": {"app:1": 700 << 20, "app:2": 90 << 20}},
    {"zone": "z1", "cpu": "4", "memory": "8Gi", "extended": {GPU: 2}},
    {"zone": "z2", "cpu": "2", "memory": "4Gi", "labels": {"disk": "ssd"}},
    {"zone": "z2", "taints": ["gpu=yes:NoSchedule"], "labels": {"disk": "hdd"}},
    {"zone": "z3", "taints": ["slow:PreferNoSchedule"], "images": {"app:2": 90 << 20}},
    {"zone": "z1", "unschedulable": True, "cpu": "2"},
    {"zone": "z2", "cpu": "8", "pods": 3},
    {"cpu": "3", "memory": "2Gi", "pods": 2, "extended": {GPU: 1}},
    {
        "zone": "z3",
        "cpu": "8",
        "memory": "32Gi",
        "taints": ["gpu=yes:NoSchedule", "slow:PreferNoSchedule"],
    },
    {"zone": "z4", "labels": {"disk": "nvme"}, "images": {"app:3": 400 << 20}},
    {"zone": "z5", "taints": ["new:PreferNoSchedule"], "extended": {"example.com/nic": 2}},
]
USUAL_NODES = len(NODES) - 2
"""The others have labels, taints, images and resources that did not exist before."""
TEMPLATES: list[dict[str, Any]] = [
    {},
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, "images": ["app:1"]},
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, "images": ["app:2"], "priority": 5},
    {"cpu": "2", "labels": {"app": "job"}, "priority": 10},
    {"cpu": "3", "memory": "3Gi", "priority": 20},
    {"cpu": "2", "tolerations": ["gpu", "slow"], "host_ports": [80]},
    {"host_ports": [80], "priority": 10, "labels": {"app": "db"}},
    {"node_selector": {"disk": "ssd"}, "cpu": "500m", "labels": {"app": "db"}},
    {"requests": {GPU: 1}, "cpu": "1", "priority": 5},
    {"cpu": "4", "priority": 20, "spec": {"preemptionPolicy": "Never"}},
    {
        "labels": {"app": "web"},
        "cpu": "500m",
        "spread": [even(ZONE, "DoNotSchedule"), even(HOSTNAME, "ScheduleAnyway")],
        "node_affinity": {PREFERRED: [{"weight": 5, "preference": on_disk("ssd")}]},
    },
    {
        "labels": {"app": "job"},
        "cpu": "1",
        "priority": 10,
        "spread": [even(HOSTNAME, "DoNotSchedule", "job", minDomains=3, nodeTaintsPolicy="Honor")],
    },
    {
        "labels": {"app": "web"},
        "affinity": {
            "podAffinity": {REQUIRED: [near("web", namespaceSelector={})]},
            "podAntiAffinity": {PREFERRED: [weighted(3, near("db", HOSTNAME))]},
        },
    },
    {
        "labels": {"app": "db"},
        "cpu": "1",
        "affinity": {"podAntiAffinity": {REQUIRED: [near("db", HOSTNAME)]}},
    },
    {
        "labels": {"app": "db"},
        "priority": 10,
        "affinity": {
            "podAntiAffinity": {REQUIRED: [near("job"), near("db", HOSTNAME, **in_team("x"))]}
        },
    },
    {
        "namespace": "other",
        "labels": {"app": "web"},
        "affinity": {
            "podAffinity": {PREFERRED: [weighted(7, near("web", **in_team("x")))]},
            "podAntiAffinity": {
                PREFERRED: [weighted(9, near("job", HOSTNAME, namespaces=["default"]))]
            },
        },
    },
    {"affinity": {"podAffinity": {REQUIRED: [near("web", **in_team("x"))]}}, "priority": 10},
    {"node_affinity": {REQUIRED: {"nodeSelectorTerms": [on_disk("hdd", "nvme")]}}, "cpu": "1"},
    {
        "node_affinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}
                ]
            }
        },
        "cpu": "1",
    },
    {"spec": {"volumes": [claim_volume("zonal")]}, "cpu": "500m"},
    {"spec": {"volumes": [claim_volume("attached-0")]}, "cpu": "500m"},
    {"spec": {"volumes": [claim_volume("attached-1")]}, "labels": {"app": "web"}},
    {"spec": {"volumes": [claim_volume("alone")]}, "priority": 10},
]
# Twins differ in one field only: a cached result of one must not be used for the other.
TEMPLATES += [{"tolerations": [key], "cpu": "1"} for key in ("gpu", "slow")]
TEMPLATES += [
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, "spec": {"schedulerName": name}}
    for name in (PACKED, "default-scheduler")
]
TEMPLATES += [{"memory": "3Gi"}, {"memory": "3Gi", "priority": 5}, {"host_ports": [81]}]
HUMBLE = [i for i, wish in enumerate(TEMPLATES) if "priority" not in wish and "cpu" in wish]
"""Positions of templates that can be preempted."""
URGENT = [i for i, wish in enumerate(TEMPLATES) if wish.get("priority", 0) > 5]
"""Positions of templates that can preempt."""
SERVICES = [
    make_object("Service", app, namespace=where, spec={"selector": {"app": app}})
    for app, where in (("web", "default"), ("job", "default"), ("web", "other"))
]


def make_storage() -> Iterable[Any]:
    """Bound claims: to a zone, to volumes of a driver with a low limit, for one pod only."""
    zonal = make_claim("zonal", volume="zonal")
    yield from (zonal, make_volume("zonal", zones=["z2"], claim=zonal))
    for name in ("attached-0", "attached-1"):
        claim = make_claim(name, volume=name)
        yield from (claim, make_volume(name, claim=claim, driver=DRIVER))
    alone = make_claim("alone", volume="alone", access_modes=["ReadWriteOncePod"])
    yield from (alone, make_volume("alone", claim=alone, access_modes=["ReadWriteOncePod"]))
    yield from (make_csi_node(f"n{number}", {DRIVER: 1}) for number in range(0, CSI_NODES, 2))


def make_budget(app: str, allowed: int) -> Any:
    """A budget for the pods of `app`."""
    return make_object(
        "PodDisruptionBudget",
        app,
        namespace="default",
        spec={"selector": {"matchLabels": {"app": app}}, "minAvailable": 1},
        status={"disruptionsAllowed": allowed},
    )


@memoized
def make_variant(number: int, variant: int) -> Node:
    """Node n<number> in one of its `NODES`; the same object each time."""
    return make_node(f"n{number}", **NODES[variant])
