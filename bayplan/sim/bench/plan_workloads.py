"""Plan workloads: seeded workloads and node types for `make bench-plan`, as manifests.

`web` has Deployments of four kinds that differ in their ratio of memory to cpu, in part spread over zones or with a
node for each pod, and two daemons, on three families of four sizes. `openb` draws pods of a GPU cluster's trace, on its
node types. Prices are illustrative: in proportion to the amounts.
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TABLES = Path(__file__).parent / "workloads" / "openb"
ZONES = ("a", "b", "c")
GPU = "example.com/gpu-milli"


class ServiceKind(NamedTuple):
    """Distribution of the requests of a kind of Deployments."""

    weight: int
    milli_cpu: tuple[int, ...]
    gi_per_cpu: float


SERVICES = (
    ServiceKind(50, (100, 200, 250, 500, 1000), 2.0),  # web
    ServiceKind(25, (250, 500, 1000, 2000), 4.0),  # runtimes with a heap
    ServiceKind(15, (100, 250, 500, 1000), 10.0),  # caches
    ServiceKind(10, (1000, 2000, 4000), 1.0),  # computing
)
FAMILIES = {"compute": (2, 0.0425), "general": (4, 0.048), "memory": (8, 0.063)}
"""GiB and price per core."""
SIZES = {4: 80, 8: 90, 16: 110, 32: 190}
"""Cores, and milli that the system keeps for itself."""
GPU_PRICES = {
    "P100": 0.80,
    "T4": 0.35,
    "V100M16": 1.40,
    "V100M32": 1.80,
    "A10": 0.80,
    "G2": 0.70,
    "G3": 1.60,
}
CORE_PRICE, GI_PRICE = 0.03, 0.004


def web_workload(seed: int, deployments: int, pods: int) -> Iterator[dict[str, Any]]:
    """Deployments with about `pods` pods; every third is spread over zones, every tenth has a node for each pod."""
    draw = random.Random(seed)
    yield _daemon("logs", 100, 200)
    yield _daemon("metrics", 50, 100)
    sizes = [draw.lognormvariate(0, 1) for _ in range(deployments)]
    scale = pods / sum(sizes)
    for number, size in enumerate(sizes):
        kind = draw.choices(SERVICES, [one.weight for one in SERVICES])[0]
        milli_cpu = draw.choice(kind.milli_cpu)
        memory = milli_cpu * kind.gi_per_cpu * draw.uniform(0.7, 1.4) * 1.024
        labels = {"app": f"app-{number}"}
        selector = {"matchLabels": labels}
        spec = _pod_spec({"cpu": f"{milli_cpu}m", "memory": f"{max(round(memory / 64), 1) * 64}Mi"})
        count = max(round(size * scale), 1)
        if number % 3 == 0:
            spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
            spread |= {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            spec["topologySpreadConstraints"] = [spread]
        if number % 10 == 1:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
            count = min(count, 5)
        template = {"metadata": {"labels": labels}, "spec": spec}
        body = {"replicas": count, "selector": selector, "template": template}
        yield _document("apps/v1", "Deployment", f"app-{number}", body)


def web_pools() -> dict[str, Any]:
    """One pool of twelve types in three zones."""
    types = [
        {
            "name": f"{family}-{cores}",
            "capacity": {"cpu": cores, "memory": f"{cores * ratio}Gi", "pods": 110},
            "overhead": {"cpu": f"{kept}m", "memory": "1600Mi"},
            "price": round(cores * price, 4),
        }
        for family, (ratio, price) in FAMILIES.items()
        for cores, kept in SIZES.items()
    ]
    spec = {"zones": list(ZONES), "nodeTypes": types}
    return _document("bayplan.dev/v1", "NodePool", "web", spec)


def openb_workload(seed: int, pods: int) -> Iterator[dict[str, Any]]:
    """Pods of the trace, drawn without replacement, in their order."""
    rows = _rows("pods.csv.gz")
    draw = random.Random(seed)
    for number in sorted(draw.sample(range(len(rows)), min(pods, len(rows)))):
        row = rows[number]
        gpu = int(row["num_gpu"]) * int(row["gpu_milli"])
        amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", GPU: str(gpu)}
        yield _document("v1", "Pod", f"pod-{number}", _pod_spec(amounts))


def openb_pools() -> dict[str, Any]:
    """One pool of the node types of the trace."""
    types = []
    for row in {tuple(row.items()): row for row in _rows("nodes.csv.gz")}.values():
        cores, gi = int(row["cpu_milli"]) / 1000, int(row["memory_mib"]) / 1024
        price = cores * CORE_PRICE + gi * GI_PRICE + int(row["gpu"]) * GPU_PRICES[row["model"]]
        capacity = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": 110}
        types.append(
            {
                "name": f"{row['model']}-{row['gpu']}-{cores:.0f}-{gi:.0f}".lower(),
                "capacity": capacity | {GPU: int(row["gpu"]) * 1000},
                "price": round(price, 4),
            }
        )
    return _document("bayplan.dev/v1", "NodePool", "openb", {"nodeTypes": types})


def filling_config(resources: Sequence[str], alignment: int) -> dict[str, Any]:
    """A scheduler that fills nodes up: one that spreads pods leaves no node empty for those with eight GPUs.

    `alignment` is the weight of the mix of resources; 0 leaves it to kube-scheduler's own plugins.
    """
    weighted = [{"name": name, "weight": 1} for name in resources]
    strategy = {"type": "MostAllocated", "resources": weighted}
    args = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    plugins: dict[str, Any] = {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}
    if alignment:
        args.append({"name": "NodeResourcesAlignment", "args": {"resources": list(resources)}})
        plugins["enabled"] = [{"name": "NodeResourcesAlignment", "weight": alignment}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": args, "plugins": {"multiPoint": plugins}}],
    }


def web_config(is_aligned: bool) -> dict[str, Any] | None:
    """The mix of resources counts most, then how full a node is; None for the default scheduler."""
    return filling_config(("cpu", "memory"), 10) if is_aligned else None


def openb_config(is_aligned: bool) -> dict[str, Any]:
    """The use of a node counts more than for web, so that nodes stay empty for pods with eight GPUs."""
    return filling_config(("cpu", "memory", GPU), 3 if is_aligned else 0)


def _daemon(name: str, milli_cpu: int, memory_mi: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": _pod_spec({"cpu": f"{milli_cpu}m", "memory": f"{memory_mi}Mi"}),
    }
    body = {"selector": {"matchLabels": labels}, "template": template}
    return _document("apps/v1", "DaemonSet", name, body)


def _pod_spec(amounts: dict[str, str]) -> dict[str, Any]:
    extended = {name: amount for name, amount in amounts.items() if "/" in name}
    resources = {"requests": amounts} | ({"limits": extended} if extended else {})
    return {"containers": [{"name": "main", "image": "pause:3.10", "resources": resources}]}


def _document(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _rows(name: str) -> Sequence[dict[str, str]]:
    with gzip.open(TABLES / name, "rt", newline="") as file:
        return list(csv.DictReader(file))
