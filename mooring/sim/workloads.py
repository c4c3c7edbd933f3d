"""Workloads: made-up clusters and pods for measuring speed, each stressing one part of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..api.decode import decode_object

ZONES = 10
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
GROUP_NAME = "pod-group.scheduling.sigs.k8s.io/name"
GROUP_SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
GANG = 100

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """Nodes, pods that run already, pods in the way, and pods to schedule, all made by number."""

    name: str
    summary: str
    node: Callable[[int], Manifest]
    pod: Callable[[int], Manifest]
    running: Callable[[int], Manifest] | None = None
    running_per_node: int = 1
    in_the_way: Callable[[int], Manifest] | None = None
    """Pods that wait and cannot be placed; they have been tried before the measurement begins."""
    share: float = 1.0
    """Which part of the pods asked for is made: less for those that take long."""
    plugins: tuple[str, ...] = ()
    """Plugins that are on besides the default ones."""
    churns: bool = False
    """Whether pods, nodes and services come and go meanwhile."""

    def cluster_objects(self, nodes: int) -> Iterator[Any]:
        """The nodes, and the pods that run on them."""
        for number in range(nodes):
            yield decode_object(self.node(number))
        if self.running is not None:
            for number in range(nodes * self.running_per_node):
                yield decode_object(self.running(number))

    def obstacles(self, pods: int) -> Iterator[Any]:
        """The pods in the way, if there are any."""
        if self.in_the_way is not None:
            for number in range(pods):
                yield decode_object(self.in_the_way(number))

    def pods(self, pods: int) -> Iterator[Any]:
        """The pods to schedule."""
        for number in range(self.count(pods)):
            yield decode_object(self.pod(number))

    def count(self, pods: int) -> int:
        """How many pods there are to schedule when `pods` were asked for."""
        return max(round(pods * self.share), 1)


def plain_node(number: int) -> Manifest:
    """32 cores, 256 GiB, 110 pods, in one of ten zones."""
    name = f"node-{number:06d}"
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    labels = {HOSTNAME: name, ZONE: f"zone-{number % ZONES}", "tier": f"t{number % 4}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def tainted_node(number: int) -> Manifest:
    """Every fifth node is dedicated, every third would rather not."""
    node = plain_node(number)
    taints = []
    if number % 5 == 0:
        taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
    if number % 3 == 0:
        taints.append({"key": "busy", "effect": "PreferNoSchedule"})
    node["spec"] = {"taints": taints}
    return node


def plain_pod(number: int) -> Manifest:
    """One of four sizes."""
    return _pod(number, 100 * (1 + number % 4), {"app": f"app-{number % 4}"})


def tolerating_pod(number: int) -> Manifest:
    """Every other pod tolerates the dedicated nodes."""
    pod = plain_pod(number)
    if number % 2:
        pod["spec"]["tolerations"] = [
            {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
        ]
    return pod


def choosy_pod(number: int) -> Manifest:
    """Must go to two of the four tiers, and prefers one of them."""
    pod = plain_pod(number)
    tiers = [f"t{number % 4}", f"t{(number + 1) % 4}"]
    required = {"matchExpressions": [{"key": "tier", "operator": "In", "values": tiers}]}
    preferred = {"matchExpressions": [{"key": "tier", "operator": "In", "values": tiers[:1]}]}
    pod["spec"]["affinity"] = {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [required]},
            PREFERRED: [{"weight": 10, "preference": preferred}],
        }
    }
    return pod


def spread_pod(number: int) -> Manifest:
    """Spread over zones (required) and hosts (preferred)."""
    app = {"app": f"spread-{number % 4}"}
    pod = _pod(number, 100, app)
    pod["spec"]["topologySpreadConstraints"] = [
        _constraint(ZONE, 5, "DoNotSchedule", app),
        _constraint(HOSTNAME, 1, "ScheduleAnyway", app),
    ]
    return pod


def lonely_pod(number: int) -> Manifest:
    """Not on a node with another pod of its app; there are enough apps for all pods to fit."""
    app = {"app": f"lonely-{number % 20}"}
    pod = _pod(number, 100, app)
    pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(HOSTNAME, app)]}}
    return pod


def sociable_pod(number: int) -> Manifest:
    """In a zone with its app (required), and preferably with the running pods."""
    app = {"app": f"running-{number % 4}"}
    pod = _pod(number, 100, app)
    pod["spec"]["affinity"] = {
        "podAffinity": {
            REQUIRED: [_term(ZONE, app)],
            PREFERRED: [{"weight": 5, "podAffinityTerm": _term(ZONE, {"app": "running-0"})}],
        }
    }
    return pod


def running_pod(number: int) -> Manifest:
    """A pod of one of four apps on each node."""
    pod = _pod(number, 100, {"app": f"running-{number % 4}"})
    pod["metadata"]["name"] = f"running-{number:06d}"
    pod["spec"]["nodeName"] = f"node-{number:06d}"
    return pod


def filling_pod(number: int) -> Manifest:
    """A quarter of a node, of low priority; four of them fill one."""
    pod = _pod(number, 8000, {"app": f"filling-{number % 4}"})
    pod["metadata"]["name"] = f"filling-{number:06d}"
    pod["spec"]["nodeName"] = f"node-{number // 4:06d}"
    pod["spec"]["priority"] = number % 3
    return pod


def urgent_pod(number: int) -> Manifest:
    """A quarter of a node, of high priority."""
    pod = _pod(number, 8000, {"app": f"urgent-{number % 4}"})
    pod["spec"]["priority"] = 1000
    return pod


def impossible_pod(number: int) -> Manifest:
    """Wants a GPU, and no node has one."""
    pod = _pod(number, 100, {"app": f"impossible-{number % 4}"})
    pod["metadata"]["name"] = f"impossible-{number:06d}"
    pod["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    return pod


def gated_pod(number: int) -> Manifest:
    """Is held back by a scheduling gate."""
    pod = _pod(number, 100, {"app": f"gated-{number % 4}"})
    pod["metadata"]["name"] = f"gated-{number:06d}"
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    return pod


def gang_pod(number: int) -> Manifest:
    """One of a gang of a hundred; the pods of two gangs come mixed."""
    pair, place = divmod(number, 2 * GANG)
    pod = plain_pod(number)
    pod["metadata"]["labels"][GROUP_NAME] = f"gang-{2 * pair + place % 2}"
    pod["metadata"]["labels"][GROUP_SIZE] = str(GANG)
    return pod


def service(number: int) -> Manifest:
    """A service for one of the four apps."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"service-{number:06d}", "namespace": "default"},
        "spec": {"selector": {"app": f"app-{number % 4}"}},
    }


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _pod(number: int, milli_cpu: int, labels: dict[str, str]) -> Manifest:
    requests = {"cpu": f"{milli_cpu}m", "memory": "500Mi"}
    container = {"name": "main", "image": "pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:06d}", "namespace": "default", "labels": labels},
        "spec": {"containers": [container]},
    }


def _constraint(key: str, max_skew: int, when: str, labels: dict[str, str]) -> Manifest:
    return {
        "topologyKey": key,
        "maxSkew": max_skew,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": labels},
    }


def _term(key: str, labels: dict[str, str]) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("basic", "cpu and memory, four sizes of pods", plain_node, plain_pod),
        Workload("taints", "dedicated and unwelcoming nodes", tainted_node, tolerating_pod),
        Workload("node-affinity", "required and preferred terms", plain_node, choosy_pod),
        Workload("spread", "zones required, hosts preferred", plain_node, spread_pod),
        Workload("anti-affinity", "one pod of an app per host", plain_node, lonely_pod),
        Workload("affinity", "zone of the app", plain_node, sociable_pod, running_pod),
        Workload(
            "preemption",
            "full nodes, urgent pods push others out",
            plain_node,
            urgent_pod,
            filling_pod,
            running_per_node=4,
            share=0.1,
        ),
        Workload(
            "unschedulable",
            "as many pods wait for a GPU in vain",
            plain_node,
            plain_pod,
            in_the_way=impossible_pod,
        ),
        Workload(
            "gated", "as many pods are held back", plain_node, plain_pod, in_the_way=gated_pod
        ),
        Workload(
            "churn", "pods, nodes and services come and go", plain_node, plain_pod, churns=True
        ),
        Workload("gang", "gangs of a hundred", plain_node, gang_pod, plugins=("Coscheduling",)),
    )
}
