"""Cluster Autoscaler with many node groups: a quicker estimate chooses the same groups for the same pods."""

import hashlib
import json
from typing import Any

import pytest

from bayplan.autoscaling import AutoscalerOptions
from bayplan.planning import NodePool, NodeType
from tests.autoscaling.scaled import (
    GI,
    make_timeline,
    make_workload,
    run_scaled,
    scaling_of,
)

GPU = "example.com/gpu"
ZONE = "topology.kubernetes.io/zone"
CPUS = ("100m", "250m", "500m", "1", "2", "1500m", "300m", "4")


def make_catalogue(pool: str, generations: int) -> list[NodeType]:
    """Types that differ in size, ratio, price and name; some also as spot nodes, some with GPUs."""
    types = []
    for number in range(generations * 12):
        generation, (kind, size) = number // 12, divmod(number % 12, 4)
        cores, ratio = (2, 4, 8, 16)[size], (2, 4, 8)[kind]
        amounts = {"cpu": cores * 1000, "memory": cores * ratio * GI, "pods": 58 if size else 29}
        if kind == 1 and generation == 1:
            amounts[GPU] = size
        free = amounts | {"cpu": cores * 1000 - 80, "memory": cores * ratio * GI - GI}
        price = round(cores * (0.02 + 0.003 * ratio) * (1 + 0.03 * generation), 5)
        labels = {"bayplan.dev/pool": pool, "family": f"f{kind}"}
        name = f"f{kind}-{generation}.{cores}"
        types.append(NodeType(name, amounts, free, labels, zones=("a", "b", "c"), price=price))
        if generation == 0:
            labels = labels | {"karpenter.sh/capacity-type": "spot"}
            types.append(NodeType(name, amounts, free, labels, zones=("a", "b"), price=price / 3))
    return types


def make_objects(*, with_terms: bool) -> list[Any]:
    """Deployments of eight sizes, some for one zone, one family or GPUs, and one that grows; with terms between pods
    also some that are spread over zones, or apart from each other."""
    objects = [make_workload("agent", 0, "100m", kind="DaemonSet")]
    for number in range(24):
        name, more = f"app-{number}", dict[str, Any]()
        selector = {"labelSelector": {"matchLabels": {"app": name}}}
        if number % 8 == 3:
            more = {"nodeSelector": {ZONE: "b"}}
        elif number % 8 == 5:
            more = {"nodeSelector": {"family": "f2"}, "priority": 10}
        elif with_terms and number % 4 == 0:
            rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": ZONE}
            more = {"topologySpreadConstraints": [rule | selector]}
        elif with_terms and number == 1:
            rule = selector | {"topologyKey": "kubernetes.io/hostname"}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
            more = {"affinity": {"podAntiAffinity": required}}
        objects.append(make_workload(name, 4 + number % 7, CPUS[number % 8], **more))
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: "1"}}}
    objects.append(make_workload("gpu", 3, containers=[container]))
    objects.append(make_timeline(("10m", {"app-4": 40, "app-6": 40}), ("40m", {"app-4": 1})))
    return objects


@pytest.mark.parametrize(
    ("with_terms", "expander", "digest"),
    [
        pytest.param(False, "price", "67054670f669487c", id="only amounts, by price"),
        pytest.param(False, "least-waste", "0998744ee7f81b8a", id="only amounts, by waste"),
        pytest.param(False, "random", "78a654c31411529d", id="only amounts, at random"),
        pytest.param(
            True,
            "price",
            "7e0d36e62c6c6b8e",
            id="spread and apart, by price",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_many_groups_have_their_recorded_result(
    with_terms: bool, expander: str, digest: str
) -> None:
    """Change the records only with an intended change of decisions."""
    pools = [
        NodePool("p", tuple(make_catalogue("p", 4))),
        NodePool("few", tuple(make_catalogue("few", 1)), maximum=3, weight=5),
        NodePool("bounded", tuple(make_catalogue("bounded", 2)), limits={"cpu": 40_000}, weight=2),
    ]
    options = AutoscalerOptions(autoscaler="cluster-autoscaler", expander=expander, seed=1)

    report = run_scaled(make_objects(with_terms=with_terms), pools, options, until_s=7200.0)

    record = {**scaling_of(report).to_dict(report.pods), "remarks": []}  # words decide nothing
    text = json.dumps(record, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest
